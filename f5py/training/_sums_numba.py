"""Kernels that mark methylated sites in the reference and sum events by k-mer; see `f5py.training.sums`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._kmers_numba import next_rank
from f5py.core._read_view_numba import segment_of
from f5py.core.batch import RowState
from f5py.core.hmm import MIN_STAY, P_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.core.kmers import METHYLATED, OPPOSITE, StrandCodes
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation._groups_numba import is_site

_BAD, _NEW_SEGMENT = int(RowState.BAD), int(RowState.NEW_SEGMENT)
#: K-mers on either side of the best path's that an event may belong to.
REACH = 2
#: Smaller posterior weights are left out.
_LEAST_WEIGHT = 0.05
#: A read with fewer events of plain k-mers keeps its shift.
_ENOUGH_PLAIN = 100
#: Rows at either end of a read's alignment that are not used.
_ENDS = 5
_LOWER = 32  # what makes a letter a small one
_LOWER_A = ord("a")


@kernel
def mark_all(queue, reads, alignments, motifs, truth):
    """Mark the sites in the reference segments of `reads`, in lower case those of unknown state.

    Parameters
    ----------
    alignments : f5py.core.batch.Alignments
        Its reference is changed.
    motifs : pair of MotifCodes
        Of forward and of reverse reads.
    truth : tuple
        The fields of `f5py.training.sums.SiteTruth`.
    """
    first_of_contig, positions, states, is_given = truth
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        segment = segment_of(alignments, read)
        reverse = alignments.reverse[read]
        motif = motifs[1] if reverse else motifs[0]
        n = segment.shape[0]
        found = np.zeros(n, np.uint8)
        for at in range(n):
            if not is_site(segment, at, motif):
                continue
            state = 1
            if is_given:
                begin = first_of_contig[alignments.contig[read]]
                end = first_of_contig[alignments.contig[read] + 1]
                place = begin + np.searchsorted(positions[begin:end], alignments.start[read] + at)
                here = place < end and positions[place] == alignments.start[read] + at
                state = int(states[place]) if here else 2
            found[at + motif.offset] = max(found[at + motif.offset], 1 + state)
        for at in range(n):
            if found[at] == 2:
                segment[at] = OPPOSITE if reverse else METHYLATED
            elif found[at] == 3:
                segment[at] |= _LOWER


@inner
def _fill_ranks(letters, reverse, k, codes, ranks):
    """Fill the rank of the k-mer at every position of a reference segment; -1 for unknown states."""
    highest = codes.n_letters ** (k - 1)
    rank = np.int64(0)
    last_unknown = -1
    for i in range(letters.shape[0]):
        letter = letters[i]
        if letter >= _LOWER_A and letter != OPPOSITE:
            last_unknown = i
        code = np.int64(codes.reverse[letter] if reverse else codes.forward[letter])
        rank = next_rank(rank, code, codes.n_letters, highest, reverse)
        at = i - k + 1
        if at >= 0:
            ranks[at] = rank if last_unknown < at else -rank - 1


@inner
def _emission(x, rank, mean, stdv, v):
    """Density of an event in the k-mer's state, x in pA of the model."""
    known = rank if rank >= 0 else -rank - 1
    width = stdv[known] * v
    z = (x - mean[known]) / width
    return math.exp(-0.5 * z * z) / width


@inner
def _transition(step, stay):
    """Probability of advancing by `step` k-mers from one event to the next."""
    if step == 0:
        return stay
    if step == 1:
        return 1.0 - stay - P_SKIP - P_BAD
    if step == 2:
        return P_SKIP * P_FROM_SKIP
    return P_SKIP * P_SKIP_SELF * P_FROM_SKIP if step == 3 else 0.0


class PresentModel(NamedTuple):
    """Current model."""

    codes: StrandCodes
    k: int
    # level_mean, level_stdv: shape (n_kmers,): in pA
    level_mean: NDArray[np.float32]
    level_stdv: NDArray[np.float32]


class PlainKmers(NamedTuple):
    """Relation of methylated k-mers to plain ones."""

    rank: NDArray[np.int32]  # shape (n_kmers,): for k-mers with methylated bases the same one without, else -1
    share: NDArray[np.float64]  # shape (n_kmers,): share of events that are of the plain k-mer after all


class KmerSumArrays(NamedTuple):
    """Sums of a round."""

    # shape (n_kmers, 6): weight r, r x, r / v^2, r x / v^2, r x^2 / v^2, and the weight of the plain k-mer; x in pA of
    # the model, v the read's noise against that of the model
    of_kmers: NDArray[np.float64]
    # shape (2,): number of tested events, and sum of squared deviations in units of the standard deviation
    fit: NDArray[np.float64]
    held: NDArray[np.float64]  # shape (n_kmers, 2): of the same events: number, and sum of x, by k-mer


@kernel
def weights_all(queue, reads, batch, rows, model, plain, weights, own_shift):
    """Fill the posterior weights of the k-mers around each row's, `REACH` on either side.

    Forward and backward sums through a lattice of the k-mers around the best path's for each event. Rows that fit no
    k-mer have no weights.

    Parameters
    ----------
    batch, rows, model
        See `add_rows`.
    plain : int32, shape (n_kmers,)
        See `PlainKmers`.
    weights : float32, shape (n_rows, 2 * REACH + 1)
        In the order of `rows`.
    own_shift : float64, shape (n,)
        Filled with the mean deviation of each read's plain k-mers, in pA: recalibration has mistaken methylated ones
        for plain ones.
    """
    alignments, events, _, scaling, events_per_base = batch
    codes, k, mean, stdv = model
    width = 2 * REACH + 1
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        begin, n_rows = rows.offsets[read], rows.n[read]
        letters = segment_of(alignments, read)
        ranks = np.empty(max(letters.shape[0] - k + 1, 0), np.int64)
        _fill_ranks(letters, alignments.reverse[read], k, codes, ranks)
        shift, scale = np.float64(scaling.shift[read]), np.float64(scaling.scale[read])
        v = np.float64(scaling.var[read]) / scale
        stay = max(1.0 - 1.0 / events_per_base[read], MIN_STAY)
        # var has what the first alignment gave to wrong k-mers in it, too: events on the best path are closer
        squares, n_good, deviation, n_plain = 0.0, 0, 0.0, 0
        for row in range(begin, begin + n_rows):
            rank = ranks[rows.position[row] - alignments.start[read]]
            if rows.state[row] & _BAD == 0 and rank >= 0:
                x = (np.float64(events.mean[events.offsets[read] + rows.event[row]]) - shift) / scale
                z = (x - mean[rank]) / (stdv[rank] * v)
                squares += z * z
                n_good += 1
                if plain[rank] < 0:
                    deviation += x - mean[rank]
                    n_plain += 1
        if squares > 0.0:
            v *= math.sqrt(squares / n_good)
        own_shift[read] = deviation / n_plain if n_plain >= _ENOUGH_PLAIN else 0.0
        shift += own_shift[read] * scale
        density = np.zeros((n_rows, width))
        forward = np.zeros((n_rows, width))
        starts = np.zeros(n_rows, np.bool_)
        for r in range(n_rows):
            row = begin + r
            place = rows.position[row] - alignments.start[read]
            x = (np.float64(events.mean[events.offsets[read] + rows.event[row]]) - shift) / scale
            for s in range(width):
                at = place + s - REACH
                if 0 <= at < ranks.shape[0]:
                    density[r, s] = _emission(x, ranks[at], mean, stdv, v) + P_BAD
            moved = np.int64(rows.position[row] - rows.position[row - 1]) if r else 0
            starts[r] = r == 0 or rows.state[row] & _NEW_SEGMENT != 0 or moved > 3 or moved < 0
            total = 0.0
            for s in range(width):
                if starts[r]:
                    reached = 1.0 if s == REACH else 0.0
                else:
                    reached = 0.0
                    for before in range(width):
                        step = moved + s - before
                        if 0 <= step <= 3:
                            reached += forward[r - 1, before] * _transition(step, stay)
                forward[r, s] = reached * density[r, s]
                total += forward[r, s]
            for s in range(width):
                forward[r, s] = forward[r, s] / total if total > 0.0 else 0.0
        backward = np.ones(width)
        earlier = np.empty(width)
        for r in range(n_rows - 1, -1, -1):
            row = begin + r
            total = 0.0
            for s in range(width):
                total += forward[r, s] * backward[s]
            is_bad = rows.state[row] & _BAD != 0
            for s in range(width):
                weight = forward[r, s] * backward[s] / total if total > 0.0 and not is_bad else 0.0
                if weight < _LEAST_WEIGHT:
                    weights[row, s] = 0.0
                else:  # less what such an event has of one that fits no k-mer
                    weights[row, s] = weight * (1.0 - P_BAD / density[r, s])
            if starts[r]:
                backward[:] = 1.0
                continue
            moved = np.int64(rows.position[row] - rows.position[row - 1])
            total = 0.0
            for before in range(width):
                earlier[before] = 0.0
                for s in range(width):
                    step = moved + s - before
                    if 0 <= step <= 3:
                        earlier[before] += _transition(step, stay) * density[r, s] * backward[s]
                total += earlier[before]
            for before in range(width):
                backward[before] = earlier[before] / total if total > 0.0 else 1.0


@kernel
def add_rows(used, tested, batch, rows, model, plain_kmers, weights, sums):
    """Add the events of the `used` reads, and the fit of the `tested` ones.

    Parameters
    ----------
    used, tested : bool, shape (n,)
    batch : f5py.core.batch.BatchView
        The reference is marked.
    rows : f5py.core.batch.Rows
    weights : tuple of float32, shape (n_rows, 2 * REACH + 1), and float64, shape (n,)
        Weights and shifts; see `weights_all`.
    sums : KmerSumArrays
        Added to.
    """
    alignments, events, _, scaling, _ = batch
    codes, k, mean, stdv = model
    plain, share = plain_kmers
    of_events, own_shift = weights
    of_kmers, fit, held = sums
    for read in range(used.shape[0]):
        if not (used[read] or tested[read]):
            continue
        begin, n_rows = rows.offsets[read], rows.n[read]
        letters = segment_of(alignments, read)
        ranks = np.empty(max(letters.shape[0] - k + 1, 0), np.int64)
        _fill_ranks(letters, alignments.reverse[read], k, codes, ranks)
        shift, scale = np.float64(scaling.shift[read]), np.float64(scaling.scale[read])
        shift += own_shift[read] * scale
        v = np.float64(scaling.var[read]) / scale
        for row in range(begin + _ENDS, begin + n_rows - _ENDS):
            if rows.state[row] & _BAD:
                continue
            x = (np.float64(events.mean[events.offsets[read] + rows.event[row]]) - shift) / scale
            place = rows.position[row] - alignments.start[read]
            if tested[read]:
                rank = ranks[place]
                if rank >= 0:
                    z = (x - mean[rank]) / (stdv[rank] * v)
                    fit[0] += 1.0
                    fit[1] += z * z
                    held[rank, 0] += 1.0
                    held[rank, 1] += x
                continue
            for s in range(2 * REACH + 1):
                g = np.float64(of_events[row, s])
                if g == 0.0:
                    continue
                rank = ranks[place + s - REACH]
                if rank < 0:
                    continue
                r = 1.0
                other = plain[rank]
                if other >= 0 and share[rank] > 0.0:
                    p = (1.0 - share[rank]) * _emission(x, rank, mean, stdv, v)
                    p_other = share[rank] * _emission(x, other, mean, stdv, v)
                    r = p / (p + p_other) if p + p_other > 0.0 else 1.0
                w = g * r / (v * v)
                of_kmers[rank, 0] += g * r
                of_kmers[rank, 1] += g * r * x
                of_kmers[rank, 2] += w
                of_kmers[rank, 3] += w * x
                of_kmers[rank, 4] += w * x * x
                of_kmers[rank, 5] += g * (1.0 - r)
