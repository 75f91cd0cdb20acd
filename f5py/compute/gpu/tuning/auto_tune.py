"""``--auto-tune``: follow the advice of the decision trees while the program runs.

Every piece of advice changes the options by one step. A step is undone if it makes batches slower, and halved for an
option that has to turn back; an option that does so too often is left alone. Steps have a least size and options have
bounds, so there is an end to it whatever the batches are like.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from statistics import median

from f5py.compute.gpu.tuning.decision_trees import BatchReport, TunedOptions
from f5py.compute.gpu.tuning.suggestions import BOUNDS, SPELLING, Advice, as_typed, bounded
from f5py.messages import console

#: Batches that a step is judged by.
TRIAL = 4
#: A step that makes a base cost more than this factor of what it did is undone; less is noise.
TOLERANCE = 1.1
#: An option is left alone after turning back so many times.
MAX_FLIPS = 3
#: Batches in a row of other options than the current ones, after which these are not seen as still under way.
MAX_IN_FLIGHT = 16

_WHO = "auto_tune"
_NAMES = tuple(item.name for item in fields(TunedOptions))
_WHOLE = frozenset({"batchsize", "max_bases", "ultra_thresh"})


@dataclass
class _History:
    """History of one option: the way it last went, and how often it had to turn back."""

    direction: int = 0
    flips: int = 0

    @property
    def step(self) -> float:
        """Share of a suggested change that is made."""
        return 0.5**self.flips


@dataclass
class _Trial:
    """A step that has not proved itself: the values before it, and what a base cost then."""

    before: dict[str, float]
    cost: float


@dataclass
class Tuner:
    """The options of a run, changed step by step.

    Attributes
    ----------
    bounds : mapping of option name to (lowest, highest)
        Narrower bounds than `BOUNDS` for some options, such as what an arena can hold. A value that the user has
        chosen outside is not changed for that.
    fixed : iterable of str
        Options to leave alone. The number of threads always is.
    options : TunedOptions or None
        The current ones; None before the first report.
    """

    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Iterable[str] = ()
    options: TunedOptions | None = None

    def __post_init__(self) -> None:
        for name in (*self.bounds, *self.fixed):
            if name not in _NAMES:
                raise ValueError(f"{name}: not the name of a tuned option")
        self._bounds = {
            name: (max(low, self.bounds.get(name, (low, high))[0]), min(high, self.bounds.get(name, (low, high))[1]))
            for name, (low, high) in BOUNDS.items()
        }
        self._left_alone = {"threads", *self.fixed}
        self._history = {name: _History() for name in BOUNDS}
        self._costs: deque[float] = deque(maxlen=TRIAL)
        self._trial: _Trial | None = None
        self._n_other = 0

    def accept(self, report: BatchReport) -> bool:
        """Take note of a batch; False if it was made by other options than the current ones.

        Some batches are always under way when options change. If there is no end to them, whoever makes the batches
        cannot follow: then what they report is in force, and the options in question are left alone.
        """
        if self.options is None:
            self._begin(report.options)
        if report.options != self.options:
            self._n_other += 1
            if self._n_other <= MAX_IN_FLIGHT:
                return False
            for name in _NAMES:
                if getattr(report.options, name) != getattr(self.options, name):
                    self._leave_alone(name, getattr(report.options, name))
            self._begin(report.options)
        self._n_other = 0
        self._costs.append(max(report.cpu_seconds, report.gpu_seconds) / max(report.n_bases, 1))
        return True

    def undo_if_slower(self) -> bool:
        """Judge the latest step once there are enough batches; True if it has been undone."""
        if self._trial is None or len(self._costs) < TRIAL:
            return False
        trial, self._trial = self._trial, None
        cost = median(self._costs)
        if cost <= TOLERANCE * trial.cost:
            return False
        for name in trial.before:
            self._history[name].flips += 1
        console.info(
            _WHO,
            f"back to {_listed(trial.before)}: the last change made a megabase take {cost * 1e6:.3g} s "
            f"instead of {trial.cost * 1e6:.3g} s",
        )
        self._set(trial.before)
        for name in trial.before:
            self._check_flips(name)
        return True

    def follow(self, advice: Advice) -> str | None:
        """Make one step; return the new values as typed, or None if there is nothing left to change."""
        if self._trial is not None:
            return None
        for way in advice.ways:
            change = {}
            for name, target in way.items():
                value = self._stepped(name, target)
                if value != getattr(self.options, name):
                    change[name] = value
            if change:
                cost = median(self._costs)
                before = {name: getattr(self.options, name) for name in change}
                self._set(change)
                self._trial = _Trial(before, cost)
                return _listed(change)
        return None

    def _begin(self, options: TunedOptions) -> None:
        self.options = options
        self._costs.clear()
        self._trial = None
        for name, (low, high) in self._bounds.items():
            now = getattr(options, name)
            self._bounds[name] = (min(low, now), max(high, now))

    def _set(self, values: Mapping[str, float]) -> None:
        assert self.options is not None
        whole = {name: int(value) if name in _WHOLE else value for name, value in values.items()}
        self.options = replace(self.options, **whole)  # type: ignore[arg-type]
        self._costs.clear()

    def _stepped(self, name: str, target: float) -> float:
        """Move the option's value one step towards `target`."""
        now = getattr(self.options, name)
        if name in self._left_alone:
            return now
        target = bounded(now, target, *self._bounds[name])
        if target == now:
            return now
        history = self._history[name]
        direction = 1 if target > now else -1
        if history.direction == -direction:
            history.flips += 1
            if self._check_flips(name):
                return now
        value = now + (target - now) * history.step
        value = round(value) if name in _WHOLE else round(value, 2)
        if value != now:
            history.direction = direction
        return bounded(now, value, *self._bounds[name])

    def _check_flips(self, name: str) -> bool:
        """Leave the option alone if it has turned back too often."""
        if self._history[name].flips < MAX_FLIPS:
            return False
        self._leave_alone(name, getattr(self.options, name))
        return True

    def _leave_alone(self, name: str, value: float) -> None:
        if name not in self._left_alone:
            self._left_alone.add(name)
            console.info(_WHO, f"{SPELLING[name]} stays at {as_typed(name, value)} from now on")


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{SPELLING[name]} {as_typed(name, value)}" for name, value in values.items())
