"""``f5py freq-merge``: several tables of methylation frequencies into one."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.frequency_commands import MergeOptions


@options.command(
    "freq-merge",
    MergeOptions,
    examples=("f5py freq-merge run1.freq.tsv run2.freq.tsv -o freq.tsv",),
)
def command(**given: Any) -> None:
    """Add up tables of meth-freq, plain or gzipped, as if their calls had been counted together."""
    from f5py.api.table_functions import merge_frequencies

    merge_frequencies(**given)
