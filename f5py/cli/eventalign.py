"""``f5py eventalign``: align the events of every read to the k-mers of the reference."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.signal_commands import EventalignOptions


@options.command(
    "eventalign",
    EventalignOptions,
    examples=(
        "f5py eventalign -r reads.fastq -b reads.bam -g ref.fa -o events.tsv.gz",
        "f5py eventalign -b calls.bam -g transcripts.fa --pod5 pod5/ --m6anet-json m6anet/",
        "f5py eventalign -r reads.fastq -b reads.bam -g ref.fa --signal-index --scale-events -o events.parquet",
    ),
)
def command(**given: Any) -> None:
    """Align the events of every read to the k-mers of the reference.

    Prints a table with one row per event: its k-mer on the reference, its current, and what the pore model expects.
    """
    from f5py.api.functions import eventalign

    with options.resource_report():
        eventalign(**given)
