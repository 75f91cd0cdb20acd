"""Advice for the next run, or with ``--auto-tune`` for the next batches, from how batches have used the GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from f5py.compute.gpu.tuning.auto_tune import Tuner
from f5py.compute.gpu.tuning.decision_trees import (
    BatchReport,
    LoadState,
    MemoryState,
    TunedOptions,
    load_balance,
    memory_balance,
)
from f5py.compute.gpu.tuning.suggestions import Advice, advise
from f5py.messages import console
from f5py.options.cores import usable_cores

__all__ = ["Advisor", "BatchReport", "LoadState", "MemoryState", "TunedOptions", "load_balance", "memory_balance"]

#: A state has to hold for more batches in a row than this before anything is said or done about it.
PATIENCE = 3

#: The trees by the names that messages begin with. The load can be judged when the memory is in use, so it comes last.
_TREES = {"memory_balance_advisor": memory_balance, "load_balance_advisor": load_balance}


class _Run:
    """For how many batches a tree has ended in the same state, in a row and in all."""

    def __init__(self) -> None:
        self.restart()
        self.n_batches: Counter[MemoryState | LoadState] = Counter()
        self.told: dict[MemoryState | LoadState, Advice] = {}

    def restart(self) -> None:
        """Forget the row."""
        self._state: MemoryState | LoadState | None = None
        self._length = 0

    def add(self, state: MemoryState | LoadState | None) -> bool:
        """Count a batch; True from when the row is long enough to speak of."""
        if state is not self._state:
            self.restart()
            self._state = state
        if state is None:
            return False
        self.n_batches[state] += 1
        self._length += 1
        return self._length > PATIENCE


class Advisor:
    """Watches the batches and says which options would suit the data and the machine better.

    Parameters
    ----------
    auto_tune : bool
        Change the options as well.
    cores : int, optional
        CPU cores that the program can use; found out by default. No more threads than that are suggested.
    bounds : mapping of option name to (lowest, highest), optional
        Bounds for `auto_tune`, where narrower than those in general.
    fixed : iterable of str
        Names of options that `auto_tune` leaves alone, besides the number of threads. By default this is
        ``ultra_thresh``, which decides what is in the output: the result would depend on the machine's speed.

    Raises
    ------
    ValueError
        If `bounds` or `fixed` name something else than a field of `TunedOptions`.
    """

    def __init__(
        self,
        auto_tune: bool = False,
        cores: int | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        fixed: Iterable[str] = ("ultra_thresh",),
    ) -> None:
        self._cores = usable_cores() if cores is None else cores
        self._tuner = Tuner(bounds or {}, tuple(fixed)) if auto_tune else None
        self._runs = {who: _Run() for who in _TREES}
        self._n_batches = 0

    def observe(self, report: BatchReport) -> TunedOptions:
        """Take note of a finished batch, and change options with `auto_tune`.

        Returns
        -------
        TunedOptions
            What the next batches are to be made by: the report's options, unless `auto_tune` has changed them.
            Batches that were under way then still report the old ones; they are left out of account.
        """
        tuner = self._tuner
        self._n_batches += 1
        if tuner is not None:
            if not tuner.accept(report):
                return _known(tuner.options)
            if tuner.undo_if_slower():
                self._restart()
                return _known(tuner.options)
        for who, tree in _TREES.items():
            state = tree(report)
            run = self._runs[who]
            if not run.add(state) or state is None or (tuner is None and state in run.told):
                continue
            advice = advise(state, report, self._cores)
            if advice is None:
                continue
            change = None if tuner is None else tuner.follow(advice)
            if change is not None:
                console.info(who, f"{advice.finding}; --auto-tune sets {change}")
                # One step at a time, or its effect could not be told; and what follows is a new beginning.
                self._restart()
                break
            run.told.setdefault(state, advice)
        return report.options if tuner is None else _known(tuner.options)

    def summarise(self, is_bound: bool) -> None:
        """Say, at the end of a run, what would have been better for most of its batches.

        Parameters
        ----------
        is_bound : bool
            The run has waited for batches to be computed. Else no division of them would have made it faster.
        """
        if not is_bound:
            return
        for who in reversed(_TREES):
            run = self._runs[who]
            for state, advice in run.told.items():
                if 2 * run.n_batches[state] > self._n_batches:
                    console.info(who, f"{advice.text} ({run.n_batches[state]} of {self._n_batches} batches were so)")
                    return

    def _restart(self) -> None:
        for run in self._runs.values():
            run.restart()


def _known(options: TunedOptions | None) -> TunedOptions:
    assert options is not None
    return options
