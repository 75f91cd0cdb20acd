"""Rows of the event table as arrays, for binary outputs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._kmers_numba import next_rank
from f5py.core.batch import Alignments, Events, ReadBatch, Rows, RowState, Scaling, Signals
from f5py.core.kmers import base_codes, trimmed
from f5py.core.motifs import COMPLEMENTS
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.pore_model.model import PoreModel
from f5py.text._bytes_numba import BLOCK

_BAD, _DELETED = np.uint8(RowState.BAD), np.uint8(RowState.DELETED)
_WITHOUT_EVENT = np.uint8(RowState.SKIPPED | RowState.DELETED)
_ZERO = np.float32(0.0)

#: Ranks of a row's k-mer on the strand of the read if no model has it: the event fits no k-mer, or the k-mer has no
#: event, in a deletion or elsewhere. What k-mers of rank -1 - i are shown as is element i of `MARKS`.
UNKNOWN_RANK, DELETED_RANK, SKIPPED_RANK = -1, -2, -3
MARKS = b"N-."


class TableLayout(NamedTuple):
    """Columns and units of the event table."""

    print_read_names: bool = False  # show the reads' names instead of their numbers
    scale_events: bool = False  # scale the events to the model instead of the model to the events
    samples: bool = False  # add the samples of each row, scaled to the model
    signal_index: bool = False  # add the first sample of each row and the one after its last
    collapse_events: bool = False  # make one row of consecutive rows with the same position
    mark_kmers: bool = False  # add how the bases of the read differ from the reference's k-mer
    # write the columns of f5c's table for m6anet, one row per position; `scale_events`, `samples` and `collapse_events`
    # are then without effect. Positions at which no event fits the k-mer are left out.
    m6anet: bool = False
    # show only so many bases in the middle of each k-mer, and the position of the first of them
    kmer_view: int | None = None

    def trimmed(self, k: int) -> int:
        """Return the hidden bases at each end of a k-mer."""
        return trimmed(k, self.kmer_view)


class RowColumns(NamedTuple):
    """Columns of the table, one element per row, not rounded."""

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
    # read, reference_rank: the read's place in the batch, and the rank of the k-mer in the reference's direction
    read: NDArray[np.int32]
    reference_rank: NDArray[np.int32]


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
    """Fill a read's reference letters, their reverse complement, and the rank of the k-mer at each place.

    The rank is that of the reverse complement if `reverse`; both arrays of letters have `BLOCK` bytes more.
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
def _of_read(inputs, read):
    """Select a read's rows (event, position, state) and events (start, length, mean, deviation)."""
    rows, events = inputs.rows, inputs.events
    own = slice(rows.offsets[read], rows.offsets[read] + rows.n[read])
    of_events = slice(events.offsets[read], events.offsets[read + 1])
    return (
        rows.event[own], rows.position[own], rows.state[own], events.start[of_events], events.length[of_events],
        events.mean[of_events], events.stdv[of_events],
    )  # fmt: skip


@exact_inner
def fill_rows(row, limit, inputs, read, model, collapsed, columns):
    """Fill the columns of at most `limit` table rows, from row `row` of a read's alignment on.

    `model` has the rank of the k-mer at each place (see `prepare_reference`), levels and standard deviations by rank,
    and whether events are brought to the model's scale. With `collapsed`, neighboring events with one position share a
    row. Returns the number of rows filled, and the next row of the alignment.
    """
    row_event, row_position, row_state, event_start, event_length, event_mean, event_stdv = _of_read(inputs, read)
    signals, scaling, reference_start = inputs.signals, inputs.scaling, inputs.alignments.start[read]
    samples = signals.samples[signals.offsets[read] : signals.offsets[read + 1]]  # none if rows are of single events
    offset, unit, rate = signals.offset[read], signals.unit[read], signals.sampling_rate[read]
    shift, scale, var = scaling.shift[read], scaling.scale[read], scaling.var[read]
    rank, level_mean, level_stdv, scaled = model
    position, event, model_rank, start, end, level, stdv, seconds, model_level, model_stdv, standardized, _, _ = columns
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
def fill_positions(row, limit, inputs, read, letters, columns):
    """Fill the columns for m6anet: one row per position, averaged over the events that fit the k-mer.

    Averages are weighted by the events' samples. Positions without such an event are skipped: all those of a reverse
    record unless the k-mer is its own reverse complement. Arguments and results are those of `fill_rows`; `letters` are
    the reference and its reverse complement of `prepare_reference`, number of letters, strand, k, and hidden bases at
    each end of a k-mer.
    """
    row_event, row_position, row_state, event_start, event_length, event_mean, event_stdv = _of_read(inputs, read)
    rate, reference_start = inputs.signals.sampling_rate[read], inputs.alignments.start[read]
    shift, scale = inputs.scaling.shift[read], inputs.scaling.scale[read]
    forward, backward, n_letters, reverse, k, trim = letters
    position, _, _, start, end, level, stdv, seconds, _, _, _, _, _ = columns
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


@exact_kernel
def fill_columns(first, last, inputs, model, scaled, collapsed, columns):
    """Fill the columns with the rows of reads `first` to `last` - 1; return their number.

    Parameters
    ----------
    model : tuple
        k, the letters' codes (uint8, shape (256,)), levels and standard deviations (float32, shape (n_kmers,), pA).
    """
    n_rows, alignments = inputs.rows.n, inputs.alignments
    reference, reference_offsets = alignments.reference, alignments.reference_offsets
    k, codes, level_mean, level_stdv = model
    (
        position, event, model_rank, start, end, level, stdv, seconds, model_level, model_stdv, standardized, read,
        reference_rank,
    ) = columns  # fmt: skip
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
        letters = reference[reference_offsets[i] : reference_offsets[i + 1]]
        prepare_reference(letters, False, k, codes, forward, backward, plain_rank)
        prepare_reference(letters, alignments.reverse[i], k, codes, forward, backward, rank)
        of_read = RowColumns(
            position[at:], event[at:], model_rank[at:], start[at:], end[at:], level[at:], stdv[at:], seconds[at:],
            model_level[at:], model_stdv[at:], standardized[at:], read, reference_rank,
        )  # fmt: skip
        of_model = rank, level_mean, level_stdv, scaled
        n, _ = fill_rows(np.int64(0), n_rows[i], inputs, i, of_model, collapsed, of_read)
        for row in range(at, at + n):
            read[row] = i
            reference_rank[row] = plain_rank[position[row] - alignments.start[i]]
        at += n
    return at


@exact_kernel
def round_as_printed(values, power):
    """Round values in place as `f5py.outputs.events.table_columns.as_printed` does.

    Parameters
    ----------
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
    start, end : int64, shape (n,)
        First sample in the read, and the one after the last.
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


def table_columns(
    batch: ReadBatch, model: PoreModel, first: int, end: int, scale_events: bool = False, collapse_events: bool = False
) -> RowColumns:
    """Convert the rows of reads `first` to `end` - 1 of a batch to columns.

    The batch needs its events, reference segments and, for `collapse_events`, its samples.
    """
    capacity = int(batch.rows.n[first:end].sum())
    types = 3 * [np.int32] + 2 * [np.int64] + 6 * [np.float32] + 2 * [np.int32]
    columns = RowColumns._make(np.empty(capacity, dtype) for dtype in types)
    parameters = (model.k, base_codes(), model.level_mean, model.level_stdv)
    inputs = TableInputs(batch.rows, batch.events, batch.alignments, batch.signals, batch.scaling, batch.kmer_marks)
    n = fill_columns(first, end, inputs, parameters, scale_events, collapse_events, columns)
    return RowColumns._make(column[:n] for column in columns)


def as_printed(values: NDArray[np.float32], decimals: int) -> NDArray[np.float64]:
    """Round values as the text table does; the products are exact, so that they are rounded as by printf."""
    power = 10.0**decimals
    return np.rint(values.astype(np.float64) * power) / power
