"""``f5py meth-freq``: methylation frequency at every site."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.core.options import FrequencyOptions


@options.command("meth-freq", FrequencyOptions)
def command(**given: Any) -> None:
    """Methylation frequency at every site, from the tables that call-methylation writes."""
    from f5py.api.functions import frequencies

    frequencies(**given)
