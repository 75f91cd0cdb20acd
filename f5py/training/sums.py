"""Sums of events by k-mer for estimating levels; memory does not grow with the reads."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.core.kmers import strand_codes
from f5py.core.motifs import Motif
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first
from f5py.training.held_out import LEARNT, TESTED, reads_with

if TYPE_CHECKING:
    from f5py.training._sums_numba import PresentModel

#: Share of events of methylated reads that are taken for those of plain k-mers at first: no control is complete.
FIRST_SHARE = 0.05


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
    """Rank of each k-mer with M after replacing M by the canonical base, else -1; int32, shared and read-only."""
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
    from f5py.training._sums_numba import mark_all

    reads = np.flatnonzero(batch.status == ReadStatus.OK)
    motifs = motif.codes(False), motif.codes(True)
    return pool.run(mark_all, reads, batch.alignments, motifs, tuple(truth), order=batch.number)


class EventWeights(NamedTuple):
    """Weights of the events of a batch; see `f5py.training._sums_numba.weights_all`."""

    of_kmers: NDArray[np.float32]  # shape (n_rows, m): posterior weights of the k-mers around each row's
    own_shift: NDArray[np.float64]  # shape (n,): what each read's shift lacks, in pA of the model


class KmerSums:
    """Sums of a round, by k-mer.

    Parameters
    ----------
    canonical : str
        Base that M replaces.
    share : float64, shape (n_kmers,)
        Fraction of events of each methylated k-mer that are plain.

    Attributes
    ----------
    sums : float64, shape (n_kmers, 6)
        See `f5py.training._sums_numba.add_rows`.
    fit : float64, shape (2,)
        Of the held-out events: their number, and sum of squared deviations.
    held : float64, shape (n_kmers, 2)
        Of the same events: number, and sum of levels in pA, by k-mer.
    """

    def __init__(self, model: PoreModel, canonical: str, share: NDArray[np.float64]) -> None:
        self.model = model
        self.sums = np.zeros((len(model.level_mean), 6))
        self.fit = np.zeros(2)
        self.held = np.zeros((len(model.level_mean), 2))
        self._plain = plain_ranks(model.k, model.alphabet, canonical)
        self._share = share

    def weigh(self, batch: ReadBatch, pool: WorkerPool) -> tuple[EventWeights, float]:
        """Compute posterior weights of the k-mers around each row's, and the thread seconds."""
        from f5py.training._sums_numba import REACH, weights_all

        weights = EventWeights(np.empty((len(batch.rows.event), 2 * REACH + 1), np.float32), np.zeros(len(batch)))
        seconds = pool.run(
            weights_all, longest_first(batch.rows.n, batch.status == ReadStatus.OK), batch.view, batch.rows,
            self._present_model(), self._plain, *weights, order=batch.number,
        )  # fmt: skip
        return weights, seconds

    def _present_model(self) -> PresentModel:
        from f5py.training._sums_numba import PresentModel

        model = self.model
        return PresentModel(strand_codes(model.alphabet), model.k, model.level_mean, model.level_stdv)

    def add(self, batch: ReadBatch, weights: EventWeights, uses: NDArray[np.uint8]) -> None:
        """Add the rows of a batch, and the fit of its held-out data.

        Parameters
        ----------
        uses : uint8
            Use of the bases of the reference segments; each k-mer must have a single one.
        """
        from f5py.training._held_out_numba import hide
        from f5py.training._sums_numba import KmerSumArrays, PlainKmers, add_rows

        reference = batch.alignments.reference
        shown = np.empty_like(reference)
        none = np.zeros(len(batch), np.bool_)
        for use in (LEARNT, TESTED):
            hide(reference, uses, use, shown)
            chosen = (batch.status == ReadStatus.OK) & reads_with(batch, uses, use)
            add_rows(
                *((chosen, none) if use == LEARNT else (none, chosen)),
                batch.view._replace(alignments=batch.alignments._replace(reference=shown)), batch.rows,
                self._present_model(), PlainKmers(self._plain, self._share), tuple(weights),
                KmerSumArrays(self.sums, self.fit, self.held),
            )  # fmt: skip
