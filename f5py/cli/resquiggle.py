"""``f5py resquiggle``: align every signal to the bases of its own read."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.signal_commands import ResquiggleOptions


@options.command(
    "resquiggle",
    ResquiggleOptions,
    examples=(
        "f5py resquiggle reads.fastq reads.blow5 -o moves.tsv",
        "f5py resquiggle -c reads.fastq pod5/ -o moves.paf",
    ),
)
def command(**given: Any) -> None:
    """Align every signal to the bases of its own read.

    READS is a FASTA or FASTQ file, plain or compressed. SIGNALS is a SLOW5, BLOW5, POD5 or fast5 file, or a folder of
    POD5 or fast5 files. Prints the samples of every k-mer.
    """
    from f5py.api.functions import resquiggle

    with options.resource_report():
        resquiggle(**given)
