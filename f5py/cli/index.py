"""``f5py index``: index basecalled reads and their signal files."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.table_commands import IndexOptions


@options.command(
    "index",
    IndexOptions,
    examples=(
        "f5py index -d fast5/ reads.fastq",
        "f5py index -s sequencing_summary.txt -d fast5/ reads.fastq",
        "f5py index --slow5 reads.blow5 reads.fastq",
        "f5py index -o run7 --pod5 pod5/ fastq_pass/",
    ),
)
def command(**given: Any) -> None:
    """Index the basecalled READS (FASTA or FASTQ, plain or compressed) and their signal files.

    Writes READS.index, READS.index.fai, READS.index.gzi and READS.index.readdb, or these names with another prefix
    (-o PREFIX; then give -r PREFIX to the other commands). The signals are in fast5 files (-d), POD5 files (--pod5),
    or a SLOW5 file (--slow5). f5c and nanopolish can use the index too, except that they cannot read POD5 files.
    """
    from f5py.api.functions import index

    with options.resource_report():
        index(**given)
