"""Signals of fast5 and POD5 files that are read, and fast5 files that are scanned, in the process of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from f5py.io.signals import processes
from f5py.io.signals.fast5 import fast5_scan
from f5py.io.signals.source import FileSource


class _SourceHere(FileSource):
    def list_reads(self, paths: Any, crash: str = "") -> Any:
        reader: Any = self._reader
        return [reader.list_reads(path) for path in paths]


@contextmanager
def readers_here(is_here: Callable[[int], bool]) -> Iterator[None]:
    """Read in this process where `is_here` of the number of processes: many times as fast as in one beside it."""
    real = processes.ProcessSource

    def source(n_processes: int, paths: Any, reader: Any, kind: Any = None, n_at_once: int = 1) -> Any:
        if is_here(n_processes):
            return _SourceHere(paths, reader(), kind)
        return real(n_processes, paths, reader, kind, n_at_once)

    with mock.patch.object(processes, "ProcessSource", source):
        yield


@contextmanager
def scans_here() -> Iterator[None]:
    """Look in this process for the names of the reads in fast5 files, which must be sound."""

    def source(n_processes: int, paths: Any, reader: Any, *_: Any) -> Any:
        return _SourceHere(paths, reader())

    with mock.patch.object(fast5_scan, "ProcessSource", source):
        yield
