"""Detection of usable GPUs, the errors of missing ones, and their start in threads."""

import ctypes
import importlib.util
import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from f5py.compute.gpu.arena import reclaimable_memory
from f5py.compute.gpu.placement import Backend
from f5py.errors import F5pyError, pip_install
from f5py.messages import console
from f5py.options.shared import GpuOptions, device_numbers

_PIP = f"{pip_install('cuda12')}, or 13 for both, as nvidia-smi says"
NO_CUPY = f"cupy is not installed ({_PIP})"

#: What the drivers of NVIDIA's cards, of Jetson boards and of Windows's subsystem for Linux make.
_DEVICES = ("/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/nvgpu", "/dev/dxg")
_NO_DEVICE = "there is no CUDA device"
_INSTALL = f"install it again: {_PIP}"
_NO_MEMORY = ("MemoryAllocation", "out of memory", "Out of memory", "OUT_OF_MEMORY")
#: What is in the message of an error, and what to say then.
_REMEDIES = (
    ("InsufficientDriver", "the NVIDIA driver is missing, or too old for the installed cupy; update it, or: "
     f"{pip_install('cuda12')}"),
    ("NoDevice", _NO_DEVICE),
    ("nvrtc", f"CUDA's run-time compiler is missing ({{}}); this brings it: {_PIP}"),
    ("DevicesUnavailable", "another program has the GPU for itself ({}); nvidia-smi shows which"),
    ("LaunchFailure", "{}; if it happens again, look for Xid errors in the kernel's log (dmesg)"),
)  # fmt: skip
_loading = threading.Lock()
#: Oldest architecture the kernels are tested for (Jetson Xavier).
MIN_COMPUTE_CAPABILITY = (7, 2)

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

    Closing the iterator early closes devices that are still being opened. `numbers` is None for all devices; `open_one`
    is called in several threads.
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
    left: set[Future[DeviceBackend]] = set()
    told: set[str] = set()
    executor = ThreadPoolExecutor(max(len(numbers), 1), initializer=_name_thread)
    try:
        try:
            left.update(executor.submit(open_one, number) for number in numbers)
        except RuntimeError as problem:  # no thread can be started, as where the interpreter is ending
            yield problem
        executor.shutdown(wait=False)
        for future in as_completed(left.copy()):
            left.remove(future)
            if (failure := future.exception()) is None:
                yield future.result()
            elif str(failure) not in told:
                told.add(str(failure))
                yield cast(Exception, failure)
    finally:
        for future in left:
            future.add_done_callback(_close_opened)


def _name_thread() -> None:
    threading.current_thread().name = START_THREAD


def _close_opened(future: Future[DeviceBackend]) -> None:
    """Close a device that nobody has claimed."""
    if future.exception() is None:
        close_gpu(future.result())


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


def may_use_gpus(use: str) -> bool:
    """Return whether ``--gpu`` allows GPUs and CuPy is installed; report a missing one."""
    if use == "off":
        return False
    if importlib.util.find_spec("cupy") is None:
        if use == "on" or is_present():
            report_unavailable(NoGpuError(NO_CUPY), use == "on")
        return False
    return True


def report_unavailable(problem: Exception, is_asked_for: bool) -> None:
    """Report why a GPU is not used; a missing one is a warning only if requested."""
    say = console.info if isinstance(problem, NoGpuError) and not is_asked_for else console.warning
    say(WHO, f"no GPU is used: {remedy(problem)}; the CPU threads compute all")


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

    `numbers` is None for all devices.
    """
    if driver.cuInit(0):
        return
    n_devices, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    driver.cuDeviceGetCount(ctypes.byref(n_devices))
    for number in range(n_devices.value) if numbers is None else numbers:
        if driver.cuDeviceGet(ctypes.byref(device), number) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def versions() -> dict[str, str]:
    """Return the versions of CuPy, the driver, CUDA's run-time library and NVRTC, or the error of each."""
    import cupy
    from cupy.cuda import nvrtc, runtime

    return {
        "CuPy": str(cupy.__version__),
        "CUDA of the driver": _or_error(lambda: _format_version(runtime.driverGetVersion())),
        "CUDA of the run-time library": _or_error(lambda: _format_version(runtime.runtimeGetVersion())),
        "NVRTC": _or_error(lambda: ".".join(map(str, nvrtc.getVersion()))),
    }


def _or_error(version: Callable[[], str]) -> str:
    try:
        return version()
    except Exception as problem:  # what cannot be used is said where it is tried
        return f"cannot be told ({(str(problem).strip() or type(problem).__name__).splitlines()[0]})"


def _format_version(number: int) -> str:
    """Format CUDA's 12060 as 12.6."""
    return f"{number // 1000}.{number % 1000 // 10}"


def is_present() -> bool:
    """Return whether a GPU seems present, without loading its libraries."""
    return any(map(os.path.exists, _DEVICES))


def n_devices_likely() -> int:
    """Count GPUs without loading their libraries; at least one."""
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES", ""):
        return visible.count(",") + 1
    return max(sum(path.name[len("nvidia") :].isdigit() for path in Path("/dev").glob("nvidia[0-9]*")), 1)


class GpuUnavailableError(F5pyError):
    """No GPU is usable; the message has reason and remedy."""


class NoGpuError(GpuUnavailableError):
    """GPU or CuPy is missing."""


class GpuFailure(F5pyError):
    """A GPU operation failed."""


@dataclass(frozen=True)
class GpuDevice:
    """A usable CUDA device."""

    number: int  # CUDA device number
    name: str
    compute_capability: tuple[int, int]
    integrated: bool  # the GPU shares the host's memory, as on a Jetson board
    # free_memory, total_memory: bytes. On an integrated GPU the free memory includes the page cache.
    free_memory: int
    total_memory: int


def load_cupy() -> Any:
    """Import CuPy under a lock: concurrent imports can see it half initialized."""
    with _loading:
        import cupy
    return cupy


def count_devices() -> int:
    """Count the CUDA devices, at least one. Raises `GpuUnavailableError`."""
    if importlib.util.find_spec("cupy") is None:
        raise NoGpuError(NO_CUPY)
    try:
        n_devices = load_cupy().cuda.runtime.getDeviceCount()
    except Exception as problem:  # an installation can be broken in many ways
        is_absent = "NoDevice" in str(problem) or ("InsufficientDriver" in str(problem) and not is_present())
        raise (NoGpuError if is_absent else GpuUnavailableError)(remedy(problem)) from problem
    if n_devices == 0:
        raise NoGpuError(_NO_DEVICE)
    return n_devices


def open_device(number: int) -> GpuDevice:
    """Make CUDA device `number` current in this thread. Raises `GpuUnavailableError`."""
    n_devices = count_devices()
    if number >= n_devices:
        raise GpuUnavailableError(f"there is no CUDA device {number} (--cuda-dev-id); there are {n_devices}")
    import cupy

    try:
        device = cupy.cuda.Device(number)
        device.use()
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        free, total = device.mem_info
    except Exception as problem:
        raise GpuUnavailableError(remedy(problem)) from problem
    name = properties["name"].decode()
    capability = properties["major"], properties["minor"]
    if capability < MIN_COMPUTE_CAPABILITY:
        raise GpuUnavailableError(f"{name} has compute capability {capability[0]}.{capability[1]}; 7.2 is needed")
    integrated = bool(properties["integrated"])
    if integrated:
        free = min(free + reclaimable_memory(Path("/proc/meminfo").read_text()), total)
    return GpuDevice(number, name, capability, integrated, free, total)


def remedy(problem: Exception) -> str:
    """Format a GPU error as one line with a remedy."""
    what = first_line(problem)
    if isinstance(problem, GpuUnavailableError):
        return what
    if is_out_of_memory(problem):
        return f"there is too little free GPU memory ({what}); end other programs on it, or lower -B"
    for sign, text in _REMEDIES:
        if sign in what:
            return text.format(what)
    if isinstance(problem, ImportError | OSError | AttributeError):
        return f"cupy cannot be loaded ({what}); {_INSTALL}"
    return f"{what} ({type(problem).__name__})"


def is_out_of_memory(problem: Exception) -> bool:
    """Return whether device or pinned memory is exhausted."""
    return isinstance(problem, MemoryError) or any(sign in str(problem) for sign in _NO_MEMORY)


def first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


def guarded(number: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on device `number`, turning every exception into `GpuFailure`."""
    import cupy

    try:
        cupy.cuda.Device(number).use()
        return function(*arguments)
    except Exception as problem:  # cupy and what it loads raise all kinds of them
        raise GpuFailure(remedy(problem)) from problem


def free_pools() -> None:
    """Free CuPy's memory pools."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
