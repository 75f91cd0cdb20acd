"""Signals of fast5 and POD5 files that are read, and fast5 files that are scanned, in the process of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

from f5py.io.signals import crash_isolation
from f5py.io.signals.fast5 import fast5_scan
from f5py.io.signals.pod5 import pod5_scan
from f5py.io.signals.pod5.reader import keys_of
from f5py.io.signals.source import FileSource


@contextmanager
def readers_here(is_here: Callable[[int], bool]) -> Iterator[None]:
    """Read in this process where `is_here` of the number of processes: many times as fast as in one beside it."""
    real = crash_isolation.GuardedSource

    def source(n_processes: int, paths: Any, reader: Any, *more: Any, **named: Any) -> Any:
        if is_here(n_processes):
            return FileSource(paths, reader(), *more)
        return real(n_processes, paths, reader, *more, **named)

    with mock.patch.object(crash_isolation, "GuardedSource", source):
        yield


@contextmanager
def scans_here() -> Iterator[None]:
    """Look in this process for the names of the reads in fast5 and POD5 files, which must be sound."""

    def scan_chunks(chunks: list[Any], processes: int, advance: Callable[[int], object], journal: Any) -> None:
        for chunk in chunks:
            for path in chunk.paths:
                found = fast5_scan._scan(path)
                if journal is not None:
                    journal.add(path, found)
                chunk.found.append(found)
                advance(1)

    with (
        mock.patch.object(fast5_scan, "_scan_chunks", scan_chunks),
        mock.patch.object(pod5_scan, "ReadLister", return_value=nullcontext(keys_of)),
    ):
        yield
