"""Adaptive banded event alignment (ABEA): events to the k-mers of the read's own bases.

Rows are a read's events, columns the k-mers of its bases as sequenced. Only a band of 100 cells around the likely path
is computed on every anti-diagonal. It moves towards its end with the better score, the rule of Suzuki and Kasahara (BMC
Bioinformatics 19:45, 2018). Gamaarachchi et al. (BMC Bioinformatics 21:343, 2020) describe f5c's algorithm.

Layout. The cell at offset o of the band with lower left corner (event E, k-mer K) is (E - o, K + o). Events are stored
last first, so that a band reads events, k-mers and the two previous bands at ascending, contiguous addresses. Six
vectors of 16 lanes and one of 4 cover a band. Cells of minus infinity around each band make bounds checks unnecessary.

The traceback needs two bits a cell, "from the left" and "from above": the vectors' comparison masks, stored unchanged.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.core.hmm import LN_INVERSE_SQRT_2PI as _LN_INVERSE_SQRT_2PI
from f5py.jit import simd
from f5py.jit.c_memory import aligned_floats
from f5py.jit.kernel import inner
from f5py.pore_model.model import PoreModel

#: Cells of a band.
BANDWIDTH = 100
_VECTORS = BANDWIDTH // simd.LANES
_TAIL = _VECTORS * simd.LANES  # first of the remaining four cells
_PAD = simd.LANES  # cells of minus infinity before and (at least) after a band
_SCORES = _PAD + _TAIL + 2 * _PAD
_WORDS = 16  # uint16 words per band: left masks at 0, movement at 7, up masks at 8
_MOVED_RIGHT = 7
_UP = 8

_IMPOSSIBLE = np.float32(-np.inf)
LN_INVERSE_SQRT_2PI = np.float32(_LN_INVERSE_SQRT_2PI)
LP_SKIP = math.log(1e-10)
_LP_TRIM = np.float32(math.log(0.01))
SQRT_HALF = np.float32(math.sqrt(0.5))

# Why an alignment was rejected: `f5py.core.batch.Cause`.
ALIGNED = 0
LOW_EMISSION = 1
NOT_SPANNING = 2
LONG_GAP = 3


class AlignmentLimits(NamedTuple):
    """Limits of accepted alignments; the defaults are f5c's constants."""

    max_events_per_base: float = 15.0  # reads with more are not aligned
    min_mean_emission: float = -5.0  # mean log-likelihood of the aligned events
    max_gap: int = 50  # consecutive k-mers without an event


F5C_LIMITS: AlignmentLimits = AlignmentLimits()


@inner
def _score_cells(event, level, inverse, constant, before, moves):
    """Compute a vector of scores, and its masks of moves from the left and from above.

    `before` has the scores of the preceding cells and `moves` those of moves: diagonal, from above, from the left.
    """
    z = event - level
    z = z * inverse
    emission = constant - z * z
    # Scores reach -1e5, so small terms are added first: nearly always f5c's sums in double precision, rounded once.
    diagonal = before[0] + (moves[0] + emission)
    up = before[1] + (moves[1] + emission)
    left = before[2] + moves[2]
    best = simd.maximum(up, diagonal)
    return simd.maximum(left, best), simd.ge(left, best), simd.ge(up, diagonal)


@inner
def _fill_bands(reversed_events, level, inverse, constant, n_events, n_kmers, words):
    """Fill all bands; return the event of the best end cell, or -1, and the last band's lower left k-mer.

    Event means, last event first, and k-mer arrays have `_PAD` + `BANDWIDTH` unused floats at both ends. The emission
    of an event mean x under k-mer j is ``constant[j] - ((x - level[j]) * inverse[j]) ** 2``.
    """
    events_per_kmer = n_events / n_kmers
    p_stay = 1.0 - 1.0 / (events_per_kmer + 1.0)
    stay = math.log(p_stay)
    lp_stay, lp_skip = np.float32(stay), np.float32(LP_SKIP)
    lp_step = np.float32(math.log(1.0 - math.exp(LP_SKIP) - math.exp(stay)))
    moves = simd.splat(lp_step), simd.splat(lp_stay), simd.splat(lp_skip)
    moves_of_tail = simd.splat4(lp_step), simd.splat4(lp_stay), simd.splat4(lp_skip)
    lead = _PAD + BANDWIDTH

    scores = aligned_floats(3 * _SCORES)
    for i in range(3 * _SCORES):
        scores[i] = _IMPOSSIBLE
    before = _PAD  # first cell of band b - 2
    previous = _SCORES + _PAD  # ... of band b - 1
    current = 2 * _SCORES + _PAD
    half = BANDWIDTH // 2
    event = half  # lower left corner of band 1
    kmer = -1 - half
    scores[before + half] = np.float32(0.0)
    scores[previous + half] = _LP_TRIM
    kmer_before = kmer  # of band b - 2

    best_score = _IMPOSSIBLE
    best_event = -1
    last = n_kmers - 1
    # Numbers of lower left corners, by event and by k-mer, of bands inside the read.
    inner_events, inner_kmers = max(n_events - BANDWIDTH + 1, 0), max(n_kmers - BANDWIDTH, 0)
    for band in range(2, n_events + n_kmers + 2):
        lower_left = scores[previous]
        upper_right = scores[previous + BANDWIDTH - 1]
        # No branches: they would be unpredictable.
        outside = np.int64(lower_left == _IMPOSSIBLE) & np.int64(upper_right == _IMPOSSIBLE)
        right = np.int64(lower_left < upper_right) | (outside & band)
        kmer_previous = kmer
        kmer += right
        event += 1 - right
        up_at = previous + right
        left_at = up_at - 1
        diagonal_at = before + kmer - 1 - kmer_before
        event_at = lead + n_events - 1 - event
        kmer_at = lead + kmer
        is_inside = 0 <= event - BANDWIDTH + 1 < inner_events and 0 <= kmer < inner_kmers
        if not is_inside:
            # Bands far outside the read have no cell, but must not read outside the arrays.
            event_at = min(max(event_at, 0), lead + n_events)
            kmer_at = min(max(kmer_at, 0), lead + n_kmers)
        word = band * _WORDS
        words[word + _MOVED_RIGHT] = right
        # The tail first: with the other corner, it decides the next move.
        best, from_left, from_up = _score_cells(
            simd.load4(reversed_events, event_at + _TAIL), simd.load4(level, kmer_at + _TAIL),
            simd.load4(inverse, kmer_at + _TAIL), simd.load4(constant, kmer_at + _TAIL),
            (simd.load4(scores, diagonal_at + _TAIL), simd.load4(scores, up_at + _TAIL),
             simd.load4(scores, left_at + _TAIL)), moves_of_tail,
        )  # fmt: skip
        simd.store4(scores, current + _TAIL, best)
        words[word + _VECTORS] = simd.bits(from_left)
        words[word + _UP + _VECTORS] = simd.bits(from_up)
        for v in range(_VECTORS):
            o = v * simd.LANES
            best, from_left, from_up = _score_cells(
                simd.load(reversed_events, event_at + o), simd.load(level, kmer_at + o),
                simd.load(inverse, kmer_at + o), simd.load(constant, kmer_at + o),
                (simd.load(scores, diagonal_at + o), simd.load(scores, up_at + o), simd.load(scores, left_at + o)),
                moves,
            )  # fmt: skip
            simd.store(scores, current + o, best)
            words[word + v] = simd.bits(from_left)
            words[word + _UP + v] = simd.bits(from_up)

        if not is_inside:
            first = max(event - n_events + 1, -kmer, 0)
            end = min(event + 1, n_kmers - kmer, BANDWIDTH)
            if first > 0 or end < BANDWIDTH:
                for o in range(min(first, BANDWIDTH)):
                    scores[current + o] = _IMPOSSIBLE
                for o in range(max(end, 0), BANDWIDTH):
                    scores[current + o] = _IMPOSSIBLE
                trim = -1 - kmer
                if 0 <= trim < BANDWIDTH and 0 <= event - trim < n_events:
                    scores[current + trim] = _LP_TRIM * np.float32(event - trim + 1)
            o = last - kmer
            if first <= o < end:
                score = scores[current + o] + np.float32(n_events - (event - o)) * _LP_TRIM
                if score > best_score:
                    best_score = score
                    best_event = event - o

        kmer_before = kmer_previous
        before, previous, current = previous, current, before
    return best_event, kmer


class EventMap(NamedTuple):
    """Buffers for the alignment of one read."""

    first_event: NDArray[np.int32]  # shape (n_kmers,): -1 for a k-mer without an event of its own
    last_event: NDArray[np.int32]  # likewise; optional, as it may be empty
    pairs: NDArray[np.int32]  # shape (capacity, 2): aligned (k-mer, event) pairs, filled backwards; optional


@inner
def align_read(event_mean, kmer_rank, model, shift, scale, event_map, limits):
    """Align the events of one read to its k-mers and fill `event_map`.

    Returns `ALIGNED` or the cause of rejection, the number of pairs, and the largest minus the smallest aligned event.
    """
    _, level_mean, level_stdv, ln_stdv = model
    first_event, last_event, pairs = event_map
    n_events = event_mean.shape[0]
    n_kmers = kmer_rank.shape[0]
    margin = _PAD + BANDWIDTH
    after = (_VECTORS + 1) * simd.LANES
    reversed_events = np.zeros(margin + n_events + after, np.float32)
    for i in range(n_events):
        reversed_events[margin + i] = event_mean[n_events - 1 - i]
    inverse = np.zeros(margin + n_kmers + after, np.float32)
    level = np.zeros(margin + n_kmers + after, np.float32)
    constant = np.zeros(margin + n_kmers + after, np.float32)
    for j in range(n_kmers):
        rank = kmer_rank[j]
        level[margin + j] = scale * level_mean[rank] + shift
        inverse[margin + j] = SQRT_HALF / level_stdv[rank]
        constant[margin + j] = LN_INVERSE_SQRT_2PI - ln_stdv[rank]

    n_bands = n_events + n_kmers + 2
    words = np.empty(n_bands * _WORDS, np.uint16)
    best_event, corner = _fill_bands(reversed_events, level, inverse, constant, n_events, n_kmers, words)

    first_event[:] = -1
    last_event[:] = -1
    has_last = last_event.shape[0] > 0
    capacity = pairs.shape[0]
    n_pairs = 0
    emissions = 0.0
    gap = 0
    longest_gap = 0
    event = best_event
    kmer = n_kmers - 1
    band = n_bands - 1
    lowest_event = event
    lowest_kmer = n_kmers
    while band > event + kmer + 2:
        corner -= words[band * _WORDS + _MOVED_RIGHT]
        band -= 1
    while event >= 0 and kmer >= 0:
        n_pairs += 1
        if capacity:
            pairs[capacity - n_pairs, 0] = kmer
            pairs[capacity - n_pairs, 1] = event
        z = (event_mean[event] - level[margin + kmer]) * inverse[margin + kmer]
        emissions += constant[margin + kmer] - z * z
        lowest_event = event
        lowest_kmer = kmer
        o = kmer - corner
        word = band * _WORDS + (o >> 4)
        bit = o & 15
        is_left = np.int64(words[word] >> bit) & 1
        is_up = np.int64(words[word + _UP] >> bit) & 1 & ~is_left
        if is_left:
            gap += 1
            longest_gap = max(longest_gap, gap)
        else:
            # Only pairs with a new event enter the map: skipped k-mers have none.
            gap = 0
            first_event[kmer] = event
            if has_last:
                last = last_event[kmer]
                last_event[kmer] = event if last < 0 else last
        # No branches: the path is unpredictable.
        is_diagonal = 1 - is_left - is_up
        kmer -= 1 - is_up
        event -= 1 - is_left
        corner -= words[band * _WORDS + _MOVED_RIGHT]
        corner -= words[(band - 1) * _WORDS + _MOVED_RIGHT] * is_diagonal
        band -= 1 + is_diagonal

    verdict = ALIGNED
    if n_pairs == 0 or lowest_kmer != 0:
        verdict = NOT_SPANNING
    elif emissions / n_pairs < limits.min_mean_emission:
        verdict = LOW_EMISSION
    elif longest_gap > limits.max_gap:
        verdict = LONG_GAP
    if verdict != ALIGNED:
        first_event[:] = -1
        last_event[:] = -1
        return verdict, 0, 0
    # After a left move, the first pair has no earlier pair to share its event with.
    if first_event[lowest_kmer] < 0:
        first_event[lowest_kmer] = lowest_event
        if has_last:
            last_event[lowest_kmer] = lowest_event
    return verdict, n_pairs, best_event - lowest_event


def drop_over_segmented(batch: ReadBatch, limits: AlignmentLimits = F5C_LIMITS) -> None:
    """Drop reads with too many events per base to be aligned."""
    with np.errstate(divide="ignore", invalid="ignore"):
        events_per_base = batch.n_events.astype(np.float32) / batch.read_length.astype(np.float32)
    too_many = ~(events_per_base < np.float32(limits.max_events_per_base))
    batch.drop(too_many, ReadStatus.NO_ALIGNMENT, Cause.MANY_EVENTS)


def drop_unaligned(batch: ReadBatch) -> None:
    """Drop reads without an accepted alignment."""
    batch.drop(batch.n_pairs == 0, ReadStatus.NO_ALIGNMENT, batch.verdict)


def macros(bandwidth: int = BANDWIDTH, limits: AlignmentLimits = F5C_LIMITS) -> tuple[str, ...]:
    """Return compiler definitions for the CUDA kernels: band width, and limits other than the defaults."""
    defined = [f"-DW={bandwidth}"]
    if limits.min_mean_emission != F5C_LIMITS.min_mean_emission:
        defined.append(f"-DMIN_MEAN_EMISSION=({limits.min_mean_emission!r})")
    if limits.max_gap != F5C_LIMITS.max_gap:
        defined.append(f"-DMAX_GAP={limits.max_gap}")
    return tuple(defined)


def model_table(model: PoreModel) -> NDArray[np.float32]:
    """Return level, sqrt(1/2) / stdv, ln(1 / (stdv sqrt(2 pi))) and stdv of each rank for CUDA; (n, 4)."""
    table = np.zeros((len(model.level_mean), 4), np.float32)
    table[:, 0] = model.level_mean
    table[:, 1] = SQRT_HALF / model.level_stdv
    table[:, 2] = LN_INVERSE_SQRT_2PI - model.ln_stdv
    table[:, 3] = model.level_stdv
    return table


def transition_penalties(
    n_events: NDArray[np.int64], n_kmers: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute each read's log-probabilities of a step and of a stay: lp_step, lp_stay of the CUDA kernel."""
    lp_stay = np.log(1.0 - 1.0 / (n_events / n_kmers + 1.0))
    lp_step = np.log(1.0 - math.exp(LP_SKIP) - np.exp(lp_stay))
    return lp_step.astype(np.float32), lp_stay.astype(np.float32)
