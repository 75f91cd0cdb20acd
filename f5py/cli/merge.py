"""``f5py merge``."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.core.options.part_commands import JoinOptions


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
    """Merge outputs of one kind, such as those of windows: tables, Parquet, modBAM or bedMethyl.

    Rows come in the order of the files. Records of modBAM that stand in several files become one with all calls, and
    counts of bedMethyl are added up. For tables of frequencies there is freq-merge.
    """
    from f5py.api.part_functions import merge

    merge(**given)
