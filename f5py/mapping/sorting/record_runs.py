"""Records that are sorted: in memory, and beyond a limit in a file as runs, each of which is sorted.

A run is the records that were in memory when these got too many. All runs are in one file, in pieces of whole records
that are packed each by itself. What sorting needs to know of records stays in memory, so that their order is known
before any of them is read again, and of each run only the pieces are there that records are just taken from.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import concatenate_tuples, offsets_of
from f5py.io.bam.bam_output import write_all
from f5py.threads.ordered import OrderedWork

#: About so many bytes of records are packed together.
_PIECE_BYTES = 1 << 18
#: If not all records are in memory, about so many bytes of them should be loaded at a time; and of every run at least
#: so many pieces, as the first and the last one may be loaded again.
_WINDOW_BYTES, _PIECES_OF_RUN = 64 << 20, 4
#: Of ISA-L: the one for files that are read again soon.
_LEVEL = 1


class StoppedError(Exception):
    """What is being done is not wanted any more."""


class Noted(NamedTuple):
    """What sorting and an index need to know of n records."""

    key: NDArray[np.uint64]  # contig, position and strand; ascending in the order of samtools' sort
    address: NDArray[np.int64]  # in memory, if it is there
    size: NDArray[np.int64]  # in bytes
    reach: NDArray[np.int64]  # twice the position after the last base; one more if the record is mapped

    @classmethod
    def empty(cls, n: int) -> Noted:
        """Columns to be filled."""
        return cls(np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64))

    def ordered(self, order: NDArray[np.int64]) -> Noted:
        """Take the records with these numbers."""
        return Noted(self.key[order], self.address[order], self.size[order], self.reach[order])


class Records(NamedTuple):
    """Records that can be copied, as long as this is kept."""

    addresses: NDArray[np.int64]
    memory: object  # what they are in


class RecordRuns:
    """Takes records in any order and gives them back sorted; a context manager.

    Parameters
    ----------
    most_bytes : int
        More bytes of records are not kept in memory.
    open_file : callable
        Opens a new file for what is not; called at most once. It is closed at the end.
    n_threads : int
        Threads that pack and unpack.

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
        self._held_notes: list[Noted] = []
        self._n_held = 0  # bytes
        self._notes: list[Noted] = [Noted.empty(0)]  # of the runs in the file
        self._piece_records: list[int] = []  # records of each piece of the file
        self._piece_sizes: list[int] = []  # packed
        self._is_stopped = False
        self._unpacked: dict[int, bytes] = {}

    def add(self, records: NDArray[np.uint8]) -> None:
        """Take whole records; the array is kept."""
        from f5py.mapping.sorting._sorting_numba import count_records, note_records

        noted = Noted.empty(int(count_records(records)))
        note_records(records, records.ctypes.data, noted)
        self._held.append(records)
        self._held_notes.append(noted)
        self._n_held += len(records)
        if self._n_held > self._most_bytes:
            self._write_run()

    def sort(self) -> None:
        """Find the order of all records; there will be no more.

        Attributes that there are then: `noted` has the records in their order; `offsets` is where each of them begins,
        and the last one ends, if they lie one after the other, int64 of shape (n + 1,); and `window_bytes` are to be
        loaded at a time.
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
        """Have records `first` to `end` - 1 of the order in memory; they must not be before those of the last call."""
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
        """Let a thread that is in a method come back; from any thread."""
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
        """Write what is in memory to the file, sorted."""
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


def copied(records: Records, offsets: NDArray[np.int64], begin: int, end: int) -> NDArray[np.uint8]:
    """Copy a stretch of records that lie one after the other; see `f5py.mapping.sorting._sorting_numba.gather`."""
    from f5py.mapping.sorting._sorting_numba import gather

    out = np.empty(end - begin, np.uint8)
    gather(records.addresses, offsets, begin, out)
    return out


def _pack(addresses: NDArray[np.int64], offsets: NDArray[np.int64]) -> bytes:
    """Pack records."""
    from isal import isal_zlib

    text = copied(Records(addresses, None), offsets, int(offsets[0]), int(offsets[-1]))
    return isal_zlib.compress(text, _LEVEL, -isal_zlib.MAX_WBITS)
