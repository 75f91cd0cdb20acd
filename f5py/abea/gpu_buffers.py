"""The memory of the GPU aligner: arrays on the device, and those on the host that they are filled from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.gpu.arena import ArenaSize


class Half:
    """One half of the arena: device arrays, the pinned host arrays they are filled from, and a stream."""

    def __init__(self, size: ArenaSize, zero_copy: bool) -> None:
        import cupy

        self.size = size
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.started = cupy.cuda.Event()
        self.ended = cupy.cuda.Event()
        self._zero_copy = zero_copy
        self.host: dict[str, NDArray] = {}
        self.device: dict[str, Any] = {}
        transferred = {
            "bases": (size.bases, np.uint8),
            "event_mean": (size.events, np.float32),
            "p": (size.reads + 1, np.int64),
            "q": (size.reads + 1, np.int64),
            "order": (size.reads, np.int32),
            "shift": (size.reads, np.float32),
            "scale": (size.reads, np.float32),
            "lp_step": (size.reads, np.float32),
            "lp_stay": (size.reads, np.float32),
            "first_event": (size.bases, np.int32),
            "last_event": (size.bases, np.int32),
            "n_pairs": (size.reads, np.int32),
            "span": (size.reads, np.int32),
            "verdict": (size.reads, np.int32),
        }
        for name, (count, dtype) in transferred.items():
            pinned = cupy.cuda.alloc_pinned_memory(max(count, 1) * np.dtype(dtype).itemsize)
            self.host[name] = np.frombuffer(pinned, dtype, count)
            if zero_copy:
                # Host and device addresses of pinned memory are the same where addressing is unified.
                memory = cupy.cuda.UnownedMemory(pinned.ptr, count * np.dtype(dtype).itemsize, pinned)
                self.device[name] = cupy.ndarray(count, dtype, cupy.cuda.MemoryPointer(memory, 0))
            else:
                self.device[name] = cupy.empty(count, dtype)
        self.device["kmers"] = cupy.empty((size.bases, 4), np.float32)
        self.device["trace"] = cupy.empty(size.trace_words, np.uint32)
        self.device["best_event"] = cupy.empty(size.reads, np.int32)
        self.device["corner"] = cupy.empty(size.reads, np.int32)

    def upload(self, name: str, count: int) -> None:
        """Start to copy the first `count` elements to the device."""
        if not self._zero_copy and count:
            self.device[name][:count].set(self.host[name][:count], stream=self.stream)

    def download(self, name: str, count: int) -> None:
        """Start to copy the first `count` elements to the host."""
        if not self._zero_copy and count:
            self.device[name][:count].get(stream=self.stream, out=self.host[name][:count], blocking=False)
