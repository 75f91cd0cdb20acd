"""Pool of the parts of a GPU's memory.

Batches come from several threads, and each uses a part, so that one is packed while kernels work on another. After a
failure of the device the CPU threads do its work.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.buffers import TransferredArrays
from f5py.compute.gpu.device import (
    GpuDevice,
    GpuFailure,
    GpuUnavailableError,
    free_pools,
    guarded,
    is_out_of_memory,
    remedy,
)
from f5py.compute.gpu.self_check import check_once
from f5py.messages import console

_SHRINK = 0.7

Part = TypeVar("Part", bound=TransferredArrays)
Started = TypeVar("Started")


class GpuPartPool(Generic[Part]):
    """Parts of a device's memory for concurrent batches.

    Constructors raise `GpuUnavailableError` if memory is short, or kernels do not compile or differ from the CPU.
    """

    def __init__(
        self, device: GpuDevice, who: str = "map", goes_on: str = "the run", room_for: str = "", option: str = "-K"
    ) -> None:
        self.device, self.name = device, f"GPU {device.number}"
        self._who, self._goes_on, self._room_for, self._option = who, goes_on, room_for, option
        self._broken = False
        self._lock = threading.Lock()
        self._parts: list[Part] = []
        self._free: queue.SimpleQueue[Part] = queue.SimpleQueue()

    def _unavailable(self, problem: Exception) -> GpuUnavailableError:
        """Make the error of a failed start."""
        name = self.device.name
        if is_out_of_memory(problem):
            what = f"{name} for {self._room_for}" if self._room_for else name
            return GpuUnavailableError(
                f"there is too little free memory on {what}; end other programs on it, or lower {self._option}"
            )
        return GpuUnavailableError(f"{name} does not work: {remedy(problem)}")

    def _started(self, start: Callable[[], Started]) -> Started:
        """Call `start`, turning every exception into `GpuUnavailableError`."""
        try:
            return start()
        except GpuUnavailableError:
            raise
        except Exception as problem:
            raise self._unavailable(problem) from problem

    def _take_parts(
        self, n_parts: int, most: int, fewest: int, make: Callable[[int], Part],
        on_smaller: Callable[[int, Exception], object] = lambda size, problem: None,
    ) -> int:  # fmt: skip
        """Allocate all parts, shrinking them while memory does not suffice; return their size.

        Raises `GpuUnavailableError`. Sizes go from `most` to `fewest`; `on_smaller` is called with a size that does
        not fit, and the exception.
        """
        size = most
        while size >= fewest:
            parts: list[Part] = []
            try:
                for _ in range(n_parts):
                    parts.append(make(size))
            except Exception as problem:
                with suppress(Exception):  # a device that is lost
                    _close(parts)
                if not is_out_of_memory(problem):
                    raise self._unavailable(problem) from problem
                on_smaller(size, problem)
                size = int(size * _SHRINK)
            else:
                self._parts = parts
                for part in parts:
                    self._free.put(part)
                return size
        raise self._unavailable(MemoryError())

    def _note_size(self, size: int, of_what: str, does: str = "Running") -> None:
        console.note(
            self._who, f"{does} on {self.device.name} (device id {self.device.number}): {size} {of_what} at a time"
        )

    def _checked(self, check: Callable[[], None], what: bytes | None = None) -> None:
        """Run a self-check unless the cache has it under `what`; release the device if it raises."""
        try:
            try:
                of = None if what is None else b"%s %s" % (type(self).__name__.encode(), what)
                check_once(self.device.number, of, check)
            except GpuFailure as problem:
                raise GpuUnavailableError(f"{self.device.name} does not work: {problem}") from problem
        except BaseException:
            with suppress(GpuFailure):
                guarded(self.device.number, self._release)
            raise

    def _differs(self, what: str) -> GpuUnavailableError:
        """Make the error for results that differ from the CPU's."""
        return GpuUnavailableError(
            f"{self.device.name} {what}; please report this, with the versions of the driver and of cupy"
        )

    @contextmanager
    def _part(self) -> Iterator[Part]:
        """Borrow a free part."""
        part = self._free.get()
        try:
            yield part
        finally:
            self._free.put(part)

    @property
    def is_broken(self) -> bool:
        """Whether the device has failed, so that the CPU threads do its work."""
        return self._broken

    def give_up(self, problem: Exception) -> None:
        """Stop using the device, with one message."""
        with self._lock:
            if not self._broken:
                console.warning(self._who, f"{self.name} failed: {problem}; {self._goes_on} goes on without it")
            self._broken = True

    def close(self) -> None:
        """Free the memory; no batch may be in progress."""
        with suppress(GpuFailure) if self._broken else nullcontext():
            guarded(self.device.number, self._release)

    def _release(self) -> None:
        """Free the device's resources."""
        self._free = queue.SimpleQueue()
        parts, self._parts = self._parts, []
        _close(parts)


def _close(parts: list[Part]) -> None:
    for part in parts:
        part.close()
    free_pools()


def rounds(
    order: NDArray[np.int64], sizes: NDArray[np.int64], most_of_sizes: int, most: int
) -> Iterator[NDArray[np.int64]]:
    """Divide the items in `order` into rounds of at most `most` items and a bounded sum of sizes."""
    ends = np.cumsum(sizes[order])
    first, before = 0, 0
    while first < len(order):
        end = min(int(np.searchsorted(ends, before + most_of_sizes, side="right")), first + most)
        yield order[first:end]
        first, before = end, int(ends[end - 1])
