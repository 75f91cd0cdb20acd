"""Sort records in memory, and beyond a limit in a temporary file of sorted runs.

A run is the records in memory at the time of the limit. All runs are in one file, in compressed pieces of whole
records. The sort keys stay in memory, so the order is known before any record is read again, and only the current
pieces of each run are loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import concatenate_tuples, offsets_of
from f5py.io.bam._bam_numba import CONTIG, FLAGS, IS_REVERSE, POSITION, signed32, unsigned16
from f5py.io.bam.bam_output import write_all
from f5py.jit.c_memory import copy_from
from f5py.jit.kernel import exact_kernel
from f5py.threads.ordered import OrderedWork

#: Bytes of records in a compressed piece.
_PIECE_BYTES = 1 << 18
#: Bytes of records to load at a time, and pieces of every run at least, as the first and last are loaded twice.
_WINDOW_BYTES, _PIECES_OF_RUN = 64 << 20, 4
#: ISA-L's level for temporary files.
_LEVEL = 1
_LOW = 0xFFFFFFFF


class StoppedError(Exception):
    """The run was cancelled."""


class RecordKeys(NamedTuple):
    """Columns of n records for sorting."""

    key: NDArray[np.uint64]  # contig, position and strand; ascending in the order of samtools' sort
    address: NDArray[np.int64]  # in memory, if it is there
    size: NDArray[np.int64]  # in bytes

    @classmethod
    def empty(cls, n: int) -> RecordKeys:
        """Return columns to fill."""
        return cls(np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64))

    def ordered(self, order: NDArray[np.int64]) -> RecordKeys:
        """Return the records with these numbers."""
        return RecordKeys(self.key[order], self.address[order], self.size[order])


class Records(NamedTuple):
    """Addresses of records, and their memory."""

    addresses: NDArray[np.int64]
    memory: object


class RecordRuns:
    """Sorter of records; a context manager.

    Parameters
    ----------
    most_bytes : int
        Most bytes of records in memory.
    open_file : callable
        Opens a file for the rest, at most once. It is closed at the end.
    n_threads : int
        Threads that compress and decompress.

    Raises
    ------
    OSError
        From all methods: the file cannot be written or read.
    StoppedError
        From all methods, after `stop`.
    """

    def __init__(self, most_bytes: int, open_file: Callable[[], BinaryIO], n_threads: int) -> None:
        self._most_bytes = most_bytes
        self._open_file = open_file
        self._n_threads = n_threads
        self._file: BinaryIO | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._held: list[NDArray[np.uint8]] = []
        self._held_notes: list[RecordKeys] = []
        self._n_held = 0  # bytes
        self._notes: list[RecordKeys] = [RecordKeys.empty(0)]  # of the runs in the file
        self._piece_records: list[int] = []  # records of each piece of the file
        self._piece_sizes: list[int] = []  # packed
        self._is_stopped = False
        self._unpacked: dict[int, bytes] = {}

    def add(self, records: NDArray[np.uint8]) -> None:
        """Add whole records without a copy."""
        noted = RecordKeys.empty(int(count_records(records)))
        fill_keys(records, records.ctypes.data, noted)
        self._held.append(records)
        self._held_notes.append(noted)
        self._n_held += len(records)
        if self._n_held > self._most_bytes:
            self._write_run()

    def sort(self) -> None:
        """Sort all records.

        Sets `noted`, the sorted keys; `offsets` of the concatenated records, int64 of shape (n + 1,); and
        `window_bytes`, the bytes to load at a time.
        """
        n_runs = len(self._notes) - 1
        notes = concatenate_tuples([*self._notes, *self._held_notes])
        self._notes, self._held_notes = [], []
        n_filed = sum(self._piece_records)
        self._filed_at = offsets_of(notes.size[:n_filed])  # of the records in the file, if that were not packed
        self._piece_first = offsets_of(self._piece_records)
        self._piece_at = offsets_of(self._piece_sizes)
        order = np.argsort(notes.key, kind="stable")
        self._filed = np.where(order < n_filed, order, -1) if n_filed else None
        self.noted = notes.ordered(order)
        self.offsets = offsets_of(self.noted.size)
        self.window_bytes = max(_WINDOW_BYTES, n_runs * _PIECES_OF_RUN * _PIECE_BYTES)
        if not n_runs:
            self.window_bytes = max(self.window_bytes, 2 * int(self.offsets[-1]))

    def load(self, first: int, end: int) -> Records:
        """Load records `first` to `end` - 1 of the order, which must not go back."""
        self.check()
        addresses = self.noted.address[first:end]
        if self._filed is None:
            return Records(addresses, self._held)
        filed = self._filed[first:end]
        here = np.flatnonzero(filed >= 0)
        filed = filed[here]
        piece = np.searchsorted(self._piece_first, filed, "right") - 1
        pieces, number = np.unique(piece, return_inverse=True)
        before, self._unpacked = self._unpacked, {}
        missing = [one for one in pieces.tolist() if one not in before]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_threads, thread_name_prefix="f5py-runs")
        new = dict(zip(missing, self._pool.map(self._unpack, missing), strict=True))
        self._unpacked = {one: before[one] if one in before else new[one] for one in pieces.tolist()}
        texts = list(self._unpacked.values())
        begins = np.array([np.frombuffer(text, np.uint8).ctypes.data for text in texts], np.int64)
        addresses = addresses.copy()
        if len(here):
            addresses[here] = begins[number] + self._filed_at[filed] - self._filed_at[self._piece_first[piece]]
        return Records(addresses, (self._held, texts))

    def stop(self) -> None:
        """Cancel all methods; from any thread."""
        self._is_stopped = True

    def check(self) -> None:
        """Raise `StoppedError` if `stop` was called."""
        if self._is_stopped:
            raise StoppedError

    def __enter__(self) -> RecordRuns:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._file is not None:
            self._file.close()
        self._held.clear()
        self._unpacked.clear()

    def _write_run(self) -> None:
        """Sort the records in memory, and write them to the file."""
        if self._file is None:
            self._file = self._open_file()
        descriptor = self._file.fileno()
        held = concatenate_tuples(self._held_notes)
        noted = held.ordered(np.argsort(held.key, kind="stable"))
        offsets = offsets_of(noted.size)

        def put(packed: bytes) -> None:
            write_all(descriptor, [packed])
            self._piece_sizes.append(len(packed))

        work = OrderedWork(self._n_threads, _pack, put, "f5py-runs")
        try:
            first = 0
            while first < len(noted.key):
                self.check()
                end = max(int(np.searchsorted(offsets, offsets[first] + _PIECE_BYTES, "right")) - 1, first + 1)
                self._piece_records.append(end - first)
                work.add(noted.address[first:end], offsets[first : end + 1])
                first = end
            work.finish()
        finally:
            work.close()
        self._notes.append(noted)
        self._held.clear()
        self._held_notes.clear()
        self._n_held = 0

    def _unpack(self, piece: int) -> bytes:
        from isal import isal_zlib

        self.check()
        assert self._file is not None
        size = int(self._piece_at[piece + 1] - self._piece_at[piece])
        packed = os.pread(self._file.fileno(), size, int(self._piece_at[piece]))
        text_size = int(np.diff(self._filed_at[self._piece_first[piece : piece + 2]])[0])
        try:
            text = isal_zlib.decompress(packed, -isal_zlib.MAX_WBITS, text_size)
        except isal_zlib.error:
            text = b""
        if len(text) != text_size:
            raise OSError(None, "a temporary file has changed")
        return text


def copy_records(records: Records, offsets: NDArray[np.int64], begin: int, end: int) -> NDArray[np.uint8]:
    """Copy a stretch of the concatenated records; see `gather`."""
    out = np.empty(end - begin, np.uint8)
    gather(records.addresses, offsets, begin, out)
    return out


def _pack(addresses: NDArray[np.int64], offsets: NDArray[np.int64]) -> bytes:
    """Compress records."""
    from isal import isal_zlib

    text = copy_records(Records(addresses, None), offsets, int(offsets[0]), int(offsets[-1]))
    return isal_zlib.compress(text, _LEVEL, -isal_zlib.MAX_WBITS)


@exact_kernel
def count_records(data):
    """Count consecutive whole records.

    Parameters
    ----------
    data : uint8
    """
    at = np.int64(0)
    n = 0
    while at < data.shape[0]:
        at += 4 + signed32(data, at)
        n += 1
    return n


@exact_kernel
def fill_keys(data, address, noted):
    """Fill the sort keys of records.

    Parameters
    ----------
    data : uint8
        As many whole records as `noted` has room for.
    address : int
        Of the first one.
    """
    at = np.int64(0)
    for i in range(noted.key.shape[0]):
        end = at + 4 + signed32(data, at)
        flags = unsigned16(data, at + FLAGS)
        position = signed32(data, at + POSITION)
        contig = signed32(data, at + CONTIG) & _LOW  # without one: behind all others
        place = ((position + 1) << 1 & _LOW) | np.int64(flags & IS_REVERSE != 0)
        noted.key[i] = np.uint64(contig) << np.uint64(32) | np.uint64(place)
        noted.address[i] = address + at
        noted.size[i] = end - at
        at = end


@exact_kernel
def gather(addresses, offsets, begin, out):
    """Copy a stretch of the concatenated records.

    Parameters
    ----------
    addresses : int64, shape (n,)
        Of all records in the stretch.
    offsets : int64, shape (n + 1,)
        Where these records begin, and the last one ends.
    begin : int
        Where the stretch begins, counted as the offsets are.
    out : uint8
        Filled.
    """
    for i in range(addresses.shape[0]):
        first = max(offsets[i], begin)
        n_bytes = min(offsets[i + 1], begin + out.shape[0]) - first
        copy_from(out[first - begin :], addresses[i] + first - offsets[i], n_bytes)
