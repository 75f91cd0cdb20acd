"""Marks of reference k-mers as found in the read, and rows for the k-mers that its events skip."""

import numpy as np

from f5py.core.batch import ReadBatch, Rows, RowState
from f5py.core.cigar import ALIGNED, DELETION, INSERTION, OF_READ, OF_REFERENCE
from f5py.core.motifs import COMPLEMENTS
from f5py.core.offsets import offsets_of
from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.threads.pool import WorkerPool

_EQUAL, _DIFFERS, _INSERTED, _DELETED, _OUTSIDE = (np.uint8(ord(mark)) for mark in "=XID.")


@exact_kernel
def fill_marks(queue, reads, alignments, bases, base_offsets, letters, kmer, marks):
    """Fill the mark of each k-mer of the reads' references, by its first base.

    Parameters
    ----------
    letters : uint8, shape (2, 256)
        Reference letter of each read letter, for the forward and the reverse strand.
    kmer : pair of int
        k, and bases ignored at each end.
    marks : uint8, shape (reference_offsets[-1],)
    """
    k, trim = kmer
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        begin, end = alignments.reference_offsets[read], alignments.reference_offsets[read + 1]
        n_bases = base_offsets[read + 1] - base_offsets[read]
        is_reverse = alignments.reverse[read]
        # The last place of each kind; an insertion's is the next base.
        deleted, inserted, different = np.int64(-1), np.int64(-1), np.int64(-1)
        outside = np.int64(-1)
        here = np.int64(0)  # position in the read, in the reference's direction
        operation, last = alignments.cigar_offsets[read], alignments.cigar_offsets[read + 1]
        left = np.int64(0)  # bases of the current operation
        what = np.int64(-1)
        for place in range(end - begin):
            while left == 0 and operation < last:
                what, left = np.int64(alignments.cigar[operation] & 15), np.int64(alignments.cigar[operation] >> 4)
                operation += 1
                if OF_REFERENCE >> what & 1 == 0:
                    if what == INSERTION and left > 0:
                        inserted = place
                    if OF_READ >> what & 1:
                        here += left
                    left = 0
            if left == 0:
                outside = place
            else:
                left -= 1
                if what == DELETION:
                    deleted = place
                elif ALIGNED >> what & 1:
                    is_same = here < n_bases
                    if is_same:
                        at = n_bases - 1 - here if is_reverse else here
                        base = letters[np.int64(is_reverse), bases[base_offsets[read] + at]]
                        is_same = base == alignments.reference[begin + place]
                    if not is_same:
                        different = place
                    here += 1
                else:
                    outside = place
            # The k-mer with its last compared base here.
            first = place - (k - 2 * trim) + 1
            if first < trim:
                continue
            mark = _EQUAL
            if outside >= first:
                mark = _OUTSIDE
            elif deleted >= first:
                mark = _DELETED
            elif inserted > first:
                mark = _INSERTED
            elif different >= first:
                mark = _DIFFERS
            marks[begin + first - trim] = mark
        for place in range(max(end - begin - k + trim + 1, 0), end - begin):
            marks[begin + place] = _OUTSIDE


def compare_kmers(batch: ReadBatch, k: int, pool: WorkerPool, trim: int = 0) -> None:
    """Fill ``batch.kmer_marks`` from reads and alignments, ignoring `trim` bases at both ends of a k-mer.

    Marks are, in this order, ``.`` for k-mers beyond the alignment or in a skipped region (N), ``D`` with a deleted
    base, ``I`` with an insertion inside, ``X`` with a different base, else ``=``.
    """
    batch.kmer_marks = np.empty(int(batch.reference_offsets[-1]), np.uint8)
    letters = np.frombuffer(bytes(range(256)).upper().replace(b"U", b"T"), np.uint8)
    letters = np.stack([letters, COMPLEMENTS[letters]])
    pool.run(
        fill_marks, np.arange(len(batch)), batch.alignments, batch.bases, batch.base_offsets, letters, (k, trim),
        batch.kmer_marks, order=batch.number,
    )  # fmt: skip


_NEW_SEGMENT = np.uint8(RowState.NEW_SEGMENT)
_SKIPPED_STATE, _DELETED_STATE = np.uint8(RowState.SKIPPED), np.uint8(RowState.DELETED)
_NEVER = np.int64(np.iinfo(np.int64).max)


@exact_kernel
def count_rows(queue, reads, rows, n):
    """Count the rows of each read, including those of skipped k-mers.

    Parameters
    ----------
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
                state[at] = _DELETED_STATE if is_deleted else _SKIPPED_STATE
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
