"""Alignment of a read's events to k-mers of the reference.

The base-to-event map gives the events of a block of about 100 reference bases, from the aligned bases at its ends. A
hidden Markov model over the k-mers of the reference assigns these events. The first fifty become rows, and the next
block begins where they end. A new segment begins after an intron, and in a new window.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core._kmers_numba import next_rank
from f5py.core._read_view_numba import closest_event, read_view
from f5py.core.batch import ReadBatch, ReadStatus, Rows, RowState
from f5py.core.cigar import ALIGNED, OF_READ, OF_REFERENCE, REFERENCE_SKIP
from f5py.core.hmm import LN_INVERSE_SQRT_2PI, MIN_STAY, P_BAD, P_SKIP, P_SKIP_SELF
from f5py.core.kmers import strand_codes
from f5py.core.windows import Windows
from f5py.event_alignment import viterbi
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first

_BLOCK_ROWS = 50  # rows of a block, unless it is the last of its segment
_MIN_EVENT_STEP = 2  # fewest events of a block besides its first one
_LN_INVERSE_SQRT_2PI = np.float32(LN_INVERSE_SQRT_2PI)
_ROW_BAD, _ROW_NEW_SEGMENT = int(RowState.BAD), int(RowState.NEW_SEGMENT)


@exact_inner
def _aligned_pairs(cigar, reference_start, pair_reference, pair_read, exon_end):
    """List aligned bases by reference and read position, and the exons' ends; return the number of exons."""
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
    return exon + 1


@exact_inner
def _last_pair_up_to(pair_reference, position, pair, end):
    """Return the index of the last of the pairs from `pair` to `end` at or before `position`."""
    for i in range(pair, end):
        if pair_reference[i] > position:
            return i - 1
    return end - 1


@exact_inner
def _fill_kmers(bases, codes, reverse, model, scaling, emissions):
    """Fill the emissions of the k-mers of reference `bases`, or of the opposite strand if `reverse`."""
    k, level_mean, level_stdv, ln_stdv = model
    scale, shift, var, ln_var = scaling
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
def _align_read(batch, read, codes, model, ln_var, transitions, windows, rows):
    """Align the events of one read to the reference; return the number of rows."""
    segment, reference_start, cigar, reverse, first_event, read_length = read_view(batch, read, model.k)
    scaling = batch.scaling.scale[read], batch.scaling.shift[read], batch.scaling.var[read], ln_var[read]
    own = slice(batch.events.offsets[read], batch.events.offsets[read + 1])
    event_mean = batch.events.mean[own]
    row_event, row_position, row_state = rows.event[own], rows.position[own], rows.state[own]
    starts, ends, first_window, end_window, stop_when_empty = windows
    window_start = starts[first_window[read] : end_window[read]]
    window_end = ends[first_window[read] : end_window[read]]
    transitions_of_read = transitions[read]
    k = model.k
    pair_reference, pair_read = np.empty(segment.shape[0], np.int64), np.empty(segment.shape[0], np.int64)
    exon_end = np.empty(cigar.shape[0] + 1, np.int64)
    n_exons = _aligned_pairs(cigar, reference_start, pair_reference, pair_read, exon_end)

    level = np.zeros(viterbi.KMER_SLOTS, np.float32)
    stdv = np.ones(viterbi.KMER_SLOTS, np.float32)
    constant = np.zeros(viterbi.KMER_SLOTS, np.float32)
    emissions = viterbi.BlockEmissions(level, stdv, constant)
    scratch = np.empty(viterbi.SCRATCH, np.float32)
    n_room = np.int64(0)  # capacity of the following, in events
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

            # Step B: blocks of about a hundred bases, each from the end of the previous block's rows.
            position = pair_reference[first_pair]
            pair = first_pair
            new_segment = n_rows > 0
            while (last_event - event) * stride > 0:
                stop = _last_pair_up_to(pair_reference, position + viterbi.MAX_BASES - 1, pair, end)
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
                    events = np.zeros(n_room + 2 * viterbi.MARGIN, np.float32)
                    words = np.empty(viterbi.words_needed(n_room, viterbi.KMER_SLOTS), np.uint16)
                    path = np.empty((n_room + viterbi.KMER_SLOTS, 3), np.int32)
                for i in range(n_events):
                    events[viterbi.MARGIN + i] = event_mean[stop_event - stride * i]
                at = position - reference_start
                _fill_kmers(segment[at : at + n_bases], codes, reverse, model, scaling, emissions)
                possible = viterbi.fill(events, n_events, n_kmers, emissions, transitions_of_read, scratch, words)
                n_path = viterbi.trace(words, n_events, n_kmers, possible, path)

                last_block = stop == end - 1
                block_event = event
                block_position = position
                block_rows = 0
                # The block's first event has a row already; the segment's first event gets none.
                for p in range(n_path - 1, -1, -1):
                    if path[p, 2] == viterbi.SKIP or path[p, 0] == 1:
                        continue
                    if block_rows == _BLOCK_ROWS and not last_block:
                        break
                    event = block_event + stride * (path[p, 0] - 1)
                    position = block_position + path[p, 1]
                    row_event[n_rows] = event
                    row_position[n_rows] = position
                    state = _ROW_BAD if path[p, 2] == viterbi.BAD else 0
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
def align_all(queue, reads, batch, codes, model, ln_var, transitions, windows, rows):
    """Fill the rows of `reads`.

    Parameters
    ----------
    ln_var : float32, shape (n_reads,)
    transitions : float32, shape (n_reads, 8)
    windows : tuple
        Starts and ends of all windows (int64), the first window of each read and the end of its windows (int64, shape
        (n_reads,)), and whether a read ends at its first exon or window without aligned bases.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        rows.n[read] = _align_read(batch, read, codes, model, ln_var, transitions, windows, rows)


# In single precision, as f5c computes with them here.
_P_SKIP = np.float32(P_SKIP)
_P_BAD = np.float32(P_BAD)
_P_SKIP_SELF = np.float32(P_SKIP_SELF)
_MIN_STAY = np.float32(MIN_STAY)


def transitions(events_per_base: NDArray[np.float64]) -> NDArray[np.float32]:
    """Compute log transition probabilities of reads, shape (n, 8); see `f5py.event_alignment.viterbi`."""
    one = np.float32(1.0)
    with np.errstate(divide="ignore"):
        stay = np.maximum((1.0 - 1.0 / events_per_base).astype(np.float32), _MIN_STAY)
    probabilities = np.empty((len(stay), 8), np.float32)
    probabilities[:, 0] = stay
    probabilities[:, 1] = ((one - stay) - _P_SKIP) - _P_BAD
    probabilities[:, 2] = _P_BAD
    probabilities[:, 3] = _P_SKIP
    probabilities[:, 4] = _P_BAD
    probabilities[:, 5] = (one - _P_BAD) / np.float32(3.0)
    probabilities[:, 6] = _P_SKIP_SELF
    probabilities[:, 7] = one - _P_SKIP_SELF
    return np.log(probabilities.astype(np.float64)).astype(np.float32)


class RowOffload(Protocol):
    """Alignment to the reference of some reads of a batch on another device."""

    def rows(self, batch: ReadBatch) -> NDArray[np.bool_]:
        """Mask of the offloaded reads."""

    def begin_rows(
        self, batch: ReadBatch, model: PoreModel, ln_var: NDArray[np.float32], log_transitions: NDArray[np.float32]
    ) -> None:
        """Start the alignment of these reads."""

    def fetch_rows(self, batch: ReadBatch) -> NDArray[np.bool_]:
        """Wait for the device and fill the rows; return a mask of the reads that it returns undone."""


def align_events(
    batch: ReadBatch,
    model: PoreModel,
    pool: WorkerPool,
    windows: Windows | None,
    elsewhere: RowOffload | None = None,
) -> float:
    """Fill ``batch.rows`` of reads that are OK, in reference order; return the threads' seconds.

    The first event of a segment gets no row. A segment ends at about a hundred reference bases without aligned ones.
    Each window of a BED file is a segment. A region is one base longer at its end, as in f5c.

    Parameters
    ----------
    model : PoreModel
        With the alphabet ACGMT, marked k-mers of the reference are methylated; see `f5py.core.kmers.StrandCodes`.
    elsewhere : RowOffload, optional
        Only used without windows.
    """
    offsets = batch.events.offsets
    batch.rows = Rows(
        offsets, np.zeros(len(batch), np.int64), np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32),
        np.empty(offsets[-1], np.uint8),
    )  # fmt: skip
    wanted = batch.status == ReadStatus.OK
    # Reads without an alignment have no events per base, and no rows.
    log_transitions = transitions(np.where(wanted, batch.events_per_base, 1.0))
    ln_var = np.log(np.where(wanted, batch.var, 1.0).astype(np.float64)).astype(np.float32)

    def align(reads: NDArray[np.bool_]) -> float:
        return pool.run(
            align_all, longest_first(batch.n_events, reads), batch.view, strand_codes(model.alphabet), model.levels,
            ln_var, log_transitions, _windows_of_reads(batch, windows), batch.rows, order=batch.number,
        )  # fmt: skip

    if elsewhere is None or windows is not None or not (others := elsewhere.rows(batch)).any():
        return align(wanted)
    elsewhere.begin_rows(batch, model, ln_var, log_transitions)
    seconds = align(wanted & ~others)
    return seconds + align(elsewhere.fetch_rows(batch))


def _windows_of_reads(batch: ReadBatch, windows: Windows | None) -> tuple:
    """Find the range of windows that overlap each read; see `align_all`."""
    n = len(batch)
    if windows is None:
        everything = np.array([0], np.int64), np.array([np.iinfo(np.int64).max], np.int64)
        return *everything, np.zeros(n, np.int64), np.ones(n, np.int64), True
    starts, ends, first, stop = windows.overlapping(
        batch.contig, batch.reference_start, batch.reference_end, int(windows.is_region)
    )
    return starts, ends, first, stop, windows.is_region
