"""``f5py finish``."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.part_commands import FinishOptions


@options.command("finish", FinishOptions, examples=("f5py finish plan/",))
def command(**given: Any) -> None:
    """Write the outputs of a plan whose parts are all done: the same bytes as from a single run."""
    from f5py.api.part_functions import finish

    finish(**given)
