"""What ``import f5py`` offers of the commands that draw: functions of their options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from f5py.api.command import Command, documented
from f5py.api.commands import PLOT, PLOT_REGION
from f5py.api.tables import has_output

if TYPE_CHECKING:
    from f5py.plotting.picture import Picture


@documented(PLOT)
def plot(read: str, **options: Any) -> Picture | None:
    """Draw the signal, the events and the bases of one read, as ``f5py plot`` does.

    Parameters
    ----------

    Returns
    -------
    Picture or None
        Without `output`, the picture, which a notebook shows.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return _drawn(PLOT, {"read": read, **options})


@documented(PLOT_REGION)
def plot_region(**options: Any) -> Picture | None:
    """Draw the reads over a locus with their methylation calls, as ``f5py plot-region`` does.

    Parameters
    ----------

    Returns
    -------
    Picture or None
        Without `output`, the picture, which a notebook shows.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return _drawn(PLOT_REGION, options)


def _drawn(command: Command, given: dict[str, Any]) -> Picture | None:
    if has_output(given):
        command.run(given)
        return None
    picture: Picture = replace(command, function="picture").run({**given, "output": ""})
    return picture
