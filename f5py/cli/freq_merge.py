"""``f5py freq-merge``: several tables of methylation frequencies into one."""

from __future__ import annotations

from f5py.cli import options
from f5py.core.options import MergeOptions


@options.command("freq-merge", MergeOptions)
def command(chosen: MergeOptions) -> None:
    """Add up tables that meth-freq writes, also gzipped, as if their calls had been counted together."""
    from f5py.commands.meth_freq import merge_frequency_files

    merge_frequency_files(chosen)
