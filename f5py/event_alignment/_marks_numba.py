"""Jitted loops of `f5py.event_alignment.marks`."""

import numpy as np

from f5py.core._turns_numba import counter, own_turns
from f5py.core.batch import RowState
from f5py.core.cigar import DELETION, OF_REFERENCE
from f5py.jit.kernel import exact_kernel

_NEW_SEGMENT = np.uint8(RowState.NEW_SEGMENT)
_SKIPPED, _DELETED = np.uint8(RowState.SKIPPED), np.uint8(RowState.DELETED)
_NEVER = np.int64(np.iinfo(np.int64).max)


@exact_kernel
def count_rows(turn, reads, rows, n):
    """Count the reads' rows and the k-mers without an event between these.

    Parameters
    ----------
    rows : f5py.core.batch.Rows
    n : int64, shape (n_reads,)
        Filled.
    """
    offsets, n_rows, _, position, state = rows
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        first = offsets[read]
        n[read] = n_rows[read]
        for row in range(first + 1, first + n_rows[read]):
            if state[row] & _NEW_SEGMENT == 0:
                n[read] += max(np.int64(position[row]) - np.int64(position[row - 1]) - 1, 0)


@exact_kernel
def fill_rows(turn, reads, rows, events, alignments, k, trim, marked):
    """Copy the rows of the reads, with a row more for each k-mer between them that has no event.

    Parameters
    ----------
    rows : f5py.core.batch.Rows
    events : f5py.core.batch.Events
    alignments : f5py.core.batch.Alignments
    k, trim : int
        Bases of a k-mer, and how many of them are hidden at each end.
    marked : f5py.core.batch.Rows
        Filled; its `n` is what `count_rows` says.
    """
    offsets, n_rows, row_event, row_position, row_state = rows
    marked_offsets, _, event, position, state = marked
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        if n_rows[read] == 0:
            continue
        first_event = events.offsets[read]
        operation, last_operation = alignments.cigar_offsets[read], alignments.cigar_offsets[read + 1]
        passed = np.int64(alignments.start[read])  # of the reference, by the operations up to this one
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
                # The event that begins where the signal comes to the k-mer: of the two beside it the later one.
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
