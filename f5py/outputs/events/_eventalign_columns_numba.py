"""Kernels of `f5py.outputs.events.eventalign_arrow`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_kernel
from f5py.outputs.events._eventalign_rows_numba import RowColumns, RowModel, RowsOfRead, fill_rows, prepare_reference
from f5py.text._bytes_numba import BLOCK


class RowPlaces(NamedTuple):
    """Read and k-mer of each row."""

    read: NDArray[np.int32]  # the read's place in the batch
    reference_rank: NDArray[np.int32]  # rank of the k-mer in the reference's direction


@exact_kernel
def fill_columns(first, last, inputs, model, scaled, collapsed, places, columns):
    """Fill the columns with the rows of reads `first` to `last` - 1; return their number.

    Parameters
    ----------
    inputs : TableInputs
    model : tuple
        k (int), the letters' codes (uint8, shape (256,)), levels and standard deviations
        (float32, shape (n_kmers,), pA).
    scaled, collapsed : bool
        See `RowModel` and `fill_rows`.
    places : RowPlaces
        Filled.
    columns : RowColumns
        Filled.
    """
    read, reference_rank = places
    rows, events, alignments, signals, scaling, _ = inputs
    row_offsets, n_rows, row_event, row_position, row_state = rows
    event_offsets, event_start, event_length, event_mean, event_stdv = events
    _, reference_start, reverse, _, _, reference, reference_offsets = alignments
    samples, sample_offsets, offset, unit, sampling_rate = signals
    shift, scale, var = scaling
    k, codes, level_mean, level_stdv = model
    (position, event, model_rank, start, end, level, stdv, seconds, model_level, model_stdv, standardized) = columns
    longest = 0
    for i in range(first, last):
        longest = max(longest, reference_offsets[i + 1] - reference_offsets[i])
    forward = np.empty(longest + BLOCK, np.uint8)
    backward = np.empty(longest + BLOCK, np.uint8)
    rank = np.empty(longest, np.int32)
    plain_rank = np.empty(longest, np.int32)
    at = 0
    for i in range(first, last):
        if n_rows[i] == 0:
            continue
        begin, stop = event_offsets[i], event_offsets[i + 1]
        rows_begin = row_offsets[i]
        rows_end = rows_begin + n_rows[i]
        letters = reference[reference_offsets[i] : reference_offsets[i + 1]]
        prepare_reference(letters, False, k, codes, forward, backward, plain_rank)
        prepare_reference(letters, reverse[i], k, codes, forward, backward, rank)
        my_samples = samples[:0]
        if collapsed:
            my_samples = samples[sample_offsets[i] : sample_offsets[i + 1]]
        n, _ = fill_rows(
            np.int64(0), n_rows[i],
            RowsOfRead(
                row_event[rows_begin:rows_end], row_position[rows_begin:rows_end], row_state[rows_begin:rows_end],
                event_start[begin:stop], event_length[begin:stop], event_mean[begin:stop], event_stdv[begin:stop],
                my_samples, offset[i], unit[i], sampling_rate[i], shift[i], scale[i], var[i], reference_start[i],
            ),
            RowModel(rank, level_mean, level_stdv, scaled), collapsed,
            RowColumns(
                position[at:], event[at:], model_rank[at:], start[at:], end[at:], level[at:], stdv[at:], seconds[at:],
                model_level[at:], model_stdv[at:], standardized[at:],
            ),
        )  # fmt: skip
        for row in range(at, at + n):
            read[row] = i
            reference_rank[row] = plain_rank[position[row] - reference_start[i]]
        at += n
    return at


@exact_kernel
def round_as_printed(values, power):
    """Round values in place as `f5py.outputs.events.table_columns.as_printed` does.

    Parameters
    ----------
    values : float32, shape (n,)
    power : float64
        Ten to the power of the decimals.
    """
    for i in range(values.shape[0]):
        values[i] = np.float32(np.rint(np.float64(values[i]) * power) / power)


@exact_kernel
def fill_samples(read, start, end, signals, scaling, values):
    """Fill in the samples of every row, scaled to the model.

    Parameters
    ----------
    read : int32, shape (n,)
        Each row's read in the batch.
    start, end : int64, shape (n,)
        First sample in the read, and the one after the last.
    signals : f5py.core.batch.Signals
    scaling : f5py.core.batch.Scaling
    values : float32, shape (sum of samples,)
        Filled, in pA of the model.
    """
    samples, sample_offsets, offset, unit = signals.samples, signals.offsets, signals.offset, signals.unit
    shift, scale = scaling.shift, scaling.scale
    at = 0
    for row in range(read.shape[0]):
        i = read[row]
        for t in range(sample_offsets[i] + start[row], sample_offsets[i] + end[row]):
            current = np.float64((np.float32(samples[t]) + offset[i]) * unit[i])
            values[at] = np.float32((current - np.float64(shift[i])) / np.float64(scale[i]))
            at += 1
