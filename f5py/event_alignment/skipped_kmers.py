"""Rows for the k-mers that an alignment of events to the reference skips."""

from __future__ import annotations

import numpy as np

from f5py.core.batch import ReadBatch, Rows, RowState
from f5py.core.cigar import DELETION, OF_REFERENCE
from f5py.core.offsets import offsets_of
from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.threads.pool import WorkerPool

_NEW_SEGMENT = np.uint8(RowState.NEW_SEGMENT)
_SKIPPED, _DELETED = np.uint8(RowState.SKIPPED), np.uint8(RowState.DELETED)
_NEVER = np.int64(np.iinfo(np.int64).max)


@exact_kernel
def count_rows(queue, reads, rows, n):
    """Count the rows of each read, including those of skipped k-mers.

    Parameters
    ----------
    rows : f5py.core.batch.Rows
    n : int64, shape (n_reads,)
    """
    offsets, n_rows, _, position, state = rows
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        first = offsets[read]
        n[read] = n_rows[read]
        for row in range(first + 1, first + n_rows[read]):
            if state[row] & _NEW_SEGMENT == 0:
                n[read] += max(np.int64(position[row]) - np.int64(position[row - 1]) - 1, 0)


@exact_kernel
def fill_rows(queue, reads, rows, events, alignments, k, trim, marked):
    """Copy the rows of the reads and insert those of skipped k-mers.

    Parameters
    ----------
    rows : f5py.core.batch.Rows
    events : f5py.core.batch.Events
    alignments : f5py.core.batch.Alignments
    k, trim : int
        Bases of a k-mer, and bases ignored at each of its ends.
    marked : f5py.core.batch.Rows
        Filled; `n` as by `count_rows`.
    """
    offsets, n_rows, row_event, row_position, row_state = rows
    marked_offsets, _, event, position, state = marked
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        if n_rows[read] == 0:
            continue
        first_event = events.offsets[read]
        operation, last_operation = alignments.cigar_offsets[read], alignments.cigar_offsets[read + 1]
        passed = np.int64(alignments.start[read])  # reference position after the current operation
        deletion_start, deletion_end = _NEVER, np.int64(-1)
        at = marked_offsets[read]
        for row in range(offsets[read], offsets[read] + n_rows[read]):
            here = np.int64(row_position[row])
            kmer = here
            if row > offsets[read] and row_state[row] & _NEW_SEGMENT == 0:
                kmer = min(np.int64(row_position[row - 1]) + 1, here)
            while kmer < here:
                shown = kmer + trim
                while deletion_end <= shown and operation < last_operation:
                    length = np.int64(alignments.cigar[operation] >> 4)
                    if alignments.cigar[operation] & 15 == DELETION:
                        deletion_start, deletion_end = passed, passed + length
                    if OF_REFERENCE >> (alignments.cigar[operation] & 15) & 1:
                        passed += length
                    operation += 1
                is_deleted = deletion_end > shown and deletion_start < kmer + k - trim
                # The later of the two adjacent events begins where the signal reaches the k-mer.
                before, after = row_event[row - 1], row_event[row]
                is_later = events.start[first_event + after] > events.start[first_event + before]
                event[at] = after if is_later else before
                position[at] = kmer
                state[at] = _DELETED if is_deleted else _SKIPPED
                at += 1
                kmer += 1
            event[at] = row_event[row]
            position[at] = here
            state[at] = row_state[row]
            at += 1


def add_skipped_kmers(batch: ReadBatch, k: int, pool: WorkerPool, trim: int = 0) -> None:
    """Insert a row for each k-mer without an event between two rows of one segment.

    Its state is ``DELETED`` if the read's alignment deletes a base of the k-mer, but for `trim` bases at each end, else
    ``SKIPPED``. Its event is the one that begins where the signal passes the k-mer. Afterwards the offsets of
    ``batch.rows`` are not those of the events.
    """
    reads, n = np.arange(len(batch)), np.empty(len(batch), np.int64)
    pool.run(count_rows, reads, batch.rows, n, order=batch.number)
    offsets = offsets_of(n)
    total = int(offsets[-1])
    marked = Rows(offsets, n, np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.uint8))
    pool.run(fill_rows, reads, batch.rows, batch.events, batch.alignments, k, trim, marked, order=batch.number)
    batch.rows = marked
