"""Finding a usable GPU, and saying why there is none."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from f5py.errors import F5pyError
from f5py.gpu.arena import reclaimable_memory

NO_CUPY = "cupy is not installed (pip install 'f5py[cuda12]' or 'f5py[cuda13]', as nvidia-smi says)"

#: What the drivers of NVIDIA's cards and of Jetson boards make.
_DEVICES = ("/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/nvgpu")
#: Oldest architecture the kernels are tested for (Jetson Xavier).
MIN_COMPUTE_CAPABILITY = (7, 2)


def is_present() -> bool:
    """Whether the machine seems to have a GPU, as far as can be told without its libraries."""
    return any(map(os.path.exists, _DEVICES))


class GpuUnavailableError(F5pyError):
    """No GPU can be used; the message says why and what to do."""


@dataclass(frozen=True)
class GpuDevice:
    """A GPU that can run the aligner.

    Attributes
    ----------
    number : int
        CUDA device number.
    name : str
    compute_capability : (int, int)
    integrated : bool
        The GPU shares the host's memory, as on a Jetson board.
    free_memory, total_memory : int
        Bytes. On an integrated GPU the free memory includes the page cache.
    """

    number: int
    name: str
    compute_capability: tuple[int, int]
    integrated: bool
    free_memory: int
    total_memory: int


def open_device(number: int) -> GpuDevice:
    """Make CUDA device `number` the current one of this thread.

    Raises
    ------
    GpuUnavailableError
    """
    if importlib.util.find_spec("cupy") is None:
        raise GpuUnavailableError(NO_CUPY)
    import cupy

    runtime = cupy.cuda.runtime
    try:
        n_devices = runtime.getDeviceCount()
        if n_devices == 0:
            raise GpuUnavailableError("there is no CUDA device")
        if number >= n_devices:
            raise GpuUnavailableError(f"there is no CUDA device {number} (--cuda-dev-id); there are {n_devices}")
        device = cupy.cuda.Device(number)
        device.use()
        properties = runtime.getDeviceProperties(number)
        free, total = device.mem_info
    except runtime.CUDARuntimeError as problem:
        raise GpuUnavailableError(_why(str(problem))) from None
    except ImportError as problem:
        raise GpuUnavailableError(f"cupy cannot load the CUDA libraries: {str(problem).splitlines()[0]}") from None
    name = properties["name"].decode()
    capability = properties["major"], properties["minor"]
    if capability < MIN_COMPUTE_CAPABILITY:
        raise GpuUnavailableError(f"{name} has compute capability {capability[0]}.{capability[1]}; 7.2 is needed")
    integrated = bool(properties["integrated"])
    if integrated:
        free = min(free + reclaimable_memory(Path("/proc/meminfo").read_text()), total)
    return GpuDevice(number, name, capability, integrated, free, total)


def _why(problem: str) -> str:
    if "InsufficientDriver" in problem:
        return "the NVIDIA driver is too old for the installed cupy; update it, or: pip install 'f5py[cuda12]'"
    if "NoDevice" in problem:
        return "there is no CUDA device"
    return f"CUDA does not work: {problem.splitlines()[0]}"


def cuda_errors() -> tuple[type[Exception], ...]:
    """What cupy raises when the device or its memory fails."""
    import cupy

    return (
        cupy.cuda.runtime.CUDARuntimeError,
        cupy.cuda.driver.CUDADriverError,
        cupy.cuda.memory.OutOfMemoryError,
    )


def first_line(problem: Exception) -> str:
    """Return the first line of an error's message."""
    return (str(problem) or type(problem).__name__).splitlines()[0]


def free_pools() -> None:
    """Give the memory that cupy keeps for later back to the device and the system."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
