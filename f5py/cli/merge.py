"""``f5py merge``."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.part_commands import JoinOptions


@options.command(
    "merge",
    JoinOptions,
    examples=(
        "f5py merge chr1.tsv.gz chr2.tsv.gz -o calls.tsv.gz",
        "f5py merge window1.bam window2.bam -o calls.bam",
        "f5py merge window1.bed window2.bed -o sites.bed.gz",
    ),
)
def command(**given: Any) -> None:
    """Merge outputs of the same kind, such as those of several windows: tables, Parquet, modBAM or bedMethyl.

    Rows come in the order of the files. modBAM records that are in several files are merged into one with all calls,
    and bedMethyl counts are added up. For tables of frequencies use freq-merge.
    """
    from f5py.api.part_functions import merge

    merge(**given)
