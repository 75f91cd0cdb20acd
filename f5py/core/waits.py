"""Waiting times of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: The share of a run that it has to have waited for one thing to be called bounded by it.
_MOST = 0.5


@dataclass
class Waits:
    """Seconds that the thread that hands batches on has waited; it does nothing else for long."""

    loading: float = 0.0  # for the next batch, while there was room for it among those that are computed
    computing: float = 0.0  # for the batch that is written next, while no more could be computed
    writing: float = 0.0  # for the batch before it to be written

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Count the time of the block."""
        started = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.perf_counter() - started)

    @property
    def total(self) -> float:
        """Seconds in all."""
        return self.loading + self.computing + self.writing

    @property
    def bound(self) -> str:
        """``loading``, ``computing`` or ``writing`` if the run has waited mostly for that, else nothing."""
        most = max(("loading", "computing", "writing"), key=lambda what: getattr(self, what))
        return most if getattr(self, most) > _MOST * self.total else ""
