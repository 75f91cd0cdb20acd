"""Search of folders for fast5 files, and of files for read names."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from f5py.errors import F5pyError
from f5py.io.signals.helper_process import LOOK_EVERY, HelperProcess, answer_each, send
from f5py.io.signals.scan_journal import Found, ScanJournal
from f5py.io.signals.search import list_files
from f5py.messages import console
from f5py.messages.console import input_warning

#: Files per request; few, for quick interrupts.
_MOST_FILES_PER_CHUNK = 64


def list_fast5(directory: str) -> list[str]:
    """List the fast5 files below `directory` in a fixed order; none if it is no folder.

    As in f5c and nanopolish, ``.fast5`` may be anywhere in the path. Raises `SignalError` if a folder cannot be listed.
    """
    if not os.path.isdir(directory):
        return []
    return list_files(directory, lambda path: ".fast5" in path and "\n" not in path)


def read_names(path: str) -> list[str]:
    """Return the names of the reads in a fast5 file.

    With a group ``/Raw`` it is a single read, named by the attribute ``read_id`` of the first group below
    ``/Raw/Reads``; otherwise each group ``read_<name>`` is a read. The attribute ``file_version`` is unreliable.

    Raises `OSError` for an unreadable file, `LookupError` for a missing entry.
    """
    import h5py

    # many network file systems have no locks
    with h5py.File(path, "r", locking=False) as file:
        names = [] if "Raw" in file else [name.removeprefix("read_") for name in file if name.startswith("read_")]
        if names or not len(file):
            return names
        reads = file["Raw/Reads"]
        name = reads[next(iter(reads))].attrs["read_id"]
        return [name.decode() if isinstance(name, bytes) else str(name)]


def _scan(path: str) -> Found:
    """Return the read names in a file, or why it is skipped."""
    try:
        names = read_names(path)
    except (OSError, LookupError, StopIteration, ValueError, TypeError, RuntimeError) as problem:
        reason = " ".join(str(problem).split()) or type(problem).__name__
        return f"{path}: skipped, not a usable fast5 file ({reason})"
    return names if names else f"{path}: skipped, holds no reads"


def scan_fast5(
    paths: Sequence[str],
    processes: int,
    advance: Callable[[int], object] = lambda files: None,
    journal: ScanJournal | None = None,
) -> list[Found]:
    """Read the names of the reads in many fast5 files; for a skipped file return the reason as str.

    Raises `F5pyError` if a process was killed.

    Parameters
    ----------
    processes : int
        Concurrent processes. Files that crash or hang one are skipped.
    advance : callable, optional
        Called with the number of files finished since its last call.
    journal : ScanJournal, optional
        Known files are not scanned again; results are added.
    """
    known = {} if journal is None else {path: one for path in paths if (one := journal.found(path)) is not None}
    if known:
        console.note("readdb", f"{len(known)} of {len(paths)} fast5 files have been scanned before")
    rest = [path for path in paths if path not in known]
    advance(len(paths) - len(rest))
    size = max(1, min(_MOST_FILES_PER_CHUNK, len(rest) // (4 * processes)))
    chunks = [_ScanTask(rest[start : start + size]) for start in range(0, len(rest), size)]
    _scan_chunks(chunks, min(processes, len(chunks)), advance, journal)
    scanned = iter([one for chunk in chunks for one in chunk.found])
    return [known[path] if path in known else next(scanned) for path in paths]


class _ScanTask:
    """Files scanned one after the other by a process, and the results so far."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.found: list[Found] = []

    @property
    def rest(self) -> Sequence[str]:
        return self.paths[len(self.found) :]


def _work(connection: Connection) -> None:
    """Scan the files that come through `connection` until its other end closes."""
    answer_each(connection, _scan)


def _scan_chunks(
    chunks: list[_ScanTask], processes: int, advance: Callable[[int], object], journal: ScanJournal | None
) -> None:
    waiting = iter(chunks)
    busy: dict[Any, tuple[HelperProcess, _ScanTask]] = {}

    def start(process: HelperProcess | None, chunk: _ScanTask | None) -> None:
        """Continue a chunk with a process, or with a new one."""
        if chunk is None:
            if process is not None:
                process.close()
            return
        process = process or HelperProcess(_work)
        busy[process.connection] = process, chunk
        process.begin()
        with suppress(ConnectionError):  # a death is noticed below
            send(process.connection, chunk.rest)

    def take(chunk: _ScanTask, found: Found) -> None:
        if journal is not None:
            journal.add(chunk.rest[0], found)
        chunk.found.append(found)
        advance(1)

    try:
        for _ in range(processes):
            start(None, next(waiting, None))
        while busy:
            ready: list[Any] = wait(list(busy), LOOK_EVERY)
            for connection, (process, chunk) in list(busy.items()):
                fate = ""
                if connection in ready:
                    try:
                        answer = connection.recv()
                        process.begin()
                    except (EOFError, ConnectionError) as problem:
                        if not (number := process.fatal_signal()):
                            why = "was killed, perhaps for lack of memory; try again with a smaller --iop"
                            raise F5pyError(f"a process that scanned fast5 files {why}") from problem
                        fate = f"ends the library that reads it ({number})"
                    else:
                        if isinstance(answer, F5pyError):
                            raise answer
                        take(chunk, answer)
                elif process.loops(1):
                    fate = "keeps the library that reads it in an endless loop"
                elif process.waits_too_long(chunk.rest[0]):
                    raise F5pyError(
                        f"{chunk.rest[0]}: the process that scans it has not answered for {process.silence:.0f} seconds"
                    )
                if fate:
                    take(chunk, f"{chunk.rest[0]}: skipped, it is damaged and {fate}")
                if fate or not chunk.rest:
                    del busy[connection]
                    if fate:
                        process.close()
                    start(None if fate else process, chunk if chunk.rest else next(waiting, None))
    finally:
        for process, _ in busy.values():
            process.close()


def report_skipped(found: Sequence[Found], everything: bool) -> None:
    """Report why files were skipped, at most ten unless `everything`."""
    reasons = [one for one in found if isinstance(one, str)]
    shown = reasons if everything else reasons[:10]
    for reason in shown:
        console.note("readdb", reason)
    if reasons:
        input_warning("readdb", f"{len(reasons)} of {len(found)} fast5 files were skipped")
