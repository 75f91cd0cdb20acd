"""``f5py call-methylation``."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.core.options import CallOptions


@options.command("call-methylation", CallOptions)
def command(**given: Any) -> None:
    """Call methylated bases in every read.

    Prints a table with one row per group of neighbouring sites of each read; a positive log-likelihood ratio
    speaks for methylation.
    """
    from f5py.api.functions import call_methylation

    with options.resource_report():
        call_methylation(**given)
