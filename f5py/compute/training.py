"""The compute stages of training: events by k-mer of a marked reference, and calls of the reads held out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.compute.alignment import AlignmentStage
from f5py.compute.chemistry import Chemistry
from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.core.motifs import Motif
from f5py.core.offsets import elements_of
from f5py.event_alignment.align import align_events
from f5py.methylation.calls import call_methylation
from f5py.options.shared import AlignmentOptions
from f5py.pore_model.model import PoreModel, nucleotides_of
from f5py.training.sums import KmerSums, Truth, Weights, is_held_out, mark_sites


class TrainingStage(AlignmentStage):
    """Aligns events to the reference, in which methylated sites are marked, and adds them up by k-mer.

    Reads are scaled by the k-mers without M only: else their shifts would take up what methylation changes.

    Parameters
    ----------
    options : AlignmentOptions
    chemistry : Chemistry
    sums : KmerSums
        With the present model.
    motif : Motif or None
    truth : Truth or None
        None: no site is methylated.
    held_out : float
        Share of the reads that are not learnt from.
    """

    command = "train"
    n_parts = 3

    def __init__(
        self,
        options: AlignmentOptions,
        chemistry: Chemistry,
        sums: KmerSums,
        motif: Motif | None,
        truth: Truth | None,
        held_out: float,
    ) -> None:
        super().__init__(options, chemistry, model=nucleotides_of(sums.model))
        self.times.seconds["HMM"] = 0.0
        self._sums = sums
        self._motif = motif
        self._truth = truth
        self._held_out = held_out
        self._weights: dict[int, Weights] = {}

    def compute(self, batch: ReadBatch) -> None:
        """Fill the batch's arrays, its rows too."""
        super().compute(batch)
        if self._motif is not None and self._truth is not None:
            self.times.add("HMM", mark_sites(batch, self._motif, self._truth, self.pool))
        self.before_stage("event rows")
        self.times.add("HMM", align_events(batch, self._sums.model, self.pool, None))
        self._weights[batch.number], seconds = self._sums.weigh(batch, self.pool)
        self.times.add("HMM", seconds)
        self.after_part(batch)
        batch.release("bases", "kmer_rank", "first_event", "last_event")

    def settle(self, batch: ReadBatch) -> None:
        """See `AlignmentStage.settle`. Batches come in order, so the sums are the same for any number of threads."""
        super().settle(batch)
        self.counts.results += int(batch.n_rows.sum())
        self._sums.add(batch, self._weights.pop(batch.number), is_held_out(batch, self._held_out))


class TestingStage(AlignmentStage):
    """Calls the methylation of the reads that were held out.

    Parameters
    ----------
    options : AlignmentOptions
    chemistry : Chemistry
    model : PoreModel
        The trained one, over ACGMT.
    motif : Motif
    held_out : float
    """

    command = "train"
    n_parts = 3

    def __init__(
        self, options: AlignmentOptions, chemistry: Chemistry, model: PoreModel, motif: Motif, held_out: float
    ) -> None:
        super().__init__(options, chemistry, model=nucleotides_of(model))
        self.times.seconds["HMM"] = 0.0
        self._methylation = model
        self._motif = motif
        self._held_out = held_out
        self._calls = [(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]

    def admit(self, batch: ReadBatch) -> None:
        """Set aside the reads that were learnt from."""
        super().admit(batch)
        batch.drop(~is_held_out(batch, self._held_out), ReadStatus.BAD_READ, Cause.NONE)

    def compute(self, batch: ReadBatch) -> None:
        """Fill the batch's arrays, its calls too."""
        super().compute(batch)
        self.before_stage("calls")
        self.times.add("HMM", call_methylation(batch, self._motif, self._methylation, self.pool))
        self.after_part(batch)

    def settle(self, batch: ReadBatch) -> None:
        """Keep the calls."""
        read = np.repeat(np.arange(len(batch)), batch.n_calls)
        at = elements_of(batch.call_offsets[:-1], batch.n_calls)
        ratio = batch.call_methylated[at].astype(np.float64) - batch.call_unmethylated[at]
        self._calls.append((batch.contig[read], batch.call_first[at], batch.call_last[at], ratio))

    def calls(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Of every call: contig, start of the group's first and last site, log-likelihood ratio."""
        contig, first, last, ratio = map(np.concatenate, zip(*self._calls, strict=True))
        return contig, first, last, ratio
