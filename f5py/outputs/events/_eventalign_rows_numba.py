"""Kernels of the event table's rows, shared by all formats.

Values are single precision, rounded after every operation and summed in the order of the signal, as in f5c. A row is
one event or, for a group of rows with one position, the signal from its first to its last event. The loops call no
functions with array arguments, as counting references would take longer than their work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._kmers_numba import next_rank
from f5py.core.batch import Alignments, Events, Rows, RowState, Scaling, Signals
from f5py.core.motifs import COMPLEMENTS
from f5py.jit.kernel import exact_inner

_BAD, _DELETED = np.uint8(RowState.BAD), np.uint8(RowState.DELETED)
_WITHOUT_EVENT = np.uint8(RowState.SKIPPED | RowState.DELETED)
_ZERO = np.float32(0.0)

#: Ranks of a row's k-mer on the strand of the read if no model has it: the event fits no k-mer, or the k-mer has no
#: event, in a deletion or elsewhere. What k-mers of rank -1 - i are shown as is element i of `MARKS`.
UNKNOWN_RANK, DELETED_RANK, SKIPPED_RANK = -1, -2, -3
MARKS = b"N-."


class RowsOfRead(NamedTuple):
    """A read's alignment, events and signal."""

    # row_event, row_position: shape (n_rows,): number of the event; 0-based reference position of the k-mer's first
    # base
    row_event: NDArray[np.int32]
    row_position: NDArray[np.int32]
    row_state: NDArray[np.uint8]  # shape (n_rows,): bits of `f5py.core.batch.RowState`
    # event_start, event_length: shape (n_events,): in samples
    event_start: NDArray[np.int32]
    event_length: NDArray[np.int32]
    # event_mean, event_stdv: shape (n_events,): in pA
    event_mean: NDArray[np.float32]
    event_stdv: NDArray[np.float32]
    samples: NDArray[np.int16]  # shape (n_samples,): raw; none if rows stand for single events
    # offset, unit, rate: ``pA = (sample + offset) * unit``; Hz
    offset: np.float32
    unit: np.float32
    rate: np.float32
    # shift, scale, var: of the events against the model
    shift: np.float32
    scale: np.float32
    var: np.float32
    reference_start: np.int64  # 0-based reference position of the first letter


class RowModel(NamedTuple):
    """Pore model for rows."""

    # shape (n_letters,): of the k-mer at each place of the read's reference; see `prepare_reference`
    rank: NDArray[np.int32]
    # level_mean, level_stdv: shape (n_kmers,): the pore model in rank order, in pA
    level_mean: NDArray[np.float32]
    level_stdv: NDArray[np.float32]
    scaled: bool  # bring events to the model's scale instead of the model to the events'


class RowColumns(NamedTuple):
    """Columns to be filled, one element per row of the table."""

    # position, event: 0-based reference position; number of the row's first event, -1 for none
    position: NDArray[np.int32]
    event: NDArray[np.int32]
    model_rank: NDArray[np.int32]  # `UNKNOWN_RANK`, `DELETED_RANK` or `SKIPPED_RANK` where there is none
    # start, end: first sample and the one after the last
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    # level, stdv: in pA, or on the model's scale
    level: NDArray[np.float32]
    stdv: NDArray[np.float32]
    seconds: NDArray[np.float32]
    # model_level, model_stdv: as `level`
    model_level: NDArray[np.float32]
    model_stdv: NDArray[np.float32]
    standardized: NDArray[np.float32]  # distance from the model's level in its standard deviations


class ReferenceLetters(NamedTuple):
    """A read's reference and its reverse complement; see `prepare_reference`."""

    forward: NDArray[np.uint8]  # shape (>= n_letters,)
    backward: NDArray[np.uint8]  # shape (>= n_letters,)
    n_letters: int
    reverse: bool  # strand of the read
    # k, trim: bases of a k-mer, and how many of them are hidden at each end
    k: int
    trim: int


class TableInputs(NamedTuple):
    """Groups of a `ReadBatch` for the rows of the table."""

    rows: Rows
    events: Events
    alignments: Alignments
    signals: Signals
    scaling: Scaling
    kmer_marks: NDArray[np.uint8]  # of `ReadBatch`; empty if there is no column of them


@exact_inner
def prepare_reference(letters, reverse, k, codes, forward, backward, rank):
    """Fill a read's reference k-mers.

    Parameters
    ----------
    letters : uint8, shape (n,)
    codes : uint8, shape (256,)
        0 to 3 for the letters ACGT.
    forward, backward : uint8, shape (m,), m >= n + `BLOCK`
        Filled with the letters and with their reverse complement.
    rank : int32, shape (m,)
        Filled with the rank of the k-mer at each place, of its reverse complement if `reverse`.
    """
    n = letters.shape[0]
    highest = 4 ** (k - 1)
    code_of_kmer = 0
    for i in range(n):
        letter = letters[i]
        forward[i] = letter
        backward[n - 1 - i] = COMPLEMENTS[letter]
        code = np.int64(codes[letter])
        code_of_kmer = next_rank(code_of_kmer, 3 - code if reverse else code, 4, highest, reverse)
        if i >= k - 1:
            rank[i - k + 1] = code_of_kmer


@exact_inner
def fill_rows(row, limit, read, model, collapsed, columns):
    """Fill the columns of at most `limit` table rows, from row `row` of a read's alignment on.

    With `collapsed`, neighboring events with one position share a row. Returns the number of rows filled, and the next
    row of the alignment.
    """
    (
        row_event, row_position, row_state, event_start, event_length, event_mean, event_stdv, samples, offset, unit,
        rate, shift, scale, var, reference_start,
    ) = read  # fmt: skip
    rank, level_mean, level_stdv, scaled = model
    position, event, model_rank, start, end, level, stdv, seconds, model_level, model_stdv, standardized = columns
    root_var = np.sqrt(var)
    filled = 0
    while filled < limit and row < row_event.shape[0]:
        stop = row + 1
        while collapsed and stop < row_position.shape[0] and row_position[stop] == row_position[row]:
            stop += 1
        first, last = row_event[row], row_event[stop - 1]
        position[filled] = row_position[row]
        if row_state[row] & _WITHOUT_EVENT:
            event[filled] = -1
            start[filled] = end[filled] = event_start[first]
            level[filled] = stdv[filled] = seconds[filled] = model_level[filled] = model_stdv[filled] = _ZERO
            standardized[filled] = np.float32(np.inf)  # so that it is left out wherever bad events are
            model_rank[filled] = DELETED_RANK if row_state[row] & _DELETED else SKIPPED_RANK
            filled += 1
            row = stop
            continue
        event[filled] = first
        start[filled] = min(event_start[first], event_start[last])
        end[filled] = max(event_start[first] + event_length[first], event_start[last] + event_length[last])
        row_level, row_stdv = event_mean[first], event_stdv[first]
        if stop > row + 1:
            n_samples = np.float32(end[filled] - start[filled])
            total = _ZERO
            for t in range(start[filled], end[filled]):
                total += (np.float32(samples[t]) + offset) * unit
            row_level = total / n_samples
            total = _ZERO
            for t in range(start[filled], end[filled]):
                difference = (np.float32(samples[t]) + offset) * unit - row_level
                total += difference * difference
            row_stdv = np.sqrt(total / n_samples)
        if scaled:
            row_level = (row_level - shift) / scale
        row_rank = UNKNOWN_RANK if row_state[row] & _BAD else rank[row_position[row] - reference_start]
        row_model_level, row_model_stdv = _ZERO, _ZERO
        if row_rank >= 0:
            row_model_level, row_model_stdv = level_mean[row_rank], level_stdv[row_rank]
            if not scaled:
                row_model_level, row_model_stdv = scale * row_model_level + shift, row_model_stdv * var
        level[filled] = row_level
        stdv[filled] = row_stdv
        seconds[filled] = np.float32(end[filled] - start[filled]) / rate
        model_rank[filled] = row_rank
        model_level[filled] = row_model_level
        model_stdv[filled] = row_model_stdv
        standardized[filled] = (row_level - row_model_level) / (root_var * row_model_stdv)
        filled += 1
        row = stop
    return filled, row


@exact_inner
def fill_positions(row, limit, read, letters, columns):
    """Fill the columns for m6anet: one row per position, averaged over the events that fit the reference's k-mer.

    Averages are weighted by the events' samples. Positions without such an event are skipped: all those of a reverse
    record whose k-mer is not its own reverse complement. Arguments and results are those of `fill_rows`.
    """
    (
        row_event, row_position, row_state, event_start, event_length, event_mean, event_stdv, _, _, _, rate, shift,
        scale, _, reference_start,
    ) = read  # fmt: skip
    forward, backward, n_letters, reverse, k, trim = letters
    position, _, _, start, end, level, stdv, seconds, _, _, _ = columns
    filled = 0
    while filled < limit and row < row_event.shape[0]:
        stop = row + 1
        while stop < row_position.shape[0] and row_position[stop] == row_position[row]:
            stop += 1
        first, last = row_event[row], row_event[stop - 1]
        kmer = row_position[row] - reference_start
        fits = True
        if reverse:
            for i in range(trim, k - trim):
                fits &= forward[kmer + i] == backward[n_letters - k - kmer + i]
        weight = np.int64(0)
        weighted_level, weighted_stdv, weighted_seconds = _ZERO, _ZERO, _ZERO
        for i in range(row, stop if fits else row):
            if row_state[i] & _BAD == 0:
                e = row_event[i]
                length = np.float32(event_length[e])
                weight += np.int64(event_length[e])
                weighted_level += (event_mean[e] - shift) / scale * length
                weighted_stdv += event_stdv[e] * length
                weighted_seconds += length / rate * length
        if weight > 0:
            position[filled] = row_position[row]
            start[filled] = min(event_start[first], event_start[last])
            end[filled] = max(event_start[first] + event_length[first], event_start[last] + event_length[last])
            level[filled] = weighted_level / np.float32(weight)
            stdv[filled] = weighted_stdv / np.float32(weight)
            seconds[filled] = weighted_seconds / np.float32(weight)
            filled += 1
        row = stop
    return filled, row
