"""Some parts of a plan that one process works on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Protocol

from f5py.core.batch import ReadBatch
from f5py.io.bam.record_ranges import RecordRange
from f5py.pipeline.parts import Part
from f5py.runs.parts.plan import Plan

WriteBatch = Callable[[ReadBatch], None]
_LEFT = "the parts before are done"


class Job(Protocol):
    """Work of a run on parts instead of everything.

    Attributes
    ----------
    judges_fit : bool
        Whether the first reads say if the reads fit the chemistry, as those of a run over all reads do.
    of_all : bool
        Whether what is done comes to the whole input.
    left : str
        What an error leaves of the outputs, for messages.
    """

    of_all: ClassVar[bool]

    @property
    def left(self) -> str: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def judges_fit(self) -> bool: ...

    def parts_of(self, loader: Any) -> deque[Part]:
        """Let a loader load the parts; return them, or what it will put them into, in order."""
        ...


def parts_in_order(plan: Plan, numbers: Iterable[int]) -> Iterator[Part]:
    """Give the parts with these numbers, which ascend, and know what lies between them."""
    done = 0
    for number in numbers:
        records = plan.ranges[number]
        before = RecordRange(plan.ranges[done].begin, records.begin) if done < number else None
        yield Part(number, records, before)
        done = number + 1


def _left_of(plan: Plan) -> str:
    return _LEFT if plan.is_kept else "no file was made"


class PartJob:
    """Parts of a plan that says what all of its parts are.

    Parameters
    ----------
    numbers : list of int
        Of the parts, ascending.
    judges_fit : bool
        See `Job`.
    """

    of_all = False

    def __init__(self, plan: Plan, numbers: list[int], judges_fit: bool) -> None:
        self.plan = plan
        self.left = _left_of(plan)
        self.judges_fit = judges_fit
        self.numbers = numbers

    def parts_of(self, loader: Any) -> deque[Part]:
        """Let a loader load the parts; return them."""
        parts = deque(parts_in_order(self.plan, self.numbers))
        loader.parts = list(parts)
        return parts


class TakingJob:
    """Parts of a plan that this process takes one after the other, each when the reads before have been loaded.

    Parameters
    ----------
    numbers : iterator of int
        Gives the parts; another process may get some of them.
    """

    of_all = False

    def __init__(self, plan: Plan, numbers: Iterator[int]) -> None:
        self.plan = plan
        self.left = _left_of(plan)
        self.n_taken = 0
        self._numbers = (number for number in numbers if not plan.is_done(number))
        self._first = next(self._numbers, None)
        self.judges_fit = self._first == 0

    def __bool__(self) -> bool:
        """Return whether there is a part to be worked on."""
        return self._first is not None

    def parts_of(self, loader: Any) -> deque[Part]:
        """Let a loader take the parts; return what it puts them into."""
        taken = deque[Part]()
        loader.parts = self._taken(taken)
        return taken

    def _taken(self, taken: deque[Part]) -> Iterator[Part]:
        assert self._first is not None
        for part in parts_in_order(self.plan, chain([self._first], self._numbers)):
            self.n_taken += 1
            taken.append(part)
            yield part


class GrowingJob:
    """Work left of a plan that gets its parts as the reads come.

    Parameters
    ----------
    make_plan : function
        Returns the plan; called when the inputs have turned out to be usable.
    """

    left = _LEFT
    of_all = True

    def __init__(self, make_plan: Callable[[], Plan], reads_per_part: int) -> None:
        self._make_plan = make_plan
        self._reads_per_part = reads_per_part

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return self._make_plan()

    @cached_property
    def judges_fit(self) -> bool:
        """Whether the first reads are still to come."""
        return not self.plan.is_done(0)

    def parts_of(self, loader: Any) -> deque[Part]:
        """Let a loader divide its reads; return what it will put the parts into."""
        loader.divide(self._reads_per_part, self.plan.is_done)
        parts: deque[Part] = loader.parts
        return parts
