"""``f5py compare``: events of two samples, by position or k-mer."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.signal_commands import CompareOptions


@options.command(
    "compare",
    CompareOptions,
    examples=(
        "f5py compare native.parquet ivt.parquet -o differences.tsv",
        "f5py compare native.bam ivt.bam -g ref.fa --rna --pod5 native/ --pod5 ivt/ -o differences.parquet",
        "f5py compare native.tsv ivt.tsv --by kmer",
    ),
)
def command(**given: Any) -> None:
    """Compare the events of two samples, to find modified bases without a model for them.

    A and B are tables of f5py eventalign (text or Parquet), or alignments whose events are aligned first. For every
    position and strand, or every k-mer: mean, median and standard deviation of levels and dwell times in both samples,
    and Kolmogorov-Smirnov and Mann-Whitney tests, with q-values. Needs pyarrow:
    pip install pyarrow.
    """
    from f5py.api.table_functions import compare

    compare(**given)
