"""``f5py map``."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.map_commands import MapOptions


@options.command(
    "map",
    MapOptions,
    examples=(
        "f5py map ref.fa reads.fastq -o reads.bam",
        "f5py map ref.fa basecalls.bam -o reads.bam",
        "f5py map -x rna -y transcripts.fa reads.fastq.gz -o reads.bam",
        "f5py map ref.fa reads.fastq -o reads.paf",
    ),
)
def command(**given: Any) -> None:
    """Map reads to a reference and sort the alignments.

    The alignments are those of minimap2 2.24 with the same preset and options, and its options are called the same.
    Tags of unaligned BAM files, such as the basecaller's, are kept.
    """
    with options.resource_report():
        from f5py.api.map import map_reads

        map_reads(**given)
