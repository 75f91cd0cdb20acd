"""Viterbi path of one block of events through its hidden Markov model, bit for bit as defined.

States. Every k-mer has a match state M (an event of that k-mer), a bad state B (an event of no k-mer) and a silent skip
state K. Row i is the block's i-th event, counted from 1. The path begins in M of the first k-mer with the first event,
and ends in M of the last k-mer with the last event.

Layout. Cells (i, j) of one anti-diagonal ``i + j`` depend only on the two previous anti-diagonals. A diagonal is stored
by k-mer and events last first, so that sixteen neighboring cells read ascending, contiguous addresses. Each of the
three current diagonals follows cells of minus infinity. No valid cell depends on those after the last row or k-mer.

The traceback needs only the comparisons that chose each cell's predecessor: one bit each, sixteen cells in a word.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import simd
from f5py.jit.instructions import ir
from f5py.jit.kernel import exact_inner
from f5py.jit.vectors import emits

#: Most bases of a block.
MAX_BASES = 101
_VECTORS = (MAX_BASES + simd.LANES - 1) // simd.LANES
#: Elements of a block's k-mer arrays.
KMER_SLOTS = _VECTORS * simd.LANES
#: Unused floats before and after the events of a block.
MARGIN = simd.LANES
_PAD = simd.LANES
_DIAGONAL = _PAD + KMER_SLOTS
#: Floats of scratch space: three diagonals of three states.
SCRATCH = 9 * _DIAGONAL
_WORDS = 8  # uint16 words per vector of cells: four comparisons into M, one into B, two into K
_IMPOSSIBLE = np.float32(-np.inf)
LN_START = np.float32(math.log(0.5))
_MINUS_HALF = np.float32(-0.5)

#: States of a path.
MATCH, BAD, SKIP = 0, 1, 2
#: Order of the logarithmic transition probabilities: M to M of the same and of the next k-mer, M to B, M to K, B to
#: B, B to anything else, K to K, K to M.
STAY, STEP, TO_BAD, TO_SKIP, BAD_BAD, FROM_BAD, SKIP_SKIP, FROM_SKIP = range(8)


@exact_inner
def words_needed(n_events, n_kmers):
    """Return the size of the array of comparisons."""
    return (n_events + n_kmers) * _VECTORS * _WORDS


@emits(simd.vector, *[simd.vector] * 4)
def _log_density(builder, x, level, stdv, constant):
    """Compute normal log-densities, ``constant + (-0.5 * z) * z`` with ``z = (x - level) / stdv``.

    Every operation is rounded: the operators of `simd` might fuse them.
    """
    minus_half = ir.Constant(x.type, [-0.5] * simd.LANES)
    z = builder.fdiv(builder.fsub(x, level), stdv)
    return builder.fadd(constant, builder.fmul(builder.fmul(minus_half, z), z))


class BlockEmissions(NamedTuple):
    """Emissions of a block's k-mers, in reference order; after the last one any finite numbers."""

    # level, stdv: shape (KMER_SLOTS,): in pA
    level: NDArray[np.float32]
    stdv: NDArray[np.float32]
    constant: NDArray[np.float32]  # shape (KMER_SLOTS,): logarithm of the density at the level


@exact_inner
def fill(events, n_events, n_kmers, emissions, transitions, scratch, words):
    """Fill the table; return whether it has a path.

    `events` are means, last event first, between `MARGIN` unused finite numbers. Sizes of the others are 8, `SCRATCH`
    and `words_needed`.
    """
    level, stdv, constant = emissions
    stay = simd.splat(transitions[STAY])
    step = simd.splat(transitions[STEP])
    to_bad = simd.splat(transitions[TO_BAD])
    to_skip = simd.splat(transitions[TO_SKIP])
    bad_bad = simd.splat(transitions[BAD_BAD])
    from_bad = simd.splat(transitions[FROM_BAD])
    skip_skip = simd.splat(transitions[SKIP_SKIP])
    from_skip = simd.splat(transitions[FROM_SKIP])

    scratch[:] = _IMPOSSIBLE
    bad_at = 3 * _DIAGONAL  # from a cell's M to its B
    skip_at = 6 * _DIAGONAL
    before = _PAD  # M of k-mer 0 on the diagonal before the previous one
    previous = before + _DIAGONAL
    current = previous + _DIAGONAL
    lanes = simd.LANES
    z = (events[MARGIN + n_events - 1] - level[0]) / stdv[0]
    scratch[previous] = LN_START + (constant[0] + (_MINUS_HALF * z) * z)

    for diagonal in range(2, n_events + n_kmers):
        first = max(diagonal - n_events, 0) // lanes
        end = min(diagonal - 1, n_kmers - 1) // lanes + 1
        event_at = MARGIN + n_events - diagonal
        for v in range(first, end):
            j = v * lanes
            emission = _log_density(
                simd.load(events, event_at + j), simd.load(level, j), simd.load(stdv, j), simd.load(constant, j)
            )
            # Same k-mer, previous event.
            match_same = simd.load(scratch, previous + j)
            bad_same = simd.load(scratch, previous + j + bad_at)
            # Previous k-mer, with the previous and with the same event.
            match_before = simd.load(scratch, before + j - 1)
            bad_before = simd.load(scratch, before + j - 1 + bad_at)
            skip_before = simd.load(scratch, before + j - 1 + skip_at)
            match_left = simd.load(scratch, previous + j - 1)
            bad_left = simd.load(scratch, previous + j - 1 + bad_at)
            skip_left = simd.load(scratch, previous + j - 1 + skip_at)

            # The later candidate wins a tie.
            word = (diagonal * _VECTORS + v) * _WORDS
            best = stay + match_same
            candidate = step + match_before
            words[word] = simd.bits(simd.ge(candidate, best))
            best = simd.maximum(best, candidate)
            candidate = from_bad + bad_same
            words[word + 1] = simd.bits(simd.ge(candidate, best))
            best = simd.maximum(best, candidate)
            candidate = from_bad + bad_before
            words[word + 2] = simd.bits(simd.ge(candidate, best))
            best = simd.maximum(best, candidate)
            candidate = from_skip + skip_before
            words[word + 3] = simd.bits(simd.ge(candidate, best))
            best = simd.maximum(best, candidate)
            simd.store(scratch, current + j, best + emission)

            best = to_bad + match_same
            candidate = bad_bad + bad_same
            words[word + 4] = simd.bits(simd.ge(candidate, best))
            simd.store(scratch, current + j + bad_at, simd.maximum(best, candidate))

            best = to_skip + match_left
            candidate = from_bad + bad_left
            words[word + 5] = simd.bits(simd.ge(candidate, best))
            best = simd.maximum(best, candidate)
            candidate = skip_skip + skip_left
            words[word + 6] = simd.bits(simd.ge(candidate, best))
            simd.store(scratch, current + j + skip_at, simd.maximum(best, candidate))
        before, previous, current = previous, current, before
    # Not the score itself: the density of the last event may underflow.
    end = before + n_kmers - 1
    best = max(scratch[end], scratch[end + bad_at])
    end = current + n_kmers - 2
    return max(best, scratch[end], scratch[end + bad_at], scratch[end + skip_at]) > _IMPOSSIBLE


@exact_inner
def trace(words, n_events, n_kmers, possible, path):
    """Write the best path from end to start, or only its end unless `possible`; return its length.

    Each element of `path` (int32, shape (n_events + n_kmers, 3)) is row, k-mer and state.
    """
    row = n_events
    kmer = n_kmers - 1
    state = MATCH
    count = 0
    while row > 0 and kmer >= 0:
        path[count, 0] = row
        path[count, 1] = kmer
        path[count, 2] = state
        count += 1
        if not possible or row + kmer < 2:
            break
        word = ((row + kmer) * _VECTORS + kmer // simd.LANES) * _WORDS
        bit = kmer % simd.LANES
        if state == MATCH:
            row -= 1
            if (words[word + 3] >> bit) & 1:
                state = SKIP
                kmer -= 1
            elif (words[word + 2] >> bit) & 1:
                state = BAD
                kmer -= 1
            elif (words[word + 1] >> bit) & 1:
                state = BAD
            elif (words[word] >> bit) & 1:
                kmer -= 1
        elif state == BAD:
            row -= 1
            if not (words[word + 4] >> bit) & 1:
                state = MATCH
        else:
            kmer -= 1
            if not (words[word + 6] >> bit) & 1:
                state = BAD if (words[word + 5] >> bit) & 1 else MATCH
    return count
