"""As much of CuPy as the project uses, on devices that are played on the CPU.

Put the folder above this package on the module path, and `import cupy` finds it: whole runs then go through all that
happens on a GPU. Kernels are built by g++ behind `cuda_on_cpu.h`. Work that is queued in a stream is done when the
stream is waited for and not before, so that results that are read too early are not there yet. Device memory is filled
with a pattern: what a kernel reads must have been written.

Environment variables say what the machine is like:

``F5PY_PLAYED_DEVICES``
    Number of devices; 1 by default.
``F5PY_PLAYED_MEMORY``
    Bytes of each device; 256 MiB by default.
``F5PY_PLAYED_LANES``
    ``descending``: the lanes of a block run in this order between two meetings; it must not matter.
``F5PY_PLAYED_FAULT``
    What is broken, as ``KIND``, ``KIND@N`` (from the Nth time on) or ``KIND@N:DEVICE``: see `faults`.
``F5PY_PLAYED_BUILDS``
    Folder that built kernels are kept in.
"""

from __future__ import annotations

import numpy as np
from patterns import filled

from . import faults

faults.at_import()

from . import cuda, kernels  # noqa: E402

cuda.nvrtc = kernels.nvrtc
cuda.function = kernels

__all__ = [
    "asarray", "cuda", "empty", "get_default_memory_pool", "get_default_pinned_memory_pool", "ndarray",
]  # fmt: skip


__version__ = "14.0.0"


class ndarray:
    """Device memory; only copies and kernels come at what is in it."""

    def __init__(self, shape, dtype, memptr=None) -> None:
        self.dtype = np.dtype(dtype)
        count = int(np.prod(shape))
        if memptr is None:
            faults.pass_by("memory")
            cuda.take(count * self.dtype.itemsize)
            memory = filled(count * self.dtype.itemsize, 0xA5)
        else:
            memory = memptr.memory.bytes[memptr.offset : memptr.offset + count * self.dtype.itemsize]
        self.played = memory.view(self.dtype).reshape(shape)

    @property
    def nbytes(self) -> int:
        return self.played.nbytes

    def __len__(self) -> int:
        return len(self.played)

    def __getitem__(self, where) -> ndarray:
        part = object.__new__(ndarray)
        part.dtype, part.played = self.dtype, self.played[where]
        return part

    def view(self, dtype) -> ndarray:
        part = object.__new__(ndarray)
        part.dtype, part.played = np.dtype(dtype), self.played.view(dtype)
        return part

    def set(self, values, stream=None) -> None:
        assert values.dtype == self.dtype
        assert values.shape == self.played.shape
        (stream or cuda.current_stream()).queue(lambda: np.copyto(self.played, values), "copy")

    def get(self, stream=None, out=None, blocking=True):
        stream = stream or cuda.current_stream()
        out = np.empty_like(self.played) if out is None else out
        assert out.dtype == self.dtype
        assert out.shape == self.played.shape
        stream.queue(lambda: np.copyto(out, self.played), "copy")
        if blocking:
            stream.synchronize()
        return out


def empty(shape, dtype=np.float64) -> ndarray:
    return ndarray(shape, dtype)


def asarray(values) -> ndarray:
    made = ndarray(values.shape, values.dtype)
    kept = values.copy()
    cuda.current_stream().queue(lambda: np.copyto(made.played, kept), "copy")
    return made


class _Pool:
    def free_all_blocks(self) -> None:
        faults.pass_by("free")


def get_default_memory_pool() -> _Pool:
    return _Pool()


def get_default_pinned_memory_pool() -> _Pool:
    return _Pool()
