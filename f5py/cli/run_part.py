"""``f5py run-part``."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.part_commands import RunPartOptions


@options.command(
    "run-part",
    RunPartOptions,
    examples=("f5py run-part plan/ 7", "f5py run-part plan/ 0-15 -t 16", "f5py run-part plan/"),
)
def command(**given: Any) -> None:
    """Do parts of a plan that was made by call-methylation or eventalign with --plan and --partitions.

    Parts can be done in any order, by any number of processes and machines that see the folder.
    """
    from f5py.api.part_functions import run_part

    with options.resource_report():
        run_part(**given)
