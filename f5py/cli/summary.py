"""``f5py summary``: what calls have in them, and which threshold they need."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.core.options.table_commands import SummaryOptions


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
    """Summarise tables of calls, and advise a threshold for their log-likelihood ratios.

    Tells how many calls each threshold keeps, and how many of these are likely to be wrong: by the ratios themselves,
    by two components that fit them, or by the calls of controls. Also methylation by read, by number of sites of a
    group and by context. Needs pyarrow: pip install "f5py[parquet]".
    """
    from f5py.api.functions import summary

    summary(**given)
