"""Jitted values of the event table's rows, for every format it is written in.

All are single precision, rounded after every operation and added up in the order of the signal, as in the reference.
A row stands for one event or, for a group of rows with one position, for the signal from its first to its last event.
No helper functions that get arrays are called in the loops, as counting references takes longer than their work.
"""

from __future__ import annotations

import numpy as np

from f5py.core._kmers_numba import next_rank
from f5py.core.batch import RowState
from f5py.jit.kernel import exact_kernel
from f5py.text.complements import COMPLEMENTS

_BAD = np.uint8(RowState.BAD)
_ZERO = np.float32(0.0)


@exact_kernel
def prepare_reference(letters, reverse, k, codes, forward, backward, rank):
    """Fill a read's reference k-mers.

    Parameters
    ----------
    letters : uint8, shape (n,)
    reverse : bool
    k : int
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


@exact_kernel
def fill_rows(
    row, limit, row_event, row_position, row_state, event_start, event_length, event_mean, event_stdv,
    samples, offset, unit, rate, shift, scale, var, rank, reference_start, level_mean, level_stdv, scaled, collapsed,
    position, event, model_rank, start, end, level, stdv, seconds, model_level, model_stdv, standardized,
):  # fmt: skip
    """Fill the columns of one read's table rows, at most `limit`, from row `row` of its alignment on.

    The last line of arguments is filled: int32 `position`, `event` and `model_rank`, which is -1 if the event fits no
    k-mer, int64 `start` and `end` in samples, the rest float32. Returns the number of rows filled and the row of the
    alignment to go on with.
    """
    root_var = np.sqrt(var)
    filled = 0
    while filled < limit and row < row_event.shape[0]:
        stop = row + 1
        while collapsed and stop < row_position.shape[0] and row_position[stop] == row_position[row]:
            stop += 1
        first, last = row_event[row], row_event[stop - 1]
        position[filled] = row_position[row]
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
        row_rank = -1 if row_state[row] & _BAD else rank[row_position[row] - reference_start]
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


@exact_kernel
def fill_positions(
    row, limit, row_event, row_position, row_state, event_start, event_length, event_mean, event_stdv,
    rate, shift, scale, forward, backward, n_letters, reverse, shown, reference_start,
    position, start, end, level, stdv, seconds,
):  # fmt: skip
    """`fill_rows` for m6anet: one row per position, averaged over the events that fit the reference's k-mer.

    Averages are weighted by the events' samples. Positions without such an event are left out: all those of a reverse
    record whose k-mer is not its own reverse complement. `shown` is k, and the bases that are hidden at each end.
    """
    k, trim = shown
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
