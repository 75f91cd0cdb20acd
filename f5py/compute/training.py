"""Compute stages of training: k-mer sums of events, and calls of held-out reads."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.alignment import AlignmentStage
from f5py.compute.chemistry import Chemistry
from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.core.motifs import Motif
from f5py.core.offsets import elements_of
from f5py.core.windows import Windows
from f5py.event_alignment.align import align_events
from f5py.methylation.calls import call_methylation
from f5py.options.shared import AlignmentOptions
from f5py.pore_model.model import PoreModel, Shifts, nucleotides_of, with_methylation
from f5py.training.held_out import TESTED, UNUSED, names_in_share, reads_with
from f5py.training.noise import CANDIDATES, plain_windows, window_motif
from f5py.training.site_windows import SingleSiteWindows, windows_of
from f5py.training.sums import KmerSums, SiteTruth, mark_sites

#: Returns the use of each base of a batch's reference segments, uint8.
BaseUses = Callable[[ReadBatch], NDArray[np.uint8]]


class _TrainStage(AlignmentStage):
    """Scaling by k-mers without M; `uses` returns the use of each base, see `HeldOut.uses`."""

    command = "train"
    n_parts = 3

    def __init__(self, options: AlignmentOptions, chemistry: Chemistry, model: PoreModel, uses: BaseUses) -> None:
        super().__init__(options, chemistry, model=nucleotides_of(model))
        self.times.seconds["HMM"] = 0.0
        self._uses = uses


class TrainingStage(_TrainStage):
    """Align events to the reference with marked methylated sites, and sum them by k-mer.

    Reads are scaled by the k-mers without M only: else their shifts would absorb the effect of methylation. `uses`
    tells the data excluded from training; without `truth` no site is methylated.
    """

    def __init__(
        self,
        options: AlignmentOptions,
        chemistry: Chemistry,
        sums: KmerSums,
        motif: Motif | None,
        truth: SiteTruth | None,
        uses: BaseUses,
    ) -> None:
        super().__init__(options, chemistry, sums.model, uses)
        self._sums = sums
        self._motif = motif
        self._truth = truth
        self._weights: dict[int, tuple[Any, NDArray[np.uint8]]] = {}

    def compute(self, batch: ReadBatch) -> None:
        super().compute(batch)
        if self._motif is not None and self._truth is not None:
            self.times.add("HMM", mark_sites(batch, self._motif, self._truth, self.pool))
        self.times.add("HMM", align_events(batch, self._sums.model, self.pool, None))
        weights, seconds = self._sums.weigh(batch, self.pool)
        self._weights[batch.number] = weights, self._uses(batch)
        self.times.add("HMM", seconds)
        self.after_part(batch)
        batch.release("bases", "base_map")

    def count_batch(self, batch: ReadBatch) -> None:
        """Add the sums of a batch, in order, so that they are the same for any number of threads."""
        super().count_batch(batch)
        self.counts.results += int(batch.rows.n.sum())
        self._sums.add(batch, *self._weights.pop(batch.number))


class UnlabeledStage(AlignmentStage):
    """Extract single-site windows as ``call-methylation`` scores them; see `f5py.training.site_windows`.

    Only groups in `regions` count; `contig_numbers`, int64, are common to all files.
    """

    command = "train"
    n_parts = 3

    def __init__(
        self,
        options: AlignmentOptions,
        chemistry: Chemistry,
        motif: Motif,
        regions: Windows | None,
        contig_numbers: NDArray[np.int64],
    ) -> None:
        super().__init__(options, chemistry, means_only=True)
        self.times.seconds["HMM"] = 0.0
        self._motif, self._regions, self._contig_numbers = motif, regions, contig_numbers
        self._extracted: dict[int, SingleSiteWindows] = {}
        self.windows: list[SingleSiteWindows] = []

    def compute(self, batch: ReadBatch) -> None:
        if not len(batch):
            return
        super().compute(batch)
        windows, seconds = windows_of(batch, self._motif, self.model, self._regions, self.pool)
        self._extracted[batch.number] = windows._replace(contig=self._contig_numbers[windows.contig])
        self.times.add("HMM", seconds)
        self.after_part(batch)

    def count_batch(self, batch: ReadBatch) -> None:
        """Store the windows."""
        if len(batch):
            super().count_batch(batch)
            self.windows.append(self._extracted.pop(batch.number))


class TestingStage(_TrainStage):
    """Call the methylation of held-out data. `model` is the trained one, over ACGMT."""

    def __init__(
        self, options: AlignmentOptions, chemistry: Chemistry, model: PoreModel, motif: Motif, uses: BaseUses
    ) -> None:
        super().__init__(options, chemistry, model, uses)
        self._methylation = model
        self._motif = motif
        self._calls = [(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]

    def check_batch(self, batch: ReadBatch) -> None:
        """Skip the reads without held-out data."""
        super().check_batch(batch)
        batch.drop(~reads_with(batch, self._uses(batch), TESTED), ReadStatus.BAD_READ, Cause.NONE)

    def compute(self, batch: ReadBatch) -> None:
        super().compute(batch)
        self.times.add("HMM", call_methylation(batch, self._motif, self._methylation, self.pool))
        self.after_part(batch)

    def count_batch(self, batch: ReadBatch) -> None:
        """Store the calls of held-out groups."""
        uses = self._uses(batch)
        read = np.repeat(np.arange(len(batch)), batch.calls.n)
        at = elements_of(batch.calls.offsets[:-1], batch.calls.n)
        ratio = batch.calls.methylated[at].astype(np.float64) - batch.calls.unmethylated[at]
        first, last = batch.calls.first[at], batch.calls.last[at]
        begin = batch.alignments.reference_offsets[read] - batch.alignments.start[read]
        kept = (uses[begin + first] == TESTED) & (uses[begin + last] == TESTED)
        self._calls.append((batch.contig[read][kept], first[kept], last[kept], ratio[kept]))

    def calls(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return contig, start of the group's first and last site, and log-likelihood ratio of every call."""
        contig, first, last, ratio = map(np.concatenate, zip(*self._calls, strict=True))
        return contig, first, last, ratio


class NoiseStage(_TrainStage):
    """Compute the likelihoods of plain windows with each candidate noise model; see `f5py.training.noise`.

    `of_reads` has for each batch, by read, the number of windows and their log-likelihoods, shape (n, 1 +
    n_candidates).
    """

    def __init__(
        self,
        options: AlignmentOptions,
        chemistry: Chemistry,
        model: PoreModel,
        hidden: Sequence[Motif],
        share: float,
        uses: BaseUses,
    ) -> None:
        super().__init__(options, chemistry, model, uses)
        plain = self.model
        self._motif = window_motif()
        self._levels = with_methylation(plain, Shifts.of_places([0.0] * plain.k), plain.name, self._motif.canonical)
        self._hidden = hidden
        self._share = share
        self._computed: dict[int, NDArray[np.float64]] = {}
        self.of_reads: list[NDArray[np.float64]] = []

    def check_batch(self, batch: ReadBatch) -> None:
        """Skip the reads outside of the sample."""
        super().check_batch(batch)
        if self._share < 1.0:
            batch.drop(~names_in_share(batch.names, self._share), ReadStatus.BAD_READ, Cause.NONE)

    def compute(self, batch: ReadBatch) -> None:
        super().compute(batch)
        found = np.zeros((len(batch), 1 + len(CANDIDATES)))
        is_used = self._uses(batch) != UNUSED
        begin = batch.alignments.reference_offsets[:-1] - batch.alignments.start
        for i, noise in enumerate(CANDIDATES):
            calls = replace(batch)
            self.times.add("HMM", call_methylation(calls, self._motif, self._levels, self.pool, noise=noise))
            read = np.repeat(np.arange(len(batch)), calls.calls.n)
            at = elements_of(calls.calls.offsets[:-1], calls.calls.n)
            wanted = plain_windows(calls, self._hidden)
            wanted &= is_used[begin[read] + calls.calls.first[at]] & is_used[begin[read] + calls.calls.last[at]]
            score = calls.calls.unmethylated[at]
            found[:, 1 + i] = np.bincount(read[wanted], score[wanted], len(batch))
        found[:, 0] = np.bincount(read[wanted], minlength=len(batch))
        self._computed[batch.number] = found
        self.after_part(batch)

    def count_batch(self, batch: ReadBatch) -> None:
        """Store the sums in order, so that totals are the same for any number of threads."""
        super().count_batch(batch)
        self.of_reads.append(self._computed.pop(batch.number))

    @property
    def sums(self) -> tuple[NDArray[np.float64], int]:
        """Log-likelihoods of all windows by candidate, and the number of windows."""
        total = np.sum([of_batch.sum(axis=0) for of_batch in self.of_reads] or [np.zeros(1 + len(CANDIDATES))], axis=0)
        return total[1:], int(total[0])
