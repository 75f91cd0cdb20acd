"""``f5py fast5-check``: whether the signals of indexed reads can be read."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.signal_commands import CheckOptions


@options.command(
    "fast5-check",
    CheckOptions,
    examples=("f5py fast5-check -r reads.fastq -o signals.tsv",),
)
def command(**given: Any) -> None:
    """Read the signal of every read in an index, in any format.

    Prints a table with the file and the number of samples of each read, and what is wrong with those without a usable
    signal.
    """
    from f5py.api.functions import fast5_check

    fast5_check(**given)
