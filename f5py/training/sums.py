"""Sums of events by k-mer for estimating levels; memory does not grow with the reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._kmers_numba import next_rank
from f5py.core._read_view_numba import segment_of
from f5py.core.batch import ReadBatch, ReadStatus, RowState
from f5py.core.hmm import MIN_STAY, P_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.core.kmers import METHYLATED, OPPOSITE, strand_codes
from f5py.core.motifs import Motif
from f5py.errors import InputFileError
from f5py.evaluation import known_sites
from f5py.io.bounds import POSITION_BITS
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation.groups import is_site
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first
from f5py.training.held_out import LEARNT, TESTED, UNKNOWN, reads_with

#: Share of events of methylated reads that are taken for those of plain k-mers at first: no control is complete.
FIRST_SHARE = 0.05
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


def read_truth(path: str, contigs: Sequence[str], motif: Motif) -> SiteTruth:
    """Read the sites of a motif from bedMethyl, in the order of the alignments' `contigs`.

    Raises `InputFileError` if the file is missing, is no bedMethyl, or has no site of known state.
    """
    least, most = known_sites.UNMETHYLATED, known_sites.METHYLATED
    sites = known_sites.read_sites(path, motif)
    at = {name: i for i, name in enumerate(contigs)}
    contig = np.array([at.get(name, -1) for name in sites.contigs], np.int64)[sites.place >> POSITION_BITS]
    position = sites.place & (1 << POSITION_BITS) - 1
    known = sites.is_uniform & ((sites.frequency <= least) | (sites.frequency >= most)) & (contig >= 0)
    if not known.any():
        raise InputFileError(
            f"{path}: no site of at most {100 * least:g} % or at least {100 * most:g} % is on a contig of "
            "the alignments"
        )
    order = np.lexsort((position[known], contig[known]))
    contig, position = contig[known][order], position[known][order]
    states = (sites.frequency[known] >= most).astype(np.uint8)[order]
    first = np.searchsorted(contig, np.arange(len(contigs) + 1))
    return SiteTruth(first.astype(np.int64), position, states, True)


@kernel
def mark_all(queue, reads, alignments, motifs, truth):
    """Mark the sites in the reference segments of `reads`, in lower case those of unknown state.

    Parameters
    ----------
    alignments : f5py.core.batch.Alignments
        Its reference is changed.
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
def _ranks_of(alignments, read, k, codes):
    """Rank the k-mer at every position of a read's segment; -1 - rank for unknown states."""
    letters, reverse = segment_of(alignments, read), alignments.reverse[read]
    ranks = np.empty(max(letters.shape[0] - k + 1, 0), np.int64)
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
    return ranks


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


@kernel
def weights_all(queue, reads, batch, rows, model, plain, weights, own_shift):
    """Fill the posterior weights of the k-mers around each row's, `REACH` on either side.

    Forward and backward sums through a lattice of the k-mers around the best path's for each event. Rows that fit no
    k-mer have no weights.

    Parameters
    ----------
    weights : float32, shape (n_rows, 2 * REACH + 1)
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
        ranks = _ranks_of(alignments, read, k, codes)
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
def add_rows(reads, is_tested, batch, rows, model, plain_kmers, weights, sums):
    """Add the events of `reads`, or the fit of held-out ones, to the `sums` of `KmerSums`.

    Parameters
    ----------
    weights : tuple of float32, shape (n_rows, 2 * REACH + 1), and float64, shape (n,)
        Weights and shifts; see `weights_all`.
    plain_kmers : tuple of int32 and float64, shape (n_kmers,)
        Ranks of `plain_ranks`, and the shares of their events.
    """
    alignments, events, _, scaling, _ = batch
    codes, k, mean, stdv = model
    plain, share = plain_kmers
    of_events, own_shift = weights
    of_kmers, fit, held = sums
    for read in reads:
        begin, n_rows = rows.offsets[read], rows.n[read]
        ranks = _ranks_of(alignments, read, k, codes)
        shift, scale = np.float64(scaling.shift[read]), np.float64(scaling.scale[read])
        shift += own_shift[read] * scale
        v = np.float64(scaling.var[read]) / scale
        for row in range(begin + _ENDS, begin + n_rows - _ENDS):
            if rows.state[row] & _BAD:
                continue
            x = (np.float64(events.mean[events.offsets[read] + rows.event[row]]) - shift) / scale
            place = rows.position[row] - alignments.start[read]
            if is_tested:
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


class SiteTruth(NamedTuple):
    """Sites of known state, by contig."""

    # shape (n_contigs + 1,): contig c has the sites ``first_of_contig[c]:first_of_contig[c + 1]``
    first_of_contig: NDArray[np.int64]
    positions: NDArray[np.int64]  # shape (n,): starts of sites on the forward strand, ascending in a contig
    states: NDArray[np.uint8]  # shape (n,): 1 methylated, 0 not
    is_given: bool  # False: all sites are methylated, and the arrays are empty

    @classmethod
    def all_methylated(cls) -> SiteTruth:
        """Make the truth of fully methylated reads."""
        return cls(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8), False)

    def states_of(self, contig: NDArray[np.int32], position: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Look up the states of sites by contig and start; 2 for unknown."""
        first = self.first_of_contig
        own = np.repeat(np.arange(len(first) - 1, dtype=np.int64), np.diff(first)) << 40 | self.positions
        if not len(own):
            return np.full(len(position), 2, np.uint8)
        wanted = contig.astype(np.int64) << 40 | position
        at = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
        return np.where(own[at] == wanted, self.states[at], 2).astype(np.uint8)


@cache
def plain_ranks(k: int, alphabet: str, canonical: str) -> NDArray[np.int32]:
    """Rank of each k-mer with M after replacing M by the canonical base, else -1; shared, read-only."""
    n = len(alphabet) ** k
    if "M" not in alphabet:
        return np.full(n, -1, np.int32)
    code = np.arange(len(alphabet))
    code[alphabet.index("M")] = alphabet.index(canonical)
    rank = np.zeros((1,), np.int64)
    for _ in range(k):
        rank = (rank[:, None] * len(alphabet) + code).ravel()
    return np.where(rank == np.arange(n), -1, rank).astype(np.int32)


def mark_sites(batch: ReadBatch, motif: Motif, truth: SiteTruth, pool: WorkerPool) -> float:
    """Mark methylated sites in the batch's reference segments; return the thread seconds.

    See `f5py.core.kmers.METHYLATED`.
    """
    reads = np.flatnonzero(batch.status == ReadStatus.OK)
    motifs = motif.codes(False), motif.codes(True)
    return pool.run(mark_all, reads, batch.alignments, motifs, tuple(truth), order=batch.number)


class KmerSums:
    """Sums of a round, by k-mer, with x in pA of the model and v the read's noise relative to the model's."""

    def __init__(self, model: PoreModel, canonical: str, share: NDArray[np.float64]) -> None:
        self.model = model
        #: Of each k-mer: weight r, r x, r / v^2, r x / v^2, r x^2 / v^2, and the weight of the plain k-mer.
        self.sums = np.zeros((len(model.level_mean), 6))
        #: Number of held-out events, and sum of their squared deviations, in standard deviations.
        self.fit = np.zeros(2)
        #: Number of held-out events, and sum of their x, by k-mer.
        self.held = np.zeros((len(model.level_mean), 2))
        self._plain = plain_ranks(model.k, model.alphabet, canonical)
        self._share = share

    def weigh(
        self, batch: ReadBatch, pool: WorkerPool
    ) -> tuple[tuple[NDArray[np.float32], NDArray[np.float64]], float]:
        """Compute the posterior weights and shifts of `weights_all`, and the thread seconds."""
        weights = np.empty((len(batch.rows.event), 2 * REACH + 1), np.float32), np.zeros(len(batch))
        seconds = pool.run(
            weights_all, longest_first(batch.rows.n, batch.status == ReadStatus.OK), batch.view, batch.rows,
            self._present_model(), self._plain, *weights, order=batch.number,
        )  # fmt: skip
        return weights, seconds

    def _present_model(self) -> tuple:
        model = self.model
        return strand_codes(model.alphabet), model.k, model.level_mean, model.level_stdv

    def add(
        self, batch: ReadBatch, weights: tuple[NDArray[np.float32], NDArray[np.float64]], uses: NDArray[np.uint8]
    ) -> None:
        """Add the rows of a batch, and the fit of its held-out data."""
        reference = batch.alignments.reference
        for use in (LEARNT, TESTED):
            shown = np.where(uses == use, reference, np.uint8(UNKNOWN))
            chosen = (batch.status == ReadStatus.OK) & reads_with(batch, uses, use)
            add_rows(
                np.flatnonzero(chosen), use == TESTED,
                batch.view._replace(alignments=batch.alignments._replace(reference=shown)), batch.rows,
                self._present_model(), (self._plain, self._share), weights,
                (self.sums, self.fit, self.held),
            )  # fmt: skip
