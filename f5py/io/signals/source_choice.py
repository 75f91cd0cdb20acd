"""Opening of signal sources, and several as one, from a command's arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from f5py.errors import MissingDependencyError, SignalError, UsageError
from f5py.io.files.signal_format import KIND_NAMES, Kind
from f5py.io.remote import is_remote
from f5py.io.signals.search import check_kind, kind_of_file, kind_of_folder, signal_files
from f5py.io.signals.source import NO_FILE, FileSource, SignalBlock, SignalSource, merge_blocks, unreadable_block
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.options.cores import usable_cores
from f5py.threads.pool import WorkerPool

#: Largest default.
_MOST_PROCESSES = 12
#: About the bytes that one process reads while a second one starts.
_BYTES_PER_PROCESS = 16 << 20
#: Reads of which files are looked at.
_MOST_LOOKED_AT = 20_000


class JoinedSource(SignalSource):
    """Several sources as one; the first one with a read provides it. Closes them with itself."""

    def __init__(self, sources: Sequence[SignalSource]) -> None:
        self._sources = list(sources)

    @property
    def kind(self) -> Kind:
        return self._sources[0].kind

    @property
    def is_concurrent(self) -> bool:
        return all(source.is_concurrent for source in self._sources)

    def use_pool(self, pool: WorkerPool, leaves_packed: bool = False) -> None:
        for source in self._sources:
            source.use_pool(pool)

    def has_reads(self, names: Sequence[str]) -> NDArray[np.bool_]:
        return self._owners(names) >= 0

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        names = list(names)
        owners = self._owners(names)
        parts: list[tuple[list[int], SignalBlock]] = []
        for at in np.unique(owners).tolist():
            reads = np.flatnonzero(owners == at).tolist()
            wanted = [names[i] for i in reads]
            n = len(wanted)
            block = unreadable_block(wanted, [""] * n, [NO_FILE] * n) if at < 0 else self._sources[at].fetch(wanted)
            if len(reads) == len(names):
                return block
            parts.append((reads, block))
        return merge_blocks(len(names), parts)

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        for name, at in zip(names, self._owners(names).tolist(), strict=True):
            if at >= 0 and (found := self._sources[at].run_info([name])):
                return found
        return {}

    def first_names(self, n: int) -> list[str]:
        names: list[str] = []
        for source in self._sources:
            names += source.first_names(n - len(names))
        return names

    def place(self, name: str) -> str:
        (at,) = self._owners([name]).tolist()
        return "" if at < 0 else self._sources[at].place(name)

    def close(self) -> None:
        for source in self._sources:
            source.close()

    def _owners(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the first source that has each read; -1 for none."""
        owners = np.full(len(names), -1)
        for at in range(len(self._sources) - 1, -1, -1):
            owners[self._sources[at].has_reads(names)] = at
        return owners


def reader_processes(n_threads: int, files: Iterable[str]) -> int:
    """Choose the number of fast5 or POD5 reader processes for so many worker threads.

    One keeps up with about four threads. Even with few threads a second one pays for large files, because decompression
    then avoids the threads' interpreter. There is always one, because damaged files can crash the library.
    """
    most = max(min(max(2, n_threads // 2), _MOST_PROCESSES, usable_cores()), 1)
    size = 0
    for file in dict.fromkeys(islice(files, _MOST_LOOKED_AT)):
        with suppress(OSError):
            size += os.path.getsize(file)
        if size >= most * _BYTES_PER_PROCESS:
            return most
    return size // _BYTES_PER_PROCESS + 1


def open_source(
    paths: Mapping[str, str], n_processes: int | None = 1, n_threads: int = 1, n_at_once: int = 1
) -> SignalSource:
    """Open the signals of indexed reads in a mapping such as a `ReadFiles`; the caller closes the source.

    There are by default as many processes as `reader_processes`. `n_at_once` threads may call `fetch` concurrently.
    """
    from f5py.io.signals.any_file import AnyFileReader
    from f5py.io.signals.processes import ProcessSource

    _check_count(n_processes)
    n_processes = n_processes or reader_processes(n_threads, paths.values())
    return ProcessSource(n_processes, paths, AnyFileReader, None, n_at_once)


def open_signals(
    reads_path: str | None,
    slow5: Sequence[str] = (),
    pod5: Sequence[str] = (),
    fast5: Sequence[str] = (),
    n_processes: int | None = 1,
    n_threads: int = 1,
    n_at_once: int = 1,
) -> SignalSource:
    """Open the signals of base-called reads from a command's options.

    Raises `UsageError` if no signals are named, `SignalError` for a path of another format, `InputFileError` for a
    missing or damaged file, `MissingDependencyError` if a package is needed. Without named signals the ``.readdb`` of
    the index of `reads_path` names the files. Of a read in several sources the first counts, in parameter order.
    `n_threads` read SLOW5; others as for `open_source`.
    """
    named: dict[Kind, Sequence[str]] = {"slow5": slow5, "pod5": pod5, "fast5": fast5}
    for kind, paths in named.items():
        for path in paths:
            check_kind(path, kind)
    if any(named.values()):
        return _open_named(named, n_processes, n_threads, n_at_once)
    if reads_path is None:
        raise UsageError("no signals are named; give --pod5, --slow5 or --fast5")
    from f5py.io.reads.read_files import INDEX_AGAIN, ReadFiles, resolve_paths
    from f5py.options.input_names import READDB_SUFFIX

    index = reads_path + READDB_SUFFIX
    files = resolve_paths(ReadFiles.read(index), index)
    if of_all := files.of_all:
        for path in of_all:
            if not os.path.exists(path):
                raise SignalError(f"{path}: not found, where {index} says that the signals are; {INDEX_AGAIN}")
        return open_any(of_all, n_processes, n_threads, n_at_once)
    return open_source(files, n_processes, n_threads, n_at_once)


def _open_named(
    named: Mapping[Kind, Sequence[str]], n_processes: int | None, n_threads: int, n_at_once: int
) -> SignalSource:
    """Open checked files and folders by format; the openers list reads after they have made a source."""
    _check_count(n_processes)
    sources: list[SignalSource] = []
    with ExitStack() as opened:
        for kind, paths in named.items():
            if not paths:
                continue
            for source in _OPENERS[kind](list(dict.fromkeys(paths)), n_processes, n_threads, n_at_once):
                opened.callback(source.close)
                sources.append(source)
        opened.pop_all()
    return sources[0] if len(sources) == 1 else JoinedSource(sources)


def open_any(paths: Sequence[str], n_processes: int | None = 1, n_threads: int = 1, n_at_once: int = 1) -> SignalSource:
    """Open signal files and folders, recognized by content; other parameters as for `open_signals`.

    Raises `SignalError` if a path has no signals or is damaged, `MissingDependencyError` if it needs a package.
    """
    named: dict[Kind, list[str]] = {kind: [] for kind in KIND_NAMES}
    for path in paths:
        named[kind_of_folder(path) if os.path.isdir(path) else kind_of_file(path)].append(path)
    return _open_named(named, n_processes, n_threads, n_at_once)


def _open_slow5(
    paths: Sequence[str], n_processes: int | None, n_threads: int, n_at_once: int
) -> Iterator[SignalSource]:
    from f5py.io.signals.slow5.reader import Slow5Source

    if n_processes is not None and n_processes > 1:
        console.warning("open_signals", "--iop has no effect on SLOW5 files; they are read by threads")
    for path in signal_files(paths, "slow5"):
        yield Slow5Source(path, n_threads)


def _open_pod5(paths: Sequence[str], n_processes: int | None, n_threads: int, n_at_once: int) -> Iterator[SignalSource]:
    from f5py.io.signals.pod5.direct_source import DirectPod5Source
    from f5py.io.signals.pod5.reader import ChunkOffsetReader, Pod5Index, Pod5Reader
    from f5py.io.signals.processes import ProcessSource
    from f5py.io.signals.slow5._slow5_functions import ZSTD, functions

    all_files = signal_files(paths, "pod5")
    if fetched := list(filter(is_remote, all_files)):
        yield FileSource(Pod5Index(fetched), Pod5Reader(), "pod5")
    files = [file for file in all_files if not is_remote(file)]
    if not files:
        return
    index = Pod5Index([])

    def by_library() -> ProcessSource:
        n = n_processes or reader_processes(n_threads, files)
        return ProcessSource(n, index, Pod5Reader, "pod5", n_at_once)

    try:
        called = functions(files[0], ZSTD)
        source = ProcessSource(n_processes or 1, index, ChunkOffsetReader, "pod5", n_at_once)
    except MissingDependencyError:
        called, source = None, by_library()
    yield source if called is None else DirectPod5Source(source, by_library, index, called, n_threads)
    index.fill(dict(zip(files, source.list_reads(files), strict=True)))


def _open_fast5(
    paths: Sequence[str], n_processes: int | None, n_threads: int, n_at_once: int
) -> Iterator[SignalSource]:
    from f5py.io.signals.fast5.fast5_scan import report_skipped, scan_fast5

    files = signal_files(paths, "fast5")
    n_processes = n_processes or reader_processes(n_threads, files)
    reads: dict[str, str] = {}
    yield open_source(reads, n_processes, n_threads, n_at_once)  # the processes start meanwhile
    with progress("fast5 files", len(files)) as bar:
        found = scan_fast5(files, n_processes, bar.advance)
    report_skipped(found, False)
    for file, names in zip(files, found, strict=True):
        if not isinstance(names, str):
            reads.update(dict.fromkeys(names, file))
    if not reads:
        raise SignalError(f"{', '.join(paths)}: no read was found in {len(files)} fast5 files")


_OPENERS: Mapping[Kind, Callable[[Sequence[str], int | None, int, int], Iterator[SignalSource]]] = {
    "slow5": _open_slow5, "pod5": _open_pod5, "fast5": _open_fast5,
}  # fmt: skip


def _check_count(n_processes: int | None) -> None:
    if n_processes is not None and n_processes < 1:
        raise ValueError(f"n_processes must be at least 1, not {n_processes}")
