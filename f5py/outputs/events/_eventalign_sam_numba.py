"""Kernel of `f5py.outputs.events.eventalign_sam`."""

import numpy as np

from f5py.core.batch import RowState
from f5py.jit.kernel import inner, kernel
from f5py.text._format_numba import append_int

_MATCH = np.uint8(ord("M"))
_INSERTION = np.uint8(ord("I"))
_DELETION = np.uint8(ord("D"))
_SKIP = np.uint8(ord("N"))
_CLIP = np.uint8(ord("S"))
_NEW_SEGMENT = np.uint8(RowState.NEW_SEGMENT)

#: Bytes that a row needs at most: three operations with lengths of int32's size.
MAX_OPERATIONS = 36


@inner
def _append_operation(out, at, length, operation):
    at = append_int(out, at, length)
    out[at] = operation
    return at + 1


@kernel
def format_cigars(out, offsets, n_rows, event_offsets, row_event, row_position, row_state):
    """Write the CIGARs of events against k-mers of all reads, with their offsets.

    Parameters
    ----------
    out : uint8
        Filled; of `MAX_OPERATIONS` bytes for each row.
    offsets : int64, shape (n + 1,)
        Filled.
    n_rows, event_offsets : int64, shape (n,)
        Number of rows of each read, and its first one.
    row_event, row_position, row_state
        See `f5py.core.batch.Rows`.
    """
    at = 0
    offsets[0] = 0
    for read in range(n_rows.shape[0]):
        first = event_offsets[read]
        n = n_rows[read]
        if n > 0:
            if row_event[first] > 0:
                at = _append_operation(out, at, row_event[first], _CLIP)
            # the operation that may still grow
            pending = np.int64(1)
            kind = _MATCH
            for row in range(first + 1, first + n):
                kmers = abs(np.int64(row_position[row]) - row_position[row - 1])
                events = abs(np.int64(row_event[row]) - row_event[row - 1])
                if events > 1:  # only between segments: events of bases that neither of them has a k-mer for
                    if kind != _INSERTION:
                        at = _append_operation(out, at, pending, kind)
                        kind = _INSERTION
                        pending = np.int64(0)
                    pending += events - 1
                if kmers > 1:
                    at = _append_operation(out, at, pending, kind)
                    at = _append_operation(out, at, kmers - 1, _SKIP if row_state[row] & _NEW_SEGMENT else _DELETION)
                    kind = _MATCH
                    pending = np.int64(1)
                else:
                    wanted = _MATCH if kmers == 1 else _INSERTION
                    if kind != wanted:
                        at = _append_operation(out, at, pending, kind)
                        kind = wanted
                        pending = np.int64(0)
                    pending += 1
            at = _append_operation(out, at, pending, kind)
        offsets[read + 1] = at
