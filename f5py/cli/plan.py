"""``f5py plan``."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.part_commands import PlanOptions


@options.command(
    "plan",
    PlanOptions,
    examples=(
        "f5py plan plan/",
        "f5py plan plan/ --estimate --jobs 100 --price 0.8",
        "f5py plan plan/ --print-slurm -o array.sh",
    ),
)
def command(**given: Any) -> None:
    """Show the progress of a plan made with --plan, and how long the rest will take."""
    from f5py.api.part_functions import plan

    plan(**given)
