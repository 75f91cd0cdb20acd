"""Memory for a batch on a GPU: arrays on the device, and those on the host that they are filled from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.gpu.arena import ArenaSize


class Half:
    """One half of the arena: device arrays, the pinned host arrays they are filled from or read into, and a stream.

    Attributes
    ----------
    size : ArenaSize
    host : dict of str to array
    device : dict of str to array
        All of `host`, and what stays on the device. ``slot_start``, ``slot_mean`` and ``slot_stdv`` lie in the memory
        of ``trace``, which is not in use before the events have been placed.
    stream : cupy.cuda.Stream
    """

    def __init__(self, size: ArenaSize, zero_copy: bool) -> None:
        import cupy

        self.size = size
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._zero_copy = zero_copy
        self.host: dict[str, NDArray] = {}
        self.device: dict[str, Any] = {}
        for names, count, dtype in _transferred(size):
            for name in names.split():
                self._add(name, count, np.dtype(dtype))
        self.device["kmers"] = cupy.empty((size.bases, 4), np.float32)
        trace = self.device["trace"] = cupy.empty(size.trace_words, np.uint32)
        self.device["best_event"] = cupy.empty(size.reads, np.int32)
        self.device["corner"] = cupy.empty(size.reads, np.int32)
        n = size.slots
        self.device["slot_start"] = trace[:n].view(np.int32)
        self.device["slot_mean"] = trace[n : 2 * n].view(np.float32)
        self.device["work"] = trace.view(np.float32)  # scores need no directions any more
        self.device["slot_stdv"] = trace[2 * n : 3 * n].view(np.float32)

    def _add(self, name: str, count: int, dtype: np.dtype) -> None:
        import cupy

        size = max(count, 1) * dtype.itemsize
        pinned = cupy.cuda.alloc_pinned_memory(size)
        self.host[name] = np.frombuffer(pinned, dtype, count)
        if self._zero_copy:
            # Host and device addresses of pinned memory are the same where addressing is unified.
            memory = cupy.cuda.UnownedMemory(pinned.ptr, size, pinned)
            self.device[name] = cupy.ndarray(count, dtype, cupy.cuda.MemoryPointer(memory, 0))
        else:
            self.device[name] = cupy.empty(count, dtype)

    def upload(self, name: str, count: int) -> None:
        """Start to copy the first `count` elements to the device."""
        if not self._zero_copy and count:
            self.device[name][:count].set(self.host[name][:count], stream=self.stream)

    def put(self, name: str, values: NDArray) -> None:
        """Fill the host array from the beginning, and start to copy."""
        self.host[name][: len(values)] = values
        self.upload(name, len(values))

    def download(self, name: str, count: int) -> None:
        """Start to copy the first `count` elements to the host."""
        if not self._zero_copy and count:
            self.device[name][:count].get(stream=self.stream, out=self.host[name][:count], blocking=False)


class Tables:
    """Device arrays that are made once: of pore models and motifs, of which a run has few."""

    def __init__(self) -> None:
        self._arrays: dict[Hashable, Any] = {}

    def kept(self, key: Hashable, values: Callable[[], NDArray]) -> Any:
        """The array of that key, made of `values` if it is new."""
        import cupy

        if key not in self._arrays:
            made = cupy.asarray(values())
            cupy.cuda.get_current_stream().synchronize()  # kernels of all streams use it
            self._arrays[key] = made
        return self._arrays[key]


def _transferred(size: ArenaSize) -> tuple[tuple[str, int, type], ...]:
    """Names, numbers of elements and types of the arrays that are copied."""
    further = size.reads if size.scores or size.rows else 0
    row_reads, row_events = (size.reads, size.events) if size.rows else (0, 0)
    return (
        ("samples", size.samples, np.int16),
        ("bases", size.bases, np.uint8),
        ("event_mean", size.events, np.float32),
        ("event_stdv", 0 if size.means_only else size.events, np.float32),
        ("event_start event_length", 0 if size.means_only else size.events, np.int32),
        ("first_event last_event", size.bases, np.int32),
        ("sample_offsets slots p q", size.reads + 1, np.int64),
        ("sample_order order slot_of n_events n_pairs span verdict n_used", size.reads, np.int32),
        ("reference", size.references, np.uint8),
        ("groups", 6 * size.groups, np.int32),
        ("found", 6 * size.groups, np.float32),
        ("work_offsets", size.groups // 16, np.int64),
        ("warp_columns warp_rows", size.groups // 16, np.int32),
        ("reference_offsets", further + 1, np.int64),
        ("is_reverse", further, np.int32),
        ("numbers", 3 * further, np.float32),
        ("cigar", size.cigars, np.uint32),
        ("cigar_offsets reference_start", row_reads + 1, np.int64),
        ("row_event row_position", row_events, np.int32),
        ("row_state", row_events, np.uint8),
        ("n_rows", row_reads, np.int32),
        ("ln_var", row_reads, np.float32),
        ("transitions", 8 * row_reads, np.float32),
        ("offset unit lp_step lp_stay shift scale fit_shift fit_scale fit_var", size.reads, np.float32),
    )
