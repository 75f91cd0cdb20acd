"""Signal source that reads in several processes.

HDF5 serializes reads within a process. Damaged files can make the libraries for HDF5, VBZ and POD5 abort or loop. A
dead process costs only the read or file at fault.
"""

from __future__ import annotations

import mmap
import os
import queue
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from f5py.core.large_arrays import recycled_array
from f5py.errors import SignalError
from f5py.io.files.memory_file import memory_descriptor
from f5py.io.files.signal_format import Kind
from f5py.io.signals.helper_process import STOPPED, HelperProcess, ProcessCrashError, answer_each, ready, send
from f5py.io.signals.source import FileReader, IndexedSource, SignalBlock, merge_blocks, paths_of, unreadable_block
from f5py.messages.console import input_warning
from f5py.threads.pool import keep_freed_memory

#: Larger shared memory shrinks when a quarter of it suffices.
_MOST_KEPT = 64 << 20
_SAMPLE_BYTES = 2
#: Faulty reads after which a file is blocked.
_MOST_DEADLY_READS = 3


class ProcessSource(IndexedSource):
    """Signals of indexed reads, read in processes by an importable reader.

    There are as many groups of processes as concurrent callers of `fetch`, at most one each. Raises `SignalError` if
    they cannot be started, also from `fetch`, as if one was killed.
    """

    def __init__(
        self,
        n_processes: int,
        paths: Mapping[str, str],
        reader: type[FileReader],
        kind: Kind | None = None,
        n_at_once: int = 1,
    ) -> None:
        super().__init__(paths, kind)
        self._reader = reader
        #: Reasons why files, and reads by name and file, are blocked.
        self._files: dict[str, str] = {}
        self._reads: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()  # for additions
        self._groups: list[ReaderGroup] = []
        self._free: queue.SimpleQueue[ReaderGroup] = queue.SimpleQueue()
        n_groups = min(n_at_once, n_processes)
        some_path = next(filter(None, paths.values()), "")
        try:
            for i in range(n_groups):
                n = n_processes // n_groups + (i < n_processes % n_groups)
                self._groups.append(ReaderGroup(n, reader, some_path))
                self._free.put(self._groups[-1])
        except BaseException:
            self.close()
            raise

    @property
    def is_concurrent(self) -> bool:
        return True

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        paths = paths_of(self._paths, names)
        while True:
            try:
                return self._fetch(names, paths)
            except ProcessCrashError as death:
                with self._lock:
                    self._find_crash_cause(death)

    def _run_info(self, name: str, path: str) -> dict[str, str]:
        if path in self._files:
            return {}
        try:
            with self._group() as group:
                found: dict[str, str] = group.ask((name, path), path)
                return found
        except ProcessCrashError as death:
            with self._lock:
                if path not in self._files:
                    self._give_up(path, death.how)
            return {}

    def list_reads(self, paths: Sequence[str], crash: str = "{path}: the file {how}; it is damaged") -> list[Any]:
        """Return `list_reads` of the reader for each file, or a text for one that crashes or hangs a process."""
        try:
            with self._group() as group:
                found: list[Any] = group.ask(list(paths), paths[0], len(paths))
                return found
        except ProcessCrashError as death:
            if len(paths) == 1:
                return [crash.format(path=paths[0], how=death.how)]
        return [found for path in paths for found in self.list_reads([path], crash)]

    def close(self) -> None:
        for group in self._groups:
            group.close()

    @contextmanager
    def _group(self) -> Iterator[ReaderGroup]:
        group = self._free.get()
        try:
            yield group
        finally:
            self._free.put(group)

    def _fetch(self, names: Sequence[str], paths: Sequence[str]) -> SignalBlock:
        """Read all but blocked reads."""
        whys = {}
        if self._files or self._reads:
            found = (self._why_blocked(name, path) for name, path in zip(names, paths, strict=True))
            whys = {i: why for i, why in enumerate(found) if why}
        with self._group() as group:
            if not whys:
                return group.fetch(names, paths)
            kept = [i for i in range(len(names)) if i not in whys]
            block = group.fetch([names[i] for i in kept], [paths[i] for i in kept])
        lost = unreadable_block([names[i] for i in whys], [paths[i] for i in whys], list(whys.values()))
        return merge_blocks(len(names), [(kept, block), (list(whys), lost)])

    def _why_blocked(self, name: str, path: str) -> str:
        return self._files.get(path) or self._reads.get((name, path), "")

    def _give_up(self, path: str, how: str) -> None:
        """Block a file."""
        self._files[path] = f"is in a file that {how}; it is damaged"
        _warn(path, how, "its reads are left out")

    def _find_crash_cause(self, death: ProcessCrashError) -> None:
        """Read a dead process's files one by one and block the faulty ones. Raise `SignalError` if there are none."""
        ((names, paths),) = death.process.requests
        of_file: dict[str, list[str]] = {}
        for name, path in zip(names, paths, strict=True):
            if not self._why_blocked(name, path):
                of_file.setdefault(path, []).append(name)
        is_found = sum(map(len, of_file.values())) < len(names)
        with closing(ReaderGroup(1, self._reader, paths[0])) as probe:
            for path, of_path in of_file.items():
                if (crash := _crash_of(probe, of_path, path)) is None:
                    continue
                is_found = True
                reads = {} if crash.is_loop else _crashing_reads(probe, of_path, path)
                earlier = sum(file == path for _, file in self._reads)
                if reads and earlier + len(reads) <= _MOST_DEADLY_READS:
                    self._reads.update(reads)
                    _warn(path, crash.how, f"{len(reads)} of its reads {'is' if len(reads) == 1 else 'are'} left out")
                else:
                    self._give_up(path, crash.how)
        if not is_found:
            raise SignalError(str(death)) from death


def _crash_of(probe: ReaderGroup, names: Sequence[str], path: str) -> ProcessCrashError | None:
    """Return how reading these reads crashes a process, if it does."""
    try:
        probe.fetch(names, [path] * len(names))
    except ProcessCrashError as death:
        return death
    return None


def _crashing_reads(probe: ReaderGroup, names: Sequence[str], path: str) -> dict[tuple[str, str], str]:
    """Find the reads of a file that crash the reader, by name and path, up to the limit for the file."""
    found: dict[tuple[str, str], str] = {}
    for name in dict.fromkeys(names):
        if (crash := _crash_of(probe, [name], path)) is not None:
            found[name, path] = f"{crash.how}; it is damaged"
        if len(found) > _MOST_DEADLY_READS:
            break
    return found


def _warn(path: str, how: str, what: str) -> None:
    input_warning("read_signals", f"{path}: {how}; {what}, and the run goes on", "damaged signal files")


class ReaderGroup:
    """Processes that share each request, so that each finds its files open. For one thread at a time."""

    def __init__(self, n_processes: int, reader: type[FileReader], path: str) -> None:
        self._n_processes = n_processes
        self._reader = reader
        self._path = path
        self._why_closed = ""
        self.processes: list[_ReaderProcess] = []
        self._start()

    def fetch(self, names: Sequence[str], paths: Sequence[str]) -> SignalBlock:
        with self._running() as processes:
            waiting = {}
            for process, share in zip(processes, share_out(paths, len(processes)), strict=True):
                if share:
                    files = [paths[i] for i in share]
                    process.ask([([names[i] for i in share], files)], files[0], len(files))
                    waiting[process] = share
            parts = []
            while waiting:
                parts += [(waiting.pop(process), process.receive_block()) for process in ready(waiting)]
            return merge_blocks(len(names), parts, recycled_array)

    def ask(self, request: Any, path: str, n: int = 1) -> Any:
        """Return the answer of a process to a request for metadata of n reads or files; see `_serve`."""
        with self._running() as processes:
            processes[0].ask([request], path, n)
            while not ready(processes[:1]):
                continue
            return processes[0].receive()

    def close(self) -> None:
        """Kill the processes, which only read. May be called twice."""
        self._why_closed = self._why_closed or STOPPED
        self._end()

    def _start(self) -> None:
        try:
            for _ in range(self._n_processes):
                self.processes.append(_ReaderProcess(self._reader, self._path))
        except BaseException as problem:
            self._end()
            if isinstance(problem, OSError):
                raise SignalError(f"cannot start the signal reader processes: {problem.strerror}") from None
            raise

    def _end(self) -> None:
        processes, self.processes = self.processes, []
        for process in processes:
            process.kill()
        for process in processes:
            process.close()

    @contextmanager
    def _running(self) -> Iterator[list[_ReaderProcess]]:
        """Yield the processes; after an error end them and keep the reason for later calls."""
        if self._why_closed:
            raise SignalError(self._why_closed)
        if not self.processes:
            self._start()
        try:
            yield self.processes
        except BaseException as problem:
            if not isinstance(problem, ProcessCrashError):
                self._why_closed = self._why_closed or (str(problem) if isinstance(problem, SignalError) else STOPPED)
            self._end()
            raise


class _ReaderProcess(HelperProcess):
    """A process with a `FileReader`, and the memory that it shares."""

    def __init__(self, reader: type[FileReader], path: str) -> None:
        self.advice = getattr(reader, "advice", "use a smaller --iop, -K or -B")
        descriptor = memory_descriptor("f5py signals")
        self._shared = SharedSamples(descriptor)
        try:
            super().__init__(_serve, reader.__module__, reader.__qualname__, descriptors=(descriptor,))
        except BaseException:
            self._shared.close()
            raise
        with suppress(OSError):  # the first request reports a death
            send(self.connection, path)

    def close(self) -> None:
        super().close()
        self._shared.close()

    def receive_block(self) -> SignalBlock:
        """Receive reads; their samples are valid until the next request."""
        offsets, calibration, problems = self.receive()
        try:
            samples = self._shared.samples(int(offsets[-1]))
        except (OSError, ValueError) as problem:
            raise SignalError(STOPPED if self._is_ended else f"no memory for signals ({problem})") from None
        return SignalBlock(samples, offsets, calibration, problems)


def share_out(paths: Sequence[str], n_shares: int) -> list[list[int]]:
    """Divide reads into equal shares, keeping the reads of a file together if possible.

    A checksum of its path gives a file the same share in every call; excess reads go to shares with room. Returns the
    indices of each share.
    """
    if n_shares == 1:
        return [list(range(len(paths)))]
    by_file: dict[str, list[int]] = {}
    for i, path in enumerate(paths):
        by_file.setdefault(path, []).append(i)
    room = [-(-len(paths) // n_shares)] * n_shares
    shares: list[list[int]] = [[] for _ in range(n_shares)]
    homeless: list[int] = []
    for path, reads in by_file.items():
        home = zlib.crc32(os.fsencode(path)) % n_shares
        shares[home] += reads[: room[home]]
        homeless += reads[room[home] :]
        room[home] -= min(room[home], len(reads))
    for share, space in zip(shares, room, strict=True):
        share += homeless[:space]
        del homeless[:space]
    return shares


class SharedSamples:
    """Unnamed memory with samples, shared by a reader process and its parent."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory: mmap.mmap | None = None
        self._size = 0

    def room(self, n: int, dtype: DTypeLike) -> NDArray:
        """Return an uninitialized array for the reader process to fill; raise `OSError` without memory."""
        size = n * np.dtype(dtype).itemsize
        if size > self._size or self._size > max(4 * size, _MOST_KEPT):
            self._memory, self._size = None, 0
            more = size + size // 8 + mmap.PAGESIZE
            os.ftruncate(self._descriptor, more)
            os.posix_fallocate(self._descriptor, 0, more)  # raises here instead of SIGBUS later
            self._map(more)
        return np.frombuffer(self._memory or bytearray(), dtype, n)

    def samples(self, n: int) -> NDArray[np.int16]:
        """Return the n samples written by the other process; raise `OSError` or `ValueError` after `close`."""
        if n * _SAMPLE_BYTES > self._size:
            self._map(os.fstat(self._descriptor).st_size)
        return np.frombuffer(self._memory or bytearray(), np.int16, n)

    def close(self) -> None:
        """Release the memory with the last array of it. May be called twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        self._memory, self._size = None, 0

    def __del__(self) -> None:
        self.close()

    def _map(self, size: int) -> None:
        self._memory, self._size = mmap.mmap(self._descriptor, size), size


def _serve(connection: Connection, memory: str, module: str, reader_class: str) -> None:
    """Answer requests with a `FileReader` of that module and name, after the path of a similar file or "".

    A request is ``(names, paths)``, ``(name, path)`` for the run's metadata, or paths for their reads. Answers to the
    first kind are ``(offsets, calibration, problems)`` with the samples in shared memory until the next request.
    """
    keep_freed_memory()
    shared = SharedSamples(int(memory))
    reader: Any = getattr(import_module(module), reader_class)()

    def answer(request: Any) -> Any:
        if isinstance(request, list):
            return [reader.list_reads(path) for path in request]
        if isinstance(request[0], str):
            return reader.run_info(*request)
        block = reader.read(*request, shared.room)
        return block.offsets, block.calibration, block.problems

    with closing(reader), suppress(EOFError, OSError):
        path = connection.recv()
        with suppress(Exception):  # reading reports it
            reader.prepare(path)
        answer_each(connection, answer)
