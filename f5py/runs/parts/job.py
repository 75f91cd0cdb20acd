"""Jobs: parts of a plan for one process."""

from __future__ import annotations

import os
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from f5py.core.batch import ReadBatch
from f5py.io.bam.record_ranges import RecordRange
from f5py.pipeline.batch_records import Part
from f5py.runs.parts.plan import PARTS, Plan
from f5py.runs.parts.text_chain import write_errors

WriteBatch = Callable[[ReadBatch], None]


class Claims:
    """Queue of parts for several processes on one machine; a context manager that creates its folder.

    Parts claimed by a process that has died are not given to another one. Picklable.
    """

    def __init__(self, plan: Plan, numbers: Sequence[int]) -> None:
        self._folder: Path = plan.folder / PARTS / f".claims-{secrets.token_hex(8)}"
        self._numbers = numbers

    @property
    def name(self) -> str:
        """Unique name."""
        return self._folder.name

    def __enter__(self) -> Claims:
        with write_errors(self._folder):
            self._folder.mkdir()
        return self

    def __exit__(self, *problem: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def take(self) -> Iterator[int]:
        """Yield parts, each claimed on request."""
        for number in self._numbers:
            with write_errors(self._folder):
                try:
                    os.mkdir(self._folder / str(number))  # of several processes one can
                except FileExistsError:
                    continue
            yield number


def parts_in_order(plan: Plan, numbers: Iterable[int]) -> Iterator[Part]:
    """Yield the parts with these ascending numbers, with the records between them."""
    done = 0
    for number in numbers:
        records = plan.ranges[number]
        before = RecordRange(plan.ranges[done].begin, records.begin) if done < number else None
        yield Part(number, records, before)
        done = number + 1


class PartJob:
    """Parts of a complete plan, by ascending numbers; `checks_chemistry` as in `Job`."""

    of_all = False

    def __init__(self, plan: Plan, numbers: list[int], checks_chemistry: bool) -> None:
        self.plan = plan
        self.checks_chemistry = checks_chemistry
        self.numbers = numbers

    def parts_of(self, loader: Any) -> tuple[list[Part], deque[Part]]:
        parts = list(parts_in_order(self.plan, self.numbers))
        return parts, deque(parts)


class ClaimingJob:
    """Parts of a plan that this process claims one by one, each when the previous reads are loaded."""

    of_all = False

    def __init__(self, plan: Plan, numbers: Iterator[int]) -> None:
        self.plan = plan
        self.n_taken = 0
        self._numbers = (number for number in numbers if not plan.is_done(number))
        self._first = next(self._numbers, None)
        self.checks_chemistry = self._first == 0

    def __bool__(self) -> bool:
        """Return whether a part remains."""
        return self._first is not None

    def parts_of(self, loader: Any) -> tuple[Iterator[Part], deque[Part]]:
        taken = deque[Part]()
        return self._taken(taken), taken

    def _taken(self, taken: deque[Part]) -> Iterator[Part]:
        assert self._first is not None
        for part in parts_in_order(self.plan, chain([self._first], self._numbers)):
            self.n_taken += 1
            taken.append(part)
            yield part


class GrowingJob:
    """Parts of a plan that are defined while the reads are loaded.

    `make_plan` is called once the inputs have proved usable.
    """

    of_all = True

    def __init__(self, make_plan: Callable[[], Plan], reads_per_part: int) -> None:
        self._make_plan = make_plan
        self._reads_per_part = reads_per_part

    @cached_property
    def plan(self) -> Plan:
        return self._make_plan()

    @cached_property
    def checks_chemistry(self) -> bool:
        """Whether the first reads are still missing."""
        return not self.plan.is_done(0)

    def parts_of(self, loader: Any) -> tuple[None, deque[Part]]:
        loader.divide(self._reads_per_part, self.plan.is_done)
        return None, loader.parts


#: Assignment of parts to a run. `checks_chemistry` says whether to check it by the first reads, as in a run over all
#: reads, and `of_all` whether the parts add up to the whole input. `parts_of` returns the parts to load, and the queue
#: of those to write, in order.
Job = PartJob | ClaimingJob | GrowingJob
