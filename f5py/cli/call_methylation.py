"""``f5py call-methylation``."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.signal_commands import CallOptions


@options.command(
    "call-methylation",
    CallOptions,
    examples=(
        "f5py call-methylation -r reads.fastq -b reads.bam -g ref.fa -o calls.tsv",
        "f5py call-methylation -b calls.bam -g ref.fa --pod5 pod5/ -o calls.bam --bedmethyl sites.bed.gz",
        "f5py call-methylation -w chr20:1,000,000-2,000,000 -r reads.fastq -b reads.bam -g ref.fa -o part.parquet",
    ),
)
def command(**given: Any) -> None:
    """Call methylated bases in every read.

    Prints a table with one row per group of neighbouring sites of each read; a positive log-likelihood ratio
    favours methylation.
    """
    from f5py.api.functions import call_methylation

    with options.resource_report():
        call_methylation(**given)
