"""Start GPUs in parallel, each in its own thread."""

from __future__ import annotations

import ctypes
import importlib.util
import queue
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, Protocol

from f5py.compute.gpu.device import count_devices, is_present, load_cupy, remedy
from f5py.compute.gpu.placement import Backend
from f5py.messages import console
from f5py.options.gpu import GpuOptions, device_numbers

#: Whose messages are printed.
WHO = "init_cuda"
#: Name of the threads in which GPUs are started. They are no daemons: an interpreter that ends in the middle of it,
#: where a program calls us, would not end well.
START_THREAD = "f5py-gpu-start"
#: CUDA's driver library, also on Jetson boards and in Windows's subsystem for Linux.
_DRIVER = "libcuda.so.1"
#: Makes contexts early, see `load_early`.
_early: threading.Thread | None = None


class DeviceBackend(Backend, Protocol):
    """A backend on a named device, which may fail."""

    name: str

    @property
    def is_broken(self) -> bool:
        """Whether the device has failed, so that the CPU threads do its work."""
        ...


def open_gpus(
    numbers: list[int] | None, open_one: Callable[[int], DeviceBackend]
) -> Generator[DeviceBackend | Exception, None, None]:
    """Open devices in parallel; yield each when ready, or the exception that prevents it, equal ones once.

    Closing the iterator early closes devices that are still being opened.

    Parameters
    ----------
    numbers : list of int or None
        CUDA device numbers; None for all devices.
    open_one : callable of a device number
        Called in several threads.
    """
    if _early is not None:  # what asks CUDA meanwhile waits with the interpreter in its hands
        _early.join()
    try:
        numbers = list(range(count_devices())) if numbers is None else numbers
    except Exception as problem:
        yield problem
        return
    with suppress(Exception):  # told by those that need it
        load_cupy()
    openers = _Openers(open_one)
    told: set[str] = set()
    try:
        for number in numbers:
            openers.start(number)
        for _ in numbers:
            found = openers.ready.get()
            if isinstance(found, Exception):
                if str(found) in told:
                    continue
                told.add(str(found))
            yield found
    finally:
        openers.give_up()


class _Openers:
    """Threads that each open a device."""

    def __init__(self, open_one: Callable[[int], DeviceBackend]) -> None:
        self.ready: queue.SimpleQueue[DeviceBackend | Exception] = queue.SimpleQueue()
        self._open_one = open_one
        self._given_up = False
        self._lock = threading.Lock()

    def start(self, number: int) -> None:
        threading.Thread(target=self._open, args=[number], name=START_THREAD).start()

    def _open(self, number: int) -> None:
        found: DeviceBackend | Exception = RuntimeError(f"the start of GPU {number} was ended")
        try:
            found = self._open_one(number)
        except Exception as problem:  # cupy and what it loads raise all kinds of them
            found = problem
        finally:
            with self._lock:
                is_wanted = not self._given_up
                if is_wanted:
                    self.ready.put(found)
            if not is_wanted and not isinstance(found, Exception):
                close_gpu(found)

    def give_up(self) -> None:
        """Close opened devices that nobody claimed, and all that open later."""
        with self._lock:
            self._given_up = True
        with suppress(queue.Empty):
            while True:
                found = self.ready.get_nowait()
                if not isinstance(found, Exception):
                    close_gpu(found)


def close_gpu(gpu: DeviceBackend) -> None:
    """Close a device; warn on failure."""
    try:
        gpu.close()
    except Exception as problem:
        console.warning(WHO, f"{gpu.name} could not be closed: {remedy(problem)}")


def is_starting() -> bool:
    """Return whether a thread is starting a GPU, which cannot be interrupted."""
    return any(thread.name == START_THREAD for thread in threading.enumerate())


def may_be_there(options: GpuOptions) -> bool:
    """Return whether GPUs are allowed and seem present, without loading their libraries."""
    return options.gpu_use != "off" and is_present() and importlib.util.find_spec("cupy") is not None


def load_early(options: GpuOptions, is_wanted: Callable[[], bool]) -> bool:
    """Load CUDA libraries and create contexts in threads while the run reads its indices.

    Return whether that has begun: a GPU is allowed, seems present, and `is_wanted` returns true.
    """
    if not may_be_there(options) or not is_wanted():
        return False
    numbers = device_numbers(options.cuda_dev_id)

    def make_contexts() -> None:
        with suppress(OSError, AttributeError):  # without CUDA's library nothing is ready; told when it is needed
            _make_contexts(ctypes.CDLL(_DRIVER), numbers)

    contexts = threading.Thread(target=make_contexts, name=START_THREAD)

    def load() -> None:
        with suppress(Exception):  # told when the device is opened
            runtime = load_cupy().cuda.runtime
            contexts.join()
            for number in range(runtime.getDeviceCount()) if numbers is None else numbers:
                runtime.setDevice(number)
                runtime.free(0)

    global _early
    _early = contexts
    contexts.start()
    threading.Thread(target=load, name=START_THREAD).start()
    return True


def _make_contexts(driver: Any, numbers: Sequence[int] | None) -> None:
    """Create the primary contexts through the driver API, which releases the GIL, unlike CuPy.

    Parameters
    ----------
    driver : ctypes.CDLL
        CUDA's driver library.
    numbers : sequence of int or None
        CUDA device numbers; None for all devices.
    """
    if driver.cuInit(0):
        return
    n_devices, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    driver.cuDeviceGetCount(ctypes.byref(n_devices))
    for number in range(n_devices.value) if numbers is None else numbers:
        if driver.cuDeviceGet(ctypes.byref(device), number) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
