"""What ``import f5py`` offers for runs in parts."""

from __future__ import annotations

from typing import Any

from f5py.api.command import documented
from f5py.api.commands import FINISH, JOIN, PLAN, RUN_PART
from f5py.api.tables import valued, written
from f5py.messages.progress import Listener


@documented(RUN_PART)
def run_part(plan: Any, parts: Any = (), *, progress: Listener | None = None, **options: Any) -> None:
    """Do parts of a plan, as ``f5py run-part`` does; the working folder is that of the plan meanwhile.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    RUN_PART.run({"plan": plan, "parts": parts, **options}, progress=progress)


@documented(PLAN)
def plan(plan: Any, **options: Any) -> str:
    """Tell how far a plan is, how long it will take, or how to submit it, as ``f5py plan`` does.

    Parameters
    ----------

    Returns
    -------
    str
        The text. It is written only if `output` is given.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    text: str = valued(PLAN, {"plan": plan, **options})
    return text


@documented(FINISH)
def finish(plan: Any, *, progress: Listener | None = None, **options: Any) -> Any:
    """Write the outputs of a plan whose parts are done, as ``f5py finish`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    RunCounts
        How many reads met which fate.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return FINISH.run({"plan": plan, **options}, progress=progress)


@documented(JOIN)
def merge(inputs: Any = (), **options: Any) -> None:
    """Merge outputs of one kind, such as those of windows, as ``f5py merge`` does.

    Parameters
    ----------

    Raises
    ------
    F5pyError
        For anything wrong with the options, the inputs or the output.
    """
    written(JOIN, {"inputs": inputs, **options}, "what is merged")
