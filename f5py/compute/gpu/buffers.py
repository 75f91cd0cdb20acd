"""Buffers of a batch on the device, and the pinned host buffers that fill them."""

import ctypes
import itertools
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.arena import ArenaSize
from f5py.core.batch import StoredSamples
from f5py.core.large_arrays import private_memory
from f5py.core.offsets import offsets_of, rounds_of_reads
from f5py.jit.c_memory import address_of_data
from f5py.jit.instructions import BLOCK, end_stream, stream_block
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import CallingThread, WorkerPool, threads_for

#: Samples are by far the most that is copied; they pass through no more of the host's memory than this.
_STAGED_BYTES = 64 << 20
#: So many are copied by the thread that needs them before those of the pool are done with what they are at.
_FEW_BYTES = 8 << 20
#: What is copied for all reads at the same time: before the events, before the alignment and after it; and for warps.
#: Every copy costs the interpreter as much as the bytes of a few thousand reads.
_TOGETHER = (
    "sample_offsets slots sample_order offset unit",
    "p q slot_of order lp_step lp_stay",
    "n_pairs span verdict n_used shift scale fit_shift fit_scale fit_var",
    "work_offsets warp_columns warp_rows",
)

_PAGE, _ALIGNMENT = 4096, 64
#: So many threads take so many bytes each time from the system.
_TAKING, _TAKEN = 4, 8 << 20

#: What could not be taken from a device.
_never_freed: list[NDArray[np.uint8]] = []


def aligned_size(count: int, dtype: np.dtype) -> int:
    """Size of an array rounded up to the alignment."""
    return -(-count * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT


class PinnedMemory:
    """A block of pinned host memory, registered rather than allocated by CUDA."""

    def __init__(self, size: int) -> None:
        import cupy

        size = max(-(-size // _PAGE), 1) * _PAGE
        # private, as shared memory has small pages only; and a child process must not have it, or what is written next
        # would go to a copy that the device does not know
        held = np.frombuffer(private_memory(size, "MADV_DONTFORK"), np.uint8)
        self._bytes: NDArray[np.uint8] | None = None
        self._used = 0
        _touch_pages(held)
        cupy.cuda.runtime.hostRegister(held.ctypes.data, size, 0)
        self._bytes = held
        self._unregister = cupy.cuda.runtime.hostUnregister  # whoever collects garbage may be importing something

    def allocate(self, count: int, dtype: np.dtype) -> NDArray:
        """Allocate an array in the block."""
        assert self._bytes is not None
        first = self._used
        self._used += aligned_size(count, dtype)
        return self._bytes[first : first + count * dtype.itemsize].view(dtype)

    def close(self) -> None:
        """Unregister the memory; the last array in it frees it. May be called twice."""
        held, self._bytes = self._bytes, None
        if held is None:
            return
        try:
            self._unregister(held.ctypes.data)
        except Exception:  # a lost device; other memory at this address could not be registered
            _never_freed.append(held)

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


def _touch_pages(memory: NDArray[np.uint8]) -> None:
    """Touch all pages in several threads: CUDA would do so in one, holding the GIL."""
    first, size = memory.ctypes.data, len(memory)
    with ThreadPoolExecutor(_TAKING, "f5py-pages") as threads:
        for at in range(0, size, _TAKEN):
            threads.submit(ctypes.memset, first + at, 0, min(_TAKEN, size - at))


@inner
def _copy(values, to):
    """Copy an array; a slice assignment takes ten times as long to compile."""
    for i in range(values.shape[0]):
        to[i] = values[i]


@inner
def _stream(values, to):
    """Copy with non-temporal stores, for data that only the device reads."""
    n = values.shape[0]
    first = min(n, -address_of_data(to) & (BLOCK - 1))
    end = n - (n - first) % BLOCK
    _copy(values[:first], to[:first])
    for i in range(first, end, BLOCK):
        stream_block(to, i, values, i)
    _copy(values[end:], to[end:])
    end_stream()


@kernel
def gather(queue, reads, offsets, values, gathered_offsets, gathered):
    """Concatenate the bytes of `reads`: read ``reads[i]`` goes to ``gathered[gathered_offsets[i]:]``.

    Parameters
    ----------
    offsets, gathered_offsets : int64
        In bytes, of all reads of the batch, and of `reads`.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        first = offsets[reads[i]]
        n = offsets[reads[i] + 1] - first
        to = gathered_offsets[i]
        _stream(values[first : first + n], gathered[to : to + n])


@kernel
def scatter(queue, reads, gathered_offsets, gathered, offsets, values):
    """Undo `gather`.

    Parameters
    ----------
    values : uint8
        Filled for `reads`.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        first = offsets[reads[i]]
        n = offsets[reads[i] + 1] - first
        from_ = gathered_offsets[i]
        _copy(gathered[from_ : from_ + n], values[first : first + n])


@kernel
def scatter_maps(queue, reads, k, p, gathered, base_map):
    """Copy the base-to-event maps of `reads` back; -1 for the last k - 1 bases of each read.

    Parameters
    ----------
    p : int64, shape (len(reads) + 1,)
        Offsets of the reads' bases in `gathered`.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        n_kmers = p[i + 1] - p[i] - k + 1
        first = base_map.offsets[reads[i]]
        _copy(gathered.first_event[p[i] : p[i] + n_kmers], base_map.first_event[first : first + n_kmers])
        _copy(gathered.last_event[p[i] : p[i] + n_kmers], base_map.last_event[first : first + n_kmers])
        base_map.first_event[first + n_kmers : first + n_kmers + k - 1] = -1
        base_map.last_event[first + n_kmers : first + n_kmers + k - 1] = -1


class TransferredArrays:
    """Device arrays with their pinned host arrays, and a stream.

    `arrays` and `scratch`, which only the device has, are given as space-separated names, number of elements and type.
    The names in an element of `together` are contiguous, and copied at once. With `zero_copy` the device works on host
    memory. `host` and `device` map names to arrays, and `waited` has the seconds spent in `wait`.
    """

    def __init__(
        self, arrays: Iterable[tuple[str, int, type]], zero_copy: bool, together: Sequence[str] = (),
        scratch: Iterable[tuple[str, int, type]] = (),
    ) -> None:  # fmt: skip
        import cupy

        self.stream = cupy.cuda.Stream(non_blocking=True)
        # Threads that wait for it leave the processor to others, which a stream's own waiting does not.
        self._done = cupy.cuda.Event(block=True, disable_timing=True)
        self.waited = 0.0
        self._zero_copy = zero_copy
        self.host: dict[str, NDArray] = {}
        self.device: dict[str, Any] = {}
        #: Of each array that is copied with others the memory of all of them, and where it begins.
        self._blocks: dict[str, tuple[NDArray[np.uint8], Any, int]] = {}
        each = {name: (name, count, np.dtype(dtype)) for names, count, dtype in arrays for name in names.split()}
        on_host = (aligned_size(self._on_host(*one), one[2]) for one in each.values())
        self._memory = None if zero_copy else PinnedMemory(sum(on_host))
        try:
            for names in () if zero_copy else together:
                self._add_block([each.pop(name) for name in names.split()])
            for one in each.values():
                self._add(*one)
            for names, count, dtype in scratch:
                self.device |= {name: cupy.empty(count, dtype) for name in names.split()}
            self._add_more()
        except BaseException:
            self.close()
            raise

    def _on_host(self, name: str, count: int, dtype: np.dtype) -> int:
        """Return the number of elements that the host array holds at a time."""
        return count

    def _add_more(self) -> None:
        """Allocate further arrays that only the device has."""

    def _add(self, name: str, count: int, dtype: np.dtype) -> None:
        import cupy

        if self._memory is not None:
            self.host[name] = self._memory.allocate(self._on_host(name, count, dtype), dtype)
            self.device[name] = cupy.empty(count, dtype)
            return
        size = max(count, 1) * dtype.itemsize
        pinned = cupy.cuda.alloc_pinned_memory(size)
        self.host[name] = np.frombuffer(pinned, dtype, count)
        # Host and device addresses of pinned memory are the same where addressing is unified.
        memory = cupy.cuda.UnownedMemory(pinned.ptr, size, pinned)
        self.device[name] = cupy.ndarray(count, dtype, cupy.cuda.MemoryPointer(memory, 0))

    def _add_block(self, arrays: list[tuple[str, int, np.dtype]]) -> None:
        import cupy

        assert self._memory is not None
        places = offsets_of([aligned_size(count, dtype) for _, count, dtype in arrays]).tolist()
        host, device = self._memory.allocate(places[-1], np.dtype(np.uint8)), cupy.empty(places[-1], np.uint8)
        for place, (name, count, dtype) in zip(places, arrays, strict=False):
            own = slice(place, place + count * dtype.itemsize)
            self.host[name], self.device[name] = host[own].view(dtype), device[own].view(dtype)
            self._blocks[name] = host, device, place

    def close(self) -> None:
        """Free the host memory; no copy may be in progress."""
        self.host.clear()
        self.device.clear()
        self._blocks.clear()
        if self._memory is not None:
            self._memory.close()

    def pairs(self, name: str, n: int) -> NDArray:
        """Return the first `n` pairs of numbers of a host array."""
        return self.host[name][: 2 * n].reshape(n, 2)

    def upload(self, name: str, count: int, to: int = 0, begin: int = 0) -> None:
        """Queue the copy of `count` elements from `begin` of the host array to `to` of the device array."""
        if not self._zero_copy and count:
            self.device[name][to : to + count].set(self.host[name][begin : begin + count], stream=self.stream)

    def put(self, name: str, values: NDArray) -> None:
        """Fill the host array from its start, and queue the copy."""
        self.host[name][: len(values)] = values
        self.upload(name, len(values))

    def put_together(self, **values: NDArray) -> None:
        """Fill host arrays that are contiguous in this order, and queue one copy."""
        for name, of_name in values.items():
            self.host[name][: len(of_name)] = of_name
        if not self._zero_copy:
            names = list(values)
            host, device = self._span(names[0], names[-1], len(values[names[-1]]))
            device.set(host, stream=self.stream)

    def _span(self, first: str, last: str, count: int) -> tuple[NDArray[np.uint8], Any]:
        """Return the memory from one array to `count` elements of another, on host and device."""
        host, device, begin = self._blocks[first]
        span = slice(begin, self._blocks[last][2] + count * self.host[last].itemsize)
        return host[span], device[span]

    def wait(self) -> None:
        """Wait for all queued work."""
        self._done.record(self.stream)
        self._wait_for(self._done)

    def _wait_for(self, event: Any) -> None:
        started = time.perf_counter()
        event.synchronize()
        self.waited += time.perf_counter() - started

    def launch(self, function: Any, n_blocks: int, n_threads: int, *arguments: Any) -> None:
        """Queue a kernel; string arguments name device arrays, integers are passed as int32."""
        values = (
            self.device[one] if isinstance(one, str) else np.int32(one) if isinstance(one, int) else one
            for one in arguments
        )
        function((n_blocks,), (n_threads,), tuple(values))

    def download(self, name: str, count: int) -> None:
        """Queue the copy of the first `count` elements to the host."""
        if not self._zero_copy and count:
            self.device[name][:count].get(stream=self.stream, out=self.host[name][:count], blocking=False)

    def download_together(self, names: Sequence[str], count: int) -> None:
        """Queue one copy of `count` elements of each of arrays that are contiguous in this order."""
        if not self._zero_copy and count:
            host, device = self._span(names[0], names[-1], count)
            device.get(stream=self.stream, out=host, blocking=False)


class ArenaPart(TransferredArrays):
    """One part of the arena.

    ``slot_start``, ``slot_mean`` and ``slot_stdv`` share the memory of ``trace``, which is unused during event
    detection.
    """

    def __init__(self, size: ArenaSize, zero_copy: bool) -> None:
        import cupy

        self.size = size
        #: Of what is copied by halves, when that has been done with each of them.
        self._copied = [cupy.cuda.Event(block=True, disable_timing=True) for _ in range(2)]
        super().__init__(_transferred(size), zero_copy, _TOGETHER)

    def _on_host(self, name: str, count: int, dtype: np.dtype) -> int:
        return min(count, _STAGED_BYTES // dtype.itemsize) if name == "samples" else count

    def _add_more(self) -> None:
        import cupy

        size = self.size
        self.device["kmers"] = cupy.empty((size.bases, 4), np.float32)
        trace = self.device["trace"] = cupy.empty(size.trace_words, np.uint32)
        self.device["best_event"] = cupy.empty(size.reads, np.int32)
        self.device["corner"] = cupy.empty(size.reads, np.int32)
        n = size.slots
        self.device["slot_start"] = trace[:n].view(np.int32)
        self.device["slot_mean"] = trace[n : 2 * n].view(np.float32)
        self.device["slot_stdv"] = trace[2 * n : 3 * n].view(np.float32)
        self.device["work"] = trace.view(np.float32)  # scores need no directions any more

    def put_reads(
        self,
        name: str,
        values: NDArray,
        offsets: NDArray[np.int64],
        reads: NDArray[np.int64],
        pool: WorkerPool,
        packed: StoredSamples | None = None,
    ) -> NDArray[np.int64]:
        """Upload a per-read array, concatenated; return its offsets, shape (len(reads) + 1,).

        Read i has ``values[offsets[i]:offsets[i + 1]]``; samples in `packed` are expanded while copying. A smaller host
        buffer is filled in rounds by `pool`: one half while the other is copied. The last copies may be in progress on
        return.
        """
        to, size = offsets_of(np.diff(offsets)[reads]), values.itemsize
        host = self.host[name]
        room = len(host) if to[-1] <= len(host) else len(host) // 2
        in_batch, as_bytes, host_bytes = offsets * size, values.view(np.uint8), host.view(np.uint8)
        rounds = itertools.count()
        for first, end in rounds_of_reads(to, room, len(reads)):
            if end > first:
                begin, n = int(to[first]), int(to[end] - to[first])
                with self._half(next(rounds)) as half:
                    in_host = to[first : end + 1] - begin + half * room
                    threads = threads_for(pool, n * size, _FEW_BYTES)
                    if packed is None:
                        threads.run(gather, reads[first:end], in_batch, as_bytes, in_host * size, host_bytes)
                    else:
                        packed.expand(reads[first:end], in_host[:-1], host, threads)
                    self.upload(name, n, begin, half * room)
                continue
            if packed is not None:
                packed.expand(reads[first : first + 1], offsets[reads[first : first + 1]], values, CallingThread())
            for begin in range(int(to[first]), int(to[first + 1]), room):  # a read that is longer than the room
                n = min(room, int(to[first + 1]) - begin)
                at = int(offsets[reads[first]]) + begin - int(to[first])
                with self._half(next(rounds)) as half:
                    host[half * room : half * room + n] = values[at : at + n]
                    self.upload(name, n, begin, half * room)
        return to

    @contextmanager
    def _half(self, number: int) -> Iterator[int]:
        """Wait until the copy from this half of the buffer two rounds ago has finished."""
        half = number % 2
        if number > 1:
            self._wait_for(self._copied[half])
        yield half
        self._copied[half].record(self.stream)


def scatter_reads(
    gathered: NDArray,
    gathered_offsets: NDArray[np.int64],
    reads: NDArray[np.int64],
    values: NDArray,
    offsets: NDArray[np.int64],
    pool: WorkerPool,
) -> None:
    """Copy concatenated per-read values from a host array to the batch's, as bytes of any type.

    Read ``reads[i]`` starts at ``gathered_offsets[i]``; items of both arrays have one size.
    """
    size = values.itemsize
    pool.run(scatter, reads, gathered_offsets * size, gathered.view(np.uint8), offsets * size, values.view(np.uint8))


def copy_to_device(*arrays: NDArray) -> list[Any]:
    """Copy arrays to the current device, and wait."""
    import cupy

    made = [cupy.asarray(values) for values in arrays]
    cupy.cuda.get_current_stream().synchronize()
    return made


class DeviceTables:
    """Compiled kernels by name, and a cache of device arrays of pore models and motifs."""

    def __init__(self, functions: dict[str, Any]) -> None:
        self.functions = functions
        self.arrays: dict[Hashable, Any] = {}

    def cached(self, key: Hashable, values: Callable[[], NDArray]) -> Any:
        """Return the array of that key, created from `values` on first use."""
        if key not in self.arrays:
            (self.arrays[key],) = copy_to_device(values())
        return self.arrays[key]

    def levels(self, model: PoreModel) -> Any:
        """Level, stdv, ln(stdv) and padding of each rank; float32, shape (n, 4)."""

        def values() -> NDArray[np.float32]:
            table = np.zeros((len(model.level_mean), 4), np.float32)
            table[:, 0], table[:, 1], table[:, 2] = model.level_mean, model.level_stdv, model.ln_stdv
            return table

        return self.cached(id(model), values)  # models live as long as the run


def _transferred(size: ArenaSize) -> tuple[tuple[str, int, type], ...]:
    """Names, sizes and types of the copied arrays."""
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
        ("groups", 5 * size.groups, np.int32),
        ("found", 4 * size.groups, np.float32),
        ("work_offsets", size.groups // 16, np.int64),
        ("warp_columns warp_rows", size.groups // 16, np.int32),
        ("places", size.sites, np.int32),
        ("found_sites", 2 * size.sites, np.float64),
        ("windows site_warps", 7 * (size.sites // 2), np.int32),
        ("exponents", size.sites // 2, np.float64),
        ("site_work", size.sites // 2, np.int64),
        ("p_stay", size.reads if size.site_scores else 0, np.float64),
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
