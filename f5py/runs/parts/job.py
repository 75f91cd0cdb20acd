"""Some parts of a plan that one process works on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Protocol

from f5py.core.batch import ReadBatch
from f5py.io.bam.record_ranges import RecordRange
from f5py.pipeline.parts import Part
from f5py.runs.parts.plan import Plan

WriteBatch = Callable[[ReadBatch], None]


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
    left: ClassVar[str]

    @property
    def plan(self) -> Plan: ...

    @property
    def judges_fit(self) -> bool: ...

    def parts_of(self, loader: Any) -> deque[Part]:
        """Let a loader load the parts; return them, or what it will put them into, in order."""
        ...


class PartJob:
    """Parts of a plan that says what all of its parts are.

    Parameters
    ----------
    numbers : list of int
        Of the parts, ascending.
    judges_fit : bool
        See `Job`.
    """

    left = "the parts before are done"
    of_all = False

    def __init__(self, plan: Plan, numbers: list[int], judges_fit: bool) -> None:
        self.plan = plan
        self.judges_fit = judges_fit
        self.numbers = numbers

    def parts_of(self, loader: Any) -> deque[Part]:
        """Let a loader load the parts; return them."""
        parts, done = deque[Part](), 0
        for number in self.numbers:
            records = self.plan.ranges[number]
            before = RecordRange(self.plan.ranges[done].begin, records.begin) if done < number else None
            parts.append(Part(number, records, before))
            done = number + 1
        loader.parts = list(parts)
        return parts


class GrowingJob:
    """Work left of a plan that gets its parts as the reads come.

    Parameters
    ----------
    make_plan : function
        Returns the plan; called when the inputs have turned out to be usable.
    """

    left = PartJob.left
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
