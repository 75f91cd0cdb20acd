"""``f5py summary``: what calls have in them, and which threshold they need."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.table_commands import SummaryOptions


@options.command(
    "summary",
    SummaryOptions,
    examples=(
        "f5py summary calls.tsv",
        "f5py summary calls.parquet --report calls.html --report calls.json",
        "f5py summary calls.tsv --methylated sssi.tsv --unmethylated wga.tsv",
    ),
)
def command(**given: Any) -> None:
    """Summarise tables of calls, and recommend a threshold for their log-likelihood ratios.

    Shows how many calls each threshold keeps, and how many of these are likely to be wrong: judging by the ratios, by
    two components fitted to them, or by the calls of controls. Also shows methylation by read, by the number of sites
    in a group and by context. Needs pyarrow: pip install pyarrow.
    """
    from f5py.api.table_functions import summary

    summary(**given)
