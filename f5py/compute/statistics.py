"""Statistics for the report: distributions, sums by contig and context, and drift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.depths import Depths
from f5py.core.batch import ReadBatch, ReadStatus
from f5py.core.motifs import Motif
from f5py.core.windows import Windows
from f5py.io.files.json_values import JsonObject
from f5py.site_frequencies.site_counts import calls_inside

#: Log-likelihood ratios are counted in bins of this width, up to this size; larger ones count with the last bin.
RATIO_WIDTH, MOST_RATIO = 0.5, 20.0
_RATIO_EDGES = np.arange(-MOST_RATIO, MOST_RATIO + RATIO_WIDTH, RATIO_WIDTH)
#: Read lengths are counted in ten bins for each power of ten.
LENGTH_EDGES = 10.0 ** np.arange(2.0, 7.05, 0.1)
#: Bases are counted by when their reads were sequenced, in bins of so many seconds, for a week.
TIME_WIDTH, _MOST_TIME = 300, 7 * 24 * 3600
#: Attributes that are sums.
_SUMS = ("ratios", "lengths", "yields", "times", "reads", "covered", "methylated", "unmethylated", "contexts")
_LETTERS = "ACGT"
_N_CONTEXTS = len(_LETTERS) ** 2
_RANK = np.full(256, -1, np.int64)
_RANK[np.frombuffer(_LETTERS.encode(), np.uint8)] = range(len(_LETTERS))


class RunStatistics:
    """Sums over the batches of a run; memory does not grow with it.

    Parameters
    ----------
    threshold : float
        Calls with a smaller absolute ratio count for neither state.
    motifs : sequence of Motif
        Called motifs; calls are counted by context only for a single one.
    windows : Windows, optional
        Count only calls in these.

    Attributes
    ----------
    ratios, lengths, yields : int64
        Calls by ratio, reads by length, and bases of the usable reads by their length.
    times : int64
        Bases of the usable reads by the start of sequencing, where known.
    reads, covered, methylated, unmethylated : int64, shape (n_contigs,)
        Alignments, their bases on the reference, and calls beyond the threshold.
    contexts : int64, shape (2, 16)
        Single-site calls, unmethylated and methylated, by the letters before and after the site.
    drift : list of (int, float, float, float)
        Number of reads, and mean shift, scale and variance of each batch's usable reads.
    """

    def __init__(
        self,
        contig_lengths: Sequence[int],
        threshold: float,
        motifs: Sequence[Motif] = (),
        windows: Windows | None = None,
    ) -> None:
        self.ratios = np.zeros(len(_RATIO_EDGES) - 1, np.int64)
        self.lengths, self.yields = np.zeros((2, len(LENGTH_EDGES) - 1), np.int64)
        self.times = np.zeros(_MOST_TIME // TIME_WIDTH, np.int64)
        self.reads, self.covered, self.methylated, self.unmethylated = np.zeros((4, len(contig_lengths)), np.int64)
        self.depths = Depths(contig_lengths, windows)
        self.contexts = np.zeros((2, _N_CONTEXTS), np.int64)
        self.drift: list[tuple[int, float, float, float]] = []
        self._n_reads = 0
        self._threshold = threshold
        self._motifs = tuple(motifs)
        self._windows = windows

    def add(self, batch: ReadBatch) -> None:
        """Add a computed batch; called in order."""
        n_contigs = len(self.reads)
        usable = batch.status == ReadStatus.OK
        self._n_reads += len(batch)
        lengths = np.clip(batch.read_length, LENGTH_EDGES[0], LENGTH_EDGES[-1])
        self.lengths += np.histogram(lengths, LENGTH_EDGES)[0]
        bases = np.histogram(lengths[usable], LENGTH_EDGES, weights=batch.read_length[usable])[0]
        self.yields += bases.astype(np.int64)
        self._add_times(batch, usable)
        self.reads += np.bincount(batch.contig[usable], minlength=n_contigs)
        spans = (batch.reference_end - batch.reference_start)[usable]
        self.covered += np.bincount(batch.contig[usable], spans, n_contigs).astype(np.int64)
        self.depths.add_alignments(batch.contig[usable], batch.reference_start[usable], batch.reference_end[usable])
        if usable.any():
            means = (float(column[usable].mean()) for column in (batch.shift, batch.scale, batch.var))
            self.drift.append((self._n_reads, *means))  # type: ignore[arg-type]
        if self._motifs:
            self._add_calls(batch)

    def join(self, other: RunStatistics) -> None:
        """Add the sums of the next part of the run."""
        for name in _SUMS:
            getattr(self, name)[...] += getattr(other, name)
        self.depths.join(other.depths)
        self.drift += [(self._n_reads + reads, *means) for reads, *means in other.drift]  # type: ignore[misc]
        self._n_reads += other._n_reads

    def as_json(self) -> dict[str, Any]:
        sums = {name: getattr(self, name).tolist() for name in _SUMS}
        return {**sums, "depths": self.depths.as_json(), "drift": self.drift, "n_reads": self._n_reads}

    def take_json(self, values: JsonObject) -> None:
        """Restore the sums of `as_json`. Raises `DamagedValueError` if they are of other contigs."""
        values.check_names((*_SUMS, "depths", "drift", "n_reads"))
        for name in _SUMS:
            sums = getattr(self, name)
            sums[...] = values.integers(name, sums.shape)
        self.depths.take_json(values.object("depths"))
        self.drift = [(int(reads), *means) for reads, *means in values.numbers("drift", (-1, 4)).tolist()]
        self._n_reads = values.integer("n_reads")

    def context_names(self) -> list[str]:
        """Return the 16 contexts, such as ``A[CG]T``; empty for several motifs."""
        if len(self._motifs) != 1:
            return []
        site = self._motifs[0].pattern
        return [f"{before}[{site}]{after}" for before in _LETTERS for after in _LETTERS]

    def _add_times(self, batch: ReadBatch, usable: NDArray[np.bool_]) -> None:
        if not len(batch.start_time):
            return
        known = usable & (batch.start_time >= 0)
        bins = np.minimum(batch.start_time[known] // TIME_WIDTH, len(self.times) - 1).astype(np.int64)
        self.times += np.bincount(bins, batch.read_length[known], len(self.times)).astype(np.int64)

    def _add_calls(self, batch: ReadBatch) -> None:
        calls = np.flatnonzero(calls_inside(batch, self._windows))
        read = np.searchsorted(batch.calls.offsets, calls, side="right") - 1
        ratio = batch.calls.methylated[calls] - batch.calls.unmethylated[calls]
        self.ratios += np.histogram(np.clip(ratio, -MOST_RATIO, MOST_RATIO), _RATIO_EDGES)[0]
        contig = batch.contig[read]
        for sums, counts in (
            (self.methylated, ratio >= self._threshold),
            (self.unmethylated, -ratio >= self._threshold),
        ):
            sums += np.bincount(contig[counts], minlength=len(sums))
        decided = np.abs(ratio) >= self._threshold
        self.depths.add_calls(contig[decided], batch.calls.first[calls][decided])
        if len(self._motifs) > 1:
            return
        width = len(self._motifs[0].pattern)
        single = (batch.calls.sites[calls] == 1) & decided
        self.contexts += _by_context(batch, read[single], batch.calls.first[calls][single], width, ratio[single] > 0)


def _by_context(
    batch: ReadBatch, read: NDArray[np.intp], site: NDArray[np.int64], width: int, methylated: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Count sites by state and adjacent letters."""
    place = batch.reference_offsets[read] + site - batch.reference_start[read]
    inside = (place > batch.reference_offsets[read]) & (place + width < batch.reference_offsets[read + 1])
    before, after = _RANK[batch.reference[place[inside] - 1]], _RANK[batch.reference[place[inside] + width]]
    known = (before >= 0) & (after >= 0)
    code = methylated[inside][known] * _N_CONTEXTS + before[known] * len(_LETTERS) + after[known]
    return np.bincount(code, minlength=2 * _N_CONTEXTS).reshape(2, _N_CONTEXTS)
