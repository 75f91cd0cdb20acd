"""``f5py eventalign``: align the events of every read to the k-mers of the reference."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.core.options import EventalignOptions


@options.command("eventalign", EventalignOptions)
def command(**given: Any) -> None:
    """Align the events of every read to the k-mers of the reference.

    Prints a table with one row per event: its k-mer on the reference, its current, and what the pore model expects.
    """
    from f5py.api.functions import eventalign

    with options.resource_report():
        eventalign(**given)
