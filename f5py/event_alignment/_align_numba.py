"""Jitted loops that lead one read's events along the reference; see `f5py.event_alignment.align`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._event_map_numba import closest_event
from f5py.core._kmers_numba import next_rank
from f5py.core._read_view_numba import read_view
from f5py.core._turns_numba import counter, own_turns
from f5py.core.batch import RowState
from f5py.core.cigar import ALIGNED, OF_READ, OF_REFERENCE, REFERENCE_SKIP
from f5py.core.hmm import LN_INVERSE_SQRT_2PI
from f5py.event_alignment._viterbi_numba import (
    BAD,
    KMER_SLOTS,
    MARGIN,
    MAX_BASES,
    SCRATCH,
    SKIP,
    Emissions,
    fill,
    path_length,
    trace,
    words_needed,
)
from f5py.jit.kernel import exact_inner, exact_kernel

_BLOCK_ROWS = 50  # rows taken from a block that is not the last of its segment
_MIN_EVENT_STEP = 2  # a block needs that many events besides its first one
_LN_INVERSE_SQRT_2PI = np.float32(LN_INVERSE_SQRT_2PI)
_ROW_BAD, _ROW_NEW_SEGMENT = int(RowState.BAD), int(RowState.NEW_SEGMENT)


@exact_inner
def _aligned_pairs(cigar, reference_start, pair_reference, pair_read, exon_end):
    """List the (reference, read) positions of all aligned bases, and where each exon ends in that list."""
    reference = np.int64(reference_start)
    read = np.int64(0)
    count = 0
    exon = 0
    for c in range(cigar.shape[0]):
        operation = cigar[c] & 15
        length = np.int64(cigar[c] >> 4)
        if ALIGNED >> operation & 1:
            for i in range(length):
                pair_reference[count] = reference + i
                pair_read[count] = read + i
                count += 1
        elif operation == REFERENCE_SKIP:
            exon_end[exon] = count
            exon += 1
        if OF_REFERENCE >> operation & 1:
            reference += length
        if OF_READ >> operation & 1:
            read += length
    exon_end[exon] = count


@exact_inner
def _last_pair_up_to(pair_reference, position, pair, end):
    """Find the last pair of ``pair_reference[pair:end]`` that is not after `position`."""
    for i in range(pair, end):
        if pair_reference[i] > position:
            return i - 1
    return end - 1


class ReadSignal(NamedTuple):
    """A read's events and how they relate to the model."""

    mean: NDArray[np.float32]  # shape (n_events,): in pA
    # scale, shift, var, ln_var: a k-mer's events are about ``scale * level_mean + shift``, with ``var * level_stdv``
    # around that
    scale: np.float32
    shift: np.float32
    var: np.float32
    ln_var: np.float32


class ReadWindows(NamedTuple):
    """Parts of the reference that a read is aligned to."""

    # start, end: shape (n_windows,): sorted, disjoint, half-open
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    stop_when_empty: bool  # end the read at the first exon or window without aligned bases


class ReadRows(NamedTuple):
    """A read's rows, to be filled."""

    # event, position: shape (n_events,): number of the event; 0-based reference position of the k-mer's first base
    event: NDArray[np.int32]
    position: NDArray[np.int32]
    state: NDArray[np.uint8]  # shape (n_events,): bits of `RowState`


class ReadNumbers(NamedTuple):
    """Numbers that every read has for its hidden Markov model."""

    ln_var: NDArray[np.float32]  # shape (n_reads,)
    transitions: NDArray[np.float32]  # shape (n_reads, 8): see `f5py.event_alignment.align.transitions`


@exact_inner
def _fill_kmers(bases, codes, reverse, model, signal, emissions):
    """Fill the emissions of the k-mers of `bases`, or of their opposite strands' if `reverse`.

    Parameters
    ----------
    bases : uint8, shape (n_bases,)
        Letters of the reference.
    codes : f5py.core.kmers.StrandCodes
    reverse : bool
    model : f5py.pore_model.model.Levels
    signal : ReadSignal
    emissions : Emissions
        Filled.
    """
    k, level_mean, level_stdv, ln_stdv = model
    _, scale, shift, var, ln_var = signal
    level, stdv, constant = emissions
    highest = 1
    for _ in range(k - 1):
        highest *= codes.n_letters
    rank = np.int64(0)
    for i in range(bases.shape[0]):
        code = np.int64(codes.reverse[bases[i]] if reverse else codes.forward[bases[i]])
        rank = next_rank(rank, code, codes.n_letters, highest, reverse)
        j = i - k + 1
        if j >= 0:
            level[j] = scale * level_mean[rank] + shift
            stdv[j] = level_stdv[rank] * var
            constant[j] = _LN_INVERSE_SQRT_2PI - (ln_stdv[rank] + ln_var)


@exact_inner
def align_read(read, signal, codes, model, transitions, windows, rows):
    """Align the events of one read to the reference; return the number of rows.

    Parameters
    ----------
    read : f5py.core._read_view_numba.ReadView
    signal : ReadSignal
    codes : f5py.core.kmers.StrandCodes
    model : f5py.pore_model.model.Levels
    transitions : float32, shape (8,)
    windows : ReadWindows
    rows : ReadRows
        Filled.
    """
    segment, reference_start, cigar, reverse, first_event, read_length = read
    event_mean = signal.mean
    window_start, window_end, stop_when_empty = windows
    row_event, row_position, row_state = rows
    k = model.k
    n_pairs = np.int64(0)
    n_exons = 1
    for c in range(cigar.shape[0]):
        operation = cigar[c] & 15
        if ALIGNED >> operation & 1:
            n_pairs += np.int64(cigar[c] >> 4)
        elif operation == REFERENCE_SKIP:
            n_exons += 1
    pair_reference = np.empty(n_pairs, np.int64)
    pair_read = np.empty(n_pairs, np.int64)
    exon_end = np.empty(n_exons, np.int64)
    _aligned_pairs(cigar, reference_start, pair_reference, pair_read, exon_end)

    level = np.zeros(KMER_SLOTS, np.float32)
    stdv = np.ones(KMER_SLOTS, np.float32)
    constant = np.zeros(KMER_SLOTS, np.float32)
    emissions = Emissions(level, stdv, constant)
    scratch = np.empty(SCRATCH, np.float32)
    n_room = np.int64(0)  # events that the following have room for
    events = np.zeros(0, np.float32)
    words = np.empty(0, np.uint16)
    path = np.empty((0, 3), np.int32)
    capacity = row_event.shape[0]
    stride = -1 if reverse else 1
    n_rows = 0
    exon_begin = 0
    for exon in range(n_exons):
        begin = exon_begin
        exon_begin = exon_end[exon]
        for window in range(window_start.shape[0]):
            # Step A: the aligned bases of this exon in this window.
            while begin < exon_end[exon] and pair_reference[begin] < window_start[window]:
                begin += 1
            end = begin
            while end < exon_end[exon] and pair_reference[end] < window_end[window]:
                end += 1
            first_pair = begin
            begin = end
            while end > first_pair and pair_read[end - 1] > read_length - k:
                end -= 1
            if end == first_pair:
                if stop_when_empty:
                    return n_rows
                continue
            first_read = pair_read[first_pair]
            last_read = pair_read[end - 1]
            if reverse:
                first_read = read_length - first_read - k
                last_read = read_length - last_read - k
            event = closest_event(first_event, first_read)
            last_event = closest_event(first_event, last_read)
            if event < 0 or last_event < 0:
                continue

            # Step B: blocks of about a hundred bases, each begun where the rows of the one before end.
            position = pair_reference[first_pair]
            pair = first_pair
            new_segment = n_rows > 0
            while (last_event - event) * stride > 0:
                stop = _last_pair_up_to(pair_reference, position + MAX_BASES - 1, pair, end)
                n_bases = pair_reference[stop] - position + 1
                stop_read = pair_read[stop]
                if reverse:
                    stop_read = read_length - stop_read - k
                stop_event = closest_event(first_event, stop_read)
                if n_bases < 2 * k or stop_event < 0 or (stop_event - event) * stride < _MIN_EVENT_STEP:
                    break
                n_events = abs(stop_event - event) + 1
                n_kmers = n_bases - k + 1
                if n_events > n_room:
                    n_room = 2 * n_events
                    events = np.zeros(n_room + 2 * MARGIN, np.float32)
                    words = np.empty(words_needed(n_room, KMER_SLOTS), np.uint16)
                    path = np.empty((path_length(n_room, KMER_SLOTS), 3), np.int32)
                for i in range(n_events):
                    events[MARGIN + i] = event_mean[stop_event - stride * i]
                at = position - reference_start
                _fill_kmers(segment[at : at + n_bases], codes, reverse, model, signal, emissions)
                possible = fill(events, n_events, n_kmers, emissions, transitions, scratch, words)
                n_path = trace(words, n_events, n_kmers, possible, path)

                last_block = stop == end - 1
                block_event = event
                block_position = position
                block_rows = 0
                # The block's first event has its row already, but for the segment's first event, which gets none.
                for p in range(n_path - 1, -1, -1):
                    if path[p, 2] == SKIP or path[p, 0] == 1:
                        continue
                    if block_rows == _BLOCK_ROWS and not last_block:
                        break
                    event = block_event + stride * (path[p, 0] - 1)
                    position = block_position + path[p, 1]
                    row_event[n_rows] = event
                    row_position[n_rows] = position
                    state = _ROW_BAD if path[p, 2] == BAD else 0
                    row_state[n_rows] = state | _ROW_NEW_SEGMENT if new_segment else state
                    new_segment = False
                    n_rows += 1
                    block_rows += 1
                    if n_rows == capacity:
                        return n_rows
                if block_rows == 0:
                    break
                pair = _last_pair_up_to(pair_reference, position, pair, end)
    return n_rows


@exact_kernel
def align_all(turn, reads, batch, codes, model, numbers, windows, rows):
    """Apply `align_read` to `reads`.

    Parameters
    ----------
    batch : f5py.core.batch.BatchView
    codes : f5py.core.kmers.StrandCodes
    model : f5py.pore_model.model.Levels
    numbers : ReadNumbers
    windows : tuple
        Starts and ends of all windows (int64), the first one of each read and the one after its last (int64, shape
        (n_reads,)), and whether an empty one ends the read.
    rows : f5py.core.batch.Rows
        Filled.
    """
    window_start, window_end, first_window, end_window, stop_when_empty = windows
    events, scaling = batch.events, batch.scaling
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        first = events.offsets[read]
        end = events.offsets[read + 1]
        own = slice(first_window[read], end_window[read])
        rows.n[read] = align_read(
            read_view(batch, read, model.k),
            ReadSignal(
                events.mean[first:end],
                scaling.scale[read],
                scaling.shift[read],
                scaling.var[read],
                numbers.ln_var[read],
            ),
            codes,
            model,
            numbers.transitions[read],
            ReadWindows(window_start[own], window_end[own], stop_when_empty),
            ReadRows(rows.event[first:end], rows.position[first:end], rows.state[first:end]),
        )
