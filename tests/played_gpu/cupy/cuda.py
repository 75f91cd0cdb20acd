"""Devices, streams and memory."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace

import numpy as np
from patterns import filled

from . import faults

_here = threading.local()
_used: dict[int, int] = {}
_hooks: list[MemoryHook] = []


class _NumberedError(RuntimeError):
    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(text or f"error {status}")
        self.status = status


class CUDARuntimeError(_NumberedError):
    """As in `cupy.cuda.runtime`."""


class CUDADriverError(_NumberedError):
    """As in `cupy.cuda.driver`."""


class OutOfMemoryError(MemoryError):
    """As in `cupy.cuda.memory`."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes).")


def n_devices() -> int:
    return int(os.environ.get("F5PY_PLAYED_DEVICES", 1))


def memory_of_a_device() -> int:
    return int(os.environ.get("F5PY_PLAYED_MEMORY", 256 << 20))


def current_device() -> int:
    return getattr(_here, "device", 0)


def take(size: int) -> None:
    """Count memory of the current device."""
    for hook in _hooks:
        hook.malloc_preprocess(device_id=current_device(), size=size, mem_size=size)
    device = current_device()
    _used[device] = _used.get(device, 0) + size
    if _used[device] > memory_of_a_device():
        _used[device] -= size
        raise OutOfMemoryError(size, _used[device])


def _device_count() -> int:
    faults.pass_by("driver")
    faults.pass_by("devices")
    return n_devices()


def _properties(number: int) -> dict:
    return {"name": b"Played GPU", "major": 9, "minor": 0, "integrated": 0}


_registered: dict[int, int] = {}


def _register(address: int, size: int, flags: int) -> None:
    faults.pass_by("memory")
    assert address % 4096 == 0
    if any(first < address + size and address < first + length for first, length in _registered.items()):
        raise CUDARuntimeError(712, "cudaErrorHostMemoryAlreadyRegistered: part of the memory range is already mapped")
    _registered[address] = size


runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError, getDeviceCount=_device_count, getDeviceProperties=_properties,
    hostRegister=_register, hostUnregister=_registered.pop, driverGetVersion=lambda: 13000,
    runtimeGetVersion=lambda: 12090,
)  # fmt: skip
driver = SimpleNamespace(CUDADriverError=CUDADriverError)
memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)


class Device:
    def __init__(self, number: int) -> None:
        self.number = number

    def use(self) -> None:
        _here.device = self.number
        faults.pass_by("busy")

    @property
    def compute_capability(self) -> str:
        return "90"

    @property
    def mem_info(self) -> tuple[int, int]:
        total = memory_of_a_device()
        return total - _used.get(self.number, 0), total


class Stream:
    """Work that is done, in order, when somebody waits for it."""

    def __init__(self, non_blocking: bool = False) -> None:
        self.device = current_device()
        self._queued: list = []
        self._lock = threading.Lock()
        self._before: Stream | None = None

    def __enter__(self) -> Stream:
        self._before, _here.stream = getattr(_here, "stream", None), self
        return self

    def __exit__(self, *_) -> None:
        _here.stream = self._before

    def queue(self, work, kind: str) -> None:
        assert current_device() == self.device, "the stream belongs to another device than the thread's current one"
        if kind == "launch":
            faults.pass_by("launch")
        with self._lock:
            self._queued.append(work)

    def synchronize(self, last=None) -> None:
        """Do what has been queued: up to where `last` was queued for the last time, if that is given."""
        faults.pass_by("lost")
        with self._lock:
            n = len(self._queued)
            if last is not None:
                n -= next((i for i, work in enumerate(reversed(self._queued)) if work == last), n)
            queued, self._queued = self._queued[:n], self._queued[n:]
        for work in queued:
            work()


_default: dict[int, Stream] = {}


def current_stream() -> Stream:
    """Return the stream of a ``with`` block, or the current device's own."""
    stream = getattr(_here, "stream", None)
    return stream or _default.setdefault(current_device(), Stream())


get_current_stream = current_stream


class Event:
    """A point in a stream's work."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.seconds: float | None = None
        self._stream: Stream | None = None

    def record(self, stream: Stream | None = None) -> None:
        self._stream = stream or current_stream()
        self._stream.queue(self._note, "event")

    def synchronize(self) -> None:
        if self._stream is not None:
            self._stream.synchronize(self._note)

    def _note(self) -> None:
        self.seconds = time.perf_counter()


def get_elapsed_time(one: Event, other: Event) -> float:
    assert one.seconds is not None
    assert other.seconds is not None
    return 1e3 * (other.seconds - one.seconds)


class _PinnedMemory(np.ndarray):
    """Bytes that know their address, as the memory that cupy gives."""

    ptr: int
    bytes: np.ndarray


def alloc_pinned_memory(size: int) -> _PinnedMemory:
    faults.pass_by("memory")
    made = filled(size, 0x5A).view(_PinnedMemory)
    made.ptr, made.bytes = made.ctypes.data, made.view(np.ndarray)
    return made


class UnownedMemory:
    def __init__(self, ptr: int, size: int, owner) -> None:
        self.bytes = owner.bytes[:size]


class MemoryPointer:
    def __init__(self, memory: UnownedMemory, offset: int) -> None:
        self.memory, self.offset = memory, offset


class MemoryHook:
    def __enter__(self) -> MemoryHook:
        _hooks.append(self)
        return self

    def __exit__(self, *_) -> None:
        _hooks.remove(self)

    def malloc_preprocess(self, **_) -> None:
        """Do what has been asked for before memory is taken."""
