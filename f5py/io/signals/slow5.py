"""Signals from SLOW5 files, text (SLOW5) and binary (BLOW5), of all compressions that pyslow5 knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from f5py import console
from f5py.core.names import Names
from f5py.core.workers import WorkerPool
from f5py.errors import SignalError
from f5py.io.signals.content import BINARY_HEADER_AT, BLOW5_MAGIC, KIND_NAMES, Kind, file_kind
from f5py.io.signals.source import CALIBRATION, SignalBlock

if TYPE_CHECKING:
    from f5py.io.signals._slow5_library import Slow5File

#: Longer headers are taken for damage.
_MOST_HEADER = 1 << 28
#: Attributes that have no value are written as a dot.
_ABSENT = ("", ".")


class Slow5Source:
    """The signals of one SLOW5 file.

    An index ``<path>.idx`` that is absent, or is not that of the file, is made; where that cannot be written the file
    is used all the same.

    Parameters
    ----------
    path : str
        The file, text or binary by its content.
    n_threads : int
        Threads that read and decompress at the same time. The result does not depend on it.

    Raises
    ------
    SignalError
        The file is missing, is not SLOW5, or is damaged.
    MissingDependencyError
        pyslow5 is not installed.
    """

    def __init__(self, path: str, n_threads: int = 1) -> None:
        if n_threads < 1:
            raise ValueError(f"n_threads must be at least 1, not {n_threads}")
        self.path = path
        self._n_threads = n_threads
        self._pool: WorkerPool | None = None
        self._own_pool: WorkerPool | None = None
        self._scratch = np.empty(1 << 20, np.int16)
        self._file: Slow5File | None = None
        self._groups = read_groups(path)
        from f5py.io.signals._slow5_index import open_with_index

        self._file = open_with_index(path, _is_binary(path))

    @property
    def kind(self) -> Kind:
        """See `SignalSource.kind`."""
        return "slow5"

    def use_pool(self, pool: WorkerPool) -> None:
        """Read with these threads instead of own ones."""
        self._pool = pool

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        """Read the signals of the named reads, as `SignalSource.fetch`."""
        from f5py.io.signals._slow5_library import quiet
        from f5py.io.signals._slow5_numba import copy_samples, read_records

        addresses = self._opened().addresses()
        if self._pool is None:
            self._pool = self._own_pool = WorkerPool(self._n_threads)
        names = Names.of(names)
        n = len(names)
        codes, places, n_samples = np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(n, np.int64)
        calibration = np.full((n, len(CALIBRATION)), np.nan)
        used = np.zeros(1, np.int64)
        with quiet():
            while True:
                self._pool.run(
                    read_records, np.arange(n), names.text, names.offsets, addresses.file, addresses.layout, used,
                    self._scratch, places, codes, n_samples, calibration,
                )  # fmt: skip
                if (places >= 0).all():
                    break
                # The room is kept for the next call, so that this happens in the first ones only.
                self._scratch = np.empty(int(1.2 * used[0]), np.int16)
                used[0] = 0
                places[:] = 0
        causes = {i: _cause(int(codes[i])) for i in np.flatnonzero(codes).tolist()}
        n_samples[codes != 0] = -1
        block = SignalBlock.empty(names, [self.path] * n, n_samples, calibration, causes)
        self._pool.run(
            copy_samples, np.flatnonzero(np.diff(block.offsets)), self._scratch, places, block.offsets, block.samples
        )
        return block

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        """Return what the header says about the run of the first read that can be read; see `SignalSource`."""
        from f5py.io.signals._slow5_library import LibraryError, quiet

        self._warn_of_mixed_runs()
        with quiet():
            reader = self._opened().reader()
            try:
                for name in names:
                    try:
                        group = reader.read(_encoded(name))[2]
                    except LibraryError:
                        continue
                    return dict(self._groups[group]) if group < len(self._groups) else {}
            finally:
                reader.close()
        return {}

    def names(self) -> Iterator[str]:
        """Yield the names of all reads in the file."""
        for name in self._opened().names():
            yield name.decode("utf-8", "surrogateescape")

    def first_names(self, n: int) -> list[str]:
        """See `SignalSource.first_names`."""
        return list(islice(self.names(), n))

    def place(self, name: str) -> str:
        """See `SignalSource.place`."""
        return "slow5"

    def close(self) -> None:
        """Close the file and end the threads. May be called twice."""
        self._pool = None
        if self._own_pool is not None:
            self._own_pool.close()
            self._own_pool = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> Slow5File:
        if self._file is None:
            raise SignalError(f"{self.path}: has been closed")
        return self._file

    def _warn_of_mixed_runs(self) -> None:
        kinds = sorted({group["experiment_type"] for group in self._groups if "experiment_type" in group})
        if len(kinds) > 1:
            console.warning(
                "run_info",
                f"{self.path}: its read groups differ in experiment_type ({', '.join(kinds)}); all reads are treated "
                "as the first one",
            )


def read_groups(path: str) -> list[dict[str, str]]:
    """Read the header of a SLOW5 file: for each read group its attributes, without those that have no value.

    Raises
    ------
    SignalError
        The file cannot be read or is not SLOW5, or its header is damaged.
    """
    try:
        if os.path.isdir(path):
            raise SignalError(f"{path}: is a folder; give one SLOW5 file (slow5tools merge makes one of many)")
        kind = file_kind(path)
        if kind != "slow5":
            what = f"a {KIND_NAMES[kind]} file, not SLOW5" if kind else "not a SLOW5 or BLOW5 file"
            raise SignalError(f"{path}: is {what if os.path.getsize(path) else 'empty'}")
        lines = _header_lines(path)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise SignalError(f"{path}: cannot be opened ({reason})") from None
    groups: list[dict[str, str]] = []
    for line in lines:
        if line.startswith("@"):
            key, *values = line[1:].split("\t")
            groups.extend({} for _ in range(len(values) - len(groups)))
            for group, value in zip(groups, values, strict=False):
                if value not in _ABSENT:
                    group[key.lower()] = value
    return groups


def _header_lines(path: str) -> list[str]:
    with open(path, "rb") as file:
        if file.read(len(BLOW5_MAGIC)) == BLOW5_MAGIC:
            file.seek(BINARY_HEADER_AT)
            length = int.from_bytes(file.read(4), "little")
            text = file.read(length) if length <= _MOST_HEADER else b""
            if len(text) < max(length, 1):
                raise SignalError(f"{path}: has a damaged header; copy the file again")
            return text.decode("utf-8", "replace").rstrip("\n").split("\n")
        file.seek(0)
        lines: list[str] = []
        size = 0
        for line in file:
            if line[:1] not in b"#@" or size > _MOST_HEADER:
                break
            size += len(line)
            lines.append(line.decode("utf-8", "replace").rstrip("\r\n"))
        return lines


def _is_binary(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(BLOW5_MAGIC)) == BLOW5_MAGIC


def _cause(code: int) -> str:
    """What an answer of the library, or of `read_records`, means for a read."""
    from f5py.io.signals._slow5_library import NOT_FOUND, LibraryError

    if code == NOT_FOUND:
        return "is not in this file"
    return str(LibraryError(code)) if code < 0 else "is damaged"


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
