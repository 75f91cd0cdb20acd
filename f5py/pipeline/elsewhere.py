"""Batches of a run that other processes load and compute."""

from __future__ import annotations

import threading
from typing import Protocol

from f5py.core.batch import ReadBatch
from f5py.pipeline.batch_records import Cut, Found


class Awaited:
    """A batch that another process loads and computes, in its place among the batches of the run.

    Attributes
    ----------
    cut : Cut
        Its records.
    number : int
        That of the batch.
    """

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        self.number = cut.number
        self._arrived = threading.Event()
        self._result: tuple[ReadBatch, Found] | None = None
        self._error: BaseException | None = None

    def put(self, batch: ReadBatch, found: Found) -> None:
        """Hand the computed batch over."""
        self._result = batch, found
        self._arrived.set()

    def fail(self, error: BaseException | None) -> None:
        """Say that it will not come, because of an error in it, or of its process if that is None."""
        self._error = error
        self._arrived.set()

    def take(self) -> tuple[ReadBatch, Found] | None:
        """Wait for the batch; None if its process has ended before it came. Raises the error that came instead."""
        self._arrived.wait()
        if self._error is not None:
            raise self._error
        result, self._result = self._result, None
        return result


class Elsewhere(Protocol):
    """Interface of what has other processes load and compute batches.

    Attributes
    ----------
    room : int
        Batches, at most, that are elsewhere at a time.
    """

    @property
    def room(self) -> int: ...

    def take(self, cut: Cut) -> Awaited | None:
        """Choose where a batch is loaded and computed, once there is room; None: here.

        Called in the order of the batches, by one thread: those that are here go on in that order.
        """
        ...

    def computed_here(self) -> None:
        """Say that one of the batches that are computed here has been."""
        ...

    def batch_of(self, awaited: Awaited) -> ReadBatch:
        """Wait for a batch, and return it as if it had been loaded and computed here."""
        ...

    def end(self) -> None:
        """Say that no more batches will be taken; those that are elsewhere still come."""
        ...

    def stop(self) -> None:
        """End what is under way, because it is not wanted any more."""
        ...
