"""Basecalled reads from alignment records."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_blocks import N_THREADS
from f5py.io.bam.bam_records import fixed_numbers, record_names
from f5py.io.reads.memory_reads import reads_in_memory
from f5py.io.reads.read_index import ReadIndex
from f5py.messages import console
from f5py.threads.pool import CallingThread, WorkerPool

if TYPE_CHECKING:
    from f5py.io.bam._bam_sequence_numba import PendingSequences, ReadSequences

#: Flags of other than mapped primary records.
_NOT_PRIMARY = 0x4 | 0x100 | 0x800


class RecordReads:
    """Reads with their bases in alignment records.

    Hard-clipped and sequence-less secondary records get the bases of the read's primary record; for these the file is
    read twice more, with `n_threads`. On standard input they have none.
    """

    def __init__(self, alignments: AlignmentFile, n_threads: int = N_THREADS) -> None:
        self._alignments = alignments
        self._n_threads = n_threads
        self._held = reads_in_memory(Names.of([]), np.empty(0, np.uint8), np.zeros(1, np.int64), alignments.name)
        self._has_searched = alignments.is_pipe

    @property
    def held(self) -> ReadIndex:
        """Bases of reads with incomplete records."""
        return self._held

    def first_names(self, n: int) -> list[str]:
        """Return the read names of the first n records; none for a pipe."""
        if self._alignments.is_pipe:
            return []
        for data, starts, n_records in all_chunks(self._alignments):
            return list(record_names(data, starts, np.arange(min(n, n_records))))
        return []

    def look_up(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, wanted: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find the bases of the reads of `n` records from `f5py.io.bam.bam_records.record_chunks`.

        Parameters
        ----------
        wanted : bool, shape (n,)
            Records that matter.

        Returns
        -------
        lengths : int64, shape (n,)
            Bases of the read; 0 if unavailable.
        rows : int64, shape (n,)
            Row in `held`, or -1: the bases are in the record.
        """
        lengths = whole_lengths_of(data, starts, np.arange(n))
        rows = np.full(n, -1)
        incomplete = np.flatnonzero(wanted & (lengths == 0))
        if len(incomplete):
            if not self._has_searched:
                self._search()
            found = self._held.index.rows_of(record_names(data, starts, incomplete))
            rows[incomplete] = found
            if len(self._held):
                lengths[incomplete] = np.where(found >= 0, self._held.index.length[found], 0)
        return lengths, rows

    def sequences(
        self,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        chosen: NDArray[np.int64],
        rows: NDArray[np.int64],
        pool: WorkerPool | None = None,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the bases of the reads, as sequenced, and their offsets; `rows` as from `look_up`."""
        return sequences_of_records(data, starts, chosen, rows, rows >= 0, self._held, pool)

    def close(self) -> None:
        self._held.close()

    def _search(self) -> None:
        """Load the bases of reads with incomplete records."""
        from f5py.io.bam._bam_numba import FLAGS

        self._has_searched = True
        console.info("load_reads", "hard-clipped records get their bases from the primary ones, which are searched")
        wanted: list[Names] = []
        for data, starts, n in all_chunks(self._alignments, self._n_threads):
            lengths = whole_lengths_of(data, starts, np.arange(n))
            wanted.append(record_names(data, starts, np.flatnonzero(lengths == 0)))
        names = Names.joined(wanted)
        is_wanted = reads_in_memory(names, np.empty(0, np.uint8), np.zeros(len(names) + 1, np.int64), "").index
        found_names: list[Names] = []
        found: list[tuple[NDArray[np.uint8], NDArray[np.int64]]] = []
        for data, starts, n in all_chunks(self._alignments, self._n_threads):
            lengths = whole_lengths_of(data, starts, np.arange(n))
            flags = fixed_numbers(data, starts[:n], FLAGS, np.uint16)
            candidates = np.flatnonzero((flags & _NOT_PRIMARY == 0) & (lengths > 0))
            of_candidates = record_names(data, starts, candidates)
            chosen = candidates[is_wanted.rows_of(of_candidates) >= 0]
            found_names.append(record_names(data, starts, chosen))
            found.append(self.sequences(data, starts, chosen, np.full(len(chosen), -1)))
        bases = np.concatenate([np.empty(0, np.uint8), *(part for part, _ in found)])
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(offsets) for _, offsets in found)])
        self._held = reads_in_memory(Names.joined(found_names), bases, offsets_of(sizes), self._alignments.name)


def sequences_of_records(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    chosen: NDArray[np.int64],
    rows: NDArray[np.int64],
    is_elsewhere: NDArray[np.bool_],
    reads: ReadIndex,
    pool: WorkerPool | None = None,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Gather the bases of the records' reads, as sequenced, from the records if possible.

    Parameters
    ----------
    data, starts
        From `f5py.io.bam.bam_records.record_chunks`.
    chosen : int64, shape (n,)
        Record indices.
    rows : int64, shape (n,)
        Of `reads`; -1 for a missing read.
    is_elsewhere : bool, shape (n,)
        Take the bases from `reads`.

    Returns
    -------
    bases : uint8, shape (offsets[-1],)
    offsets : int64, shape (n + 1,)
    """
    from f5py.io.bam._bam_sequence_numba import PendingSequences

    held_at = np.flatnonzero(is_elsewhere)
    held, held_offsets = reads.sequences_of(rows[held_at], pool)
    sizes = whole_lengths_of(data, starts, chosen)
    sizes[held_at] = np.diff(held_offsets)
    held_row = np.full(len(chosen), -1)
    held_row[held_at] = np.arange(len(held_at))
    made = copied_sequences(data, starts, chosen, sizes, PendingSequences(held_row, held, held_offsets), pool)
    if made.is_short[0] and not (is_elsewhere | (rows < 0)).all():
        return sequences_of_records(data, starts, chosen, rows, is_elsewhere | (rows >= 0), reads, pool)
    return made.bases, made.offsets


def copied_sequences(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    chosen: NDArray[np.int64],
    sizes: NDArray[np.int64],
    held: PendingSequences | None = None,
    pool: WorkerPool | None = None,
) -> ReadSequences:
    """Copy sequences of given sizes from the records, or from `held`; see `sequences_of_records`."""
    from f5py.io.bam._bam_sequence_numba import PendingSequences, ReadSequences, copy_sequences

    if held is None:
        held = PendingSequences(np.full(len(chosen), -1), np.empty(0, np.uint8), np.zeros(1, np.int64))
    offsets = offsets_of(sizes)
    made = ReadSequences(np.empty(offsets[-1], np.uint8), offsets, np.zeros(1, np.bool_))
    (pool or CallingThread()).run(copy_sequences, np.arange(len(chosen)), data, starts, chosen, held, made)
    return made


def differ_from_records(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    chosen: NDArray[np.int64],
    bases: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    compared: NDArray[np.bool_],
    pool: WorkerPool | None = None,
) -> NDArray[np.bool_]:
    """Return which of the `compared` reads differ from their records in bases or length.

    Parameters
    ----------
    data, starts, chosen
        See `sequences_of_records`.
    bases, offsets
        Letters of the reads as sequenced.
    """
    from f5py.io.bam._bam_sequence_numba import mark_other_bases

    is_other = np.zeros(len(chosen), np.bool_)
    (pool or CallingThread()).run(
        mark_other_bases, np.flatnonzero(compared), data, starts, chosen, bases, offsets, is_other
    )
    return is_other


def all_chunks(
    alignments: AlignmentFile, n_threads: int = N_THREADS
) -> Generator[tuple[NDArray[np.uint8], NDArray[np.int64], int], None, None]:
    """Yield all records of a reopened file as `AlignmentFile.chunks`, inflated in `n_threads`."""
    again = alignments.reopened()
    try:
        again.n_inflating = n_threads
        yield from again.chunks()
    finally:
        again.close()


def whole_lengths_of(
    data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the bases of records, 0 for hard-clipped ones."""
    from f5py.io.bam._bam_sequence_numba import whole_lengths

    lengths = np.empty(len(chosen), np.int64)
    whole_lengths(data, starts, chosen, lengths)
    return lengths
