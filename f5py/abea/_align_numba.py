"""Jitted loops of the aligner on the CPU; see `f5py.abea.align`.

Layout. A band is an anti-diagonal of `BANDWIDTH` cells; the cell at offset o of the band with lower left corner
(event E, k-mer K) is (E - o, K + o). Events are stored last first, so that a band's cells read events, k-mers and
the two bands before it at ascending, contiguous addresses; six vectors of 16 lanes and one of 4 cover a band. Each
band lies between cells of minus infinity, so that neighbours outside of a band need no test.

The traceback needs two bits a cell, "came from the left" and "came from above": the comparison masks of the
vectors, stored as they are. One more word per band says where the band moved.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._aligned_numba import aligned_floats
from f5py.core.hmm import LN_INVERSE_SQRT_2PI as _LN_INVERSE_SQRT_2PI
from f5py.jit import simd
from f5py.jit.kernel import inner

#: Cells of a band.
BANDWIDTH = 100
_VECTORS = BANDWIDTH // simd.LANES
_TAIL = _VECTORS * simd.LANES  # first of the four cells after them
_PAD = simd.LANES  # cells of minus infinity before a band, and after it at least
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


@inner
def _best(event, level, inverse, constant, before, moves):
    """Scores of some cells, of those that they may come from by each of the moves; and masks, which say which it is.

    Parameters
    ----------
    event, level, inverse, constant : vectors
        See `_fill_bands`.
    before, moves : tuples of three vectors
        Scores of the cells before, and of moves: diagonal, from above, from the left.
    """
    z = event - level
    z = z * inverse
    emission = constant - z * z
    # Scores grow to -1e5, so each addition to one costs digits: the small terms are added up first, which
    # gives f5c's sums in double precision, rounded once, but for one cell in ten thousand.
    diagonal = before[0] + (moves[0] + emission)
    up = before[1] + (moves[1] + emission)
    left = before[2] + moves[2]
    best = simd.maximum(up, diagonal)
    return simd.maximum(left, best), simd.ge(left, best), simd.ge(up, diagonal)


@inner
def _fill_bands(reversed_events, level, inverse, constant, n_events, n_kmers, words):
    """Fill all bands; return the event of the best end cell, or -1, and the last band's lower left k-mer.

    `reversed_events` holds the event means, last event first, after `_PAD` + `BANDWIDTH` unused floats, and the
    k-mer arrays their values after as many; both have as many after their end. The emission of an event mean x
    under k-mer j is ``constant[j] - ((x - level[j]) * inverse[j]) ** 2``.
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
    # So many lower left corners, event by event and k-mer by k-mer, have a band inside of the read and not at its end.
    inner_events, inner_kmers = max(n_events - BANDWIDTH + 1, 0), max(n_kmers - BANDWIDTH, 0)
    for band in range(2, n_events + n_kmers + 2):
        lower_left = scores[previous]
        upper_right = scores[previous + BANDWIDTH - 1]
        # Without branches, which could not be foreseen.
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
            # The corner may lie far outside of the read: such bands have no cell, but must not read outside the arrays.
            event_at = min(max(event_at, 0), lead + n_events)
            kmer_at = min(max(kmer_at, 0), lead + n_kmers)
        word = band * _WORDS
        words[word + _MOVED_RIGHT] = right
        # The tail comes first: with the other corner, it decides where the next band lies.
        best, from_left, from_up = _best(
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
            best, from_left, from_up = _best(
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

    # first_event, last_event: shape (n_kmers,): first and last event of each k-mer; -1 for one without an event of its
    # own. The last ones are left out if the array is empty.
    first_event: NDArray[np.int32]
    last_event: NDArray[np.int32]
    # shape (capacity, 2): aligned (k-mer, event) pairs, from the array's end backwards, if its capacity is not zero
    pairs: NDArray[np.int32]


@inner
def align_read(event_mean, kmer_rank, model, shift, scale, event_map, limits):
    """Align the events of one read to its k-mers.

    Parameters
    ----------
    event_mean : float32, shape (n_events,)
    kmer_rank : int32, shape (n_kmers,)
    model : f5py.pore_model.model.Levels
    shift, scale : float32
    event_map : EventMap
        Filled.
    limits : f5py.abea.align.AlignmentLimits

    Returns
    -------
    verdict : int
        `ALIGNED` or why not.
    n_pairs : int
    event_span : int
        Largest minus smallest aligned event.
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
            # Only a pair that takes a new event enters the map: k-mers reached by a skip keep none.
            gap = 0
            first_event[kmer] = event
            if has_last:
                last = last_event[kmer]
                last_event[kmer] = event if last < 0 else last
        # Where the path goes cannot be foreseen: no branches.
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
    # A left move at the very first pair has no earlier pair to share its event with: it takes the event.
    if first_event[lowest_kmer] < 0:
        first_event[lowest_kmer] = lowest_event
        if has_last:
            last_event[lowest_kmer] = lowest_event
    return verdict, n_pairs, best_event - lowest_event
