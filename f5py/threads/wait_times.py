"""Waiting times of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: Share of the waiting that makes a reason the bottleneck.
_MOST = 0.5


@dataclass
class WaitTimes:
    """Seconds that the thread which passes batches on has waited, by reason."""

    loading: float = 0.0  # for the next batch, with room for its computation
    computing: float = 0.0  # for the next batch to write, with full computation
    writing: float = 0.0  # for the previous batch to be written

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Measure the time of the block."""
        started = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.perf_counter() - started)

    @property
    def total(self) -> float:
        return self.loading + self.computing + self.writing

    @property
    def bound(self) -> str:
        """The reason for most of the waiting, ``loading``, ``computing`` or ``writing``, or ""."""
        most = max(("loading", "computing", "writing"), key=lambda what: getattr(self, what))
        return most if getattr(self, most) > _MOST * self.total else ""
