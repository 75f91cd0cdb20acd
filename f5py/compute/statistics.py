"""Statistics for the report: distributions, sums by contig and context, and drift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.core.motifs import Motif
from f5py.core.windows import Windows, sort_keys
from f5py.errors import DamagedValueError
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

#: Stretches of equal length that the depth is summed in.
N_STRETCHES = 240
#: Positions whose sites are counted; of a longer reference they are chosen by a hash, alike in every run.
MOST_POSITIONS = 1 << 20
_HASH, _HASH_BITS = np.uint64(0x9E3779B97F4A7C15), 24
_MOST_PENDING = 1 << 18
_LIST = ("covered", "sites", "calls")


class Depths:
    """Sums over the run's windows, or all contigs, concatenated; memory does not grow with the run."""

    def __init__(self, contig_lengths: Sequence[int], windows: Windows | None = None) -> None:
        lengths = np.array(contig_lengths, np.int64)
        if windows is None:
            contig, start, end = np.arange(len(lengths)), np.zeros_like(lengths), lengths
        else:
            contig, start, end = windows.bounds()
            end = np.maximum(np.minimum(end, lengths[contig]), start)
        self._contig, self._start, self._length = contig, start, end - start
        self._places = sort_keys(contig, start)
        self._before = np.concatenate((np.zeros(1, np.int64), np.cumsum(self._length)))
        self.total = int(self._before[-1])
        self.stretch = max(-(-self.total // N_STRETCHES), 1)
        self.covered = np.zeros(max(-(-self.total // self.stretch), 1), np.int64)
        self.share = min(MOST_POSITIONS / max(self.total, 1), 1.0)
        self._limit = np.uint64(round(self.share * (1 << _HASH_BITS)))
        self._sites, self._calls = np.empty((2, 0), np.int64)
        self._pending: list[NDArray[np.int64]] = []
        self._n_pending = 0

    def add_alignments(self, contig: NDArray[np.integer], start: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Add alignments, 0-based and half-open."""
        low, high = self._along(contig, start), self._along(contig, end)
        first, last, n = low // self.stretch, high // self.stretch, len(self.covered) + 2
        # each end in its own stretch, and whole ones from the one after the first to the last
        parts = np.bincount(first, (first + 1) * self.stretch - low, n) - np.bincount(
            last, (last + 1) * self.stretch - high, n
        )
        whole = np.cumsum(np.bincount(first + 1, minlength=n) - np.bincount(last + 1, minlength=n))
        self.covered += (parts.astype(np.int64) + whole * self.stretch)[: len(self.covered)]

    def add_calls(self, contig: NDArray[np.integer], site: NDArray[np.int64]) -> None:
        """Add calls at 0-based positions."""
        places = sort_keys(contig, site)
        hashed = (places.view(np.uint64) * _HASH) >> np.uint64(64 - _HASH_BITS)
        self._pending.append(places[hashed < self._limit])
        self._n_pending += len(self._pending[-1])
        if self._n_pending > _MOST_PENDING:
            self._settle()

    def calls_of_sites(self) -> NDArray[np.int64]:
        """Return the number of calls of each sampled site with calls, in reference order."""
        self._settle()
        return self._calls

    def starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return contig index and 0-based start of each stretch; empty for an empty reference."""
        along = np.arange(len(self.covered)) * self.stretch
        which = np.searchsorted(self._before, along[along < self.total], side="right") - 1
        return self._contig[which], self._start[which] + along[: len(which)] - self._before[which]

    def depth(self) -> NDArray[np.float64]:
        """Return the mean depth of each stretch."""
        edges = np.minimum(np.arange(len(self.covered) + 1) * self.stretch, max(self.total, 1))
        return self.covered / np.diff(edges)

    def join(self, other: Depths) -> None:
        """Add the sums of another part of the run."""
        other._settle()
        self.covered += other.covered
        self._settle()
        self._sites, self._calls = _sum_places(
            np.concatenate((self._sites, other._sites)), np.concatenate((self._calls, other._calls))
        )

    def as_json(self) -> dict[str, Any]:
        self._settle()
        return {"covered": self.covered.tolist(), "sites": self._sites.tolist(), "calls": self._calls.tolist()}

    def take_json(self, values: JsonObject) -> None:
        """Restore the sums of `as_json`. Raises `DamagedValueError` if they are of another reference."""
        values.check_names(_LIST)
        self.covered[...] = values.integers("covered", self.covered.shape)
        self._sites = values.integers("sites", (-1,))
        self._calls = values.integers("calls", self._sites.shape, 1)
        if (np.diff(self._sites) <= 0).any():
            raise DamagedValueError("the sites of a part's report are not in order")

    def _along(self, contig: NDArray[np.integer], position: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert positions to offsets in the concatenated windows."""
        if not self.total:
            return np.zeros(len(position), np.int64)
        window = np.searchsorted(self._places, sort_keys(contig, position), side="right") - 1
        inside = np.minimum(position - self._start[window], self._length[window])
        is_here = (window >= 0) & (self._contig[window] == contig)
        return np.where(is_here, self._before[window] + inside, self._before[window + 1])

    def _settle(self) -> None:
        """Count pending calls."""
        if self._pending:
            places = np.concatenate((self._sites, *self._pending))
            calls = np.concatenate((self._calls, np.ones(self._n_pending, np.int64)))
            self._sites, self._calls = _sum_places(places, calls)
            self._pending, self._n_pending = [], 0


def _sum_places(places: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort and deduplicate places, summing their counts."""
    order = np.argsort(places, kind="stable")
    places = places[order]
    first = np.flatnonzero(np.diff(places, prepend=-1))
    return places[first], np.add.reduceat(counts[order], first) if len(first) else counts[:0]


class RunStatistics:
    """Sums over the batches of a run, in `windows` if given; memory does not grow with it.

    Calls with an absolute ratio below `threshold` count for neither state; calls are counted by context only for a
    single motif. `ratios` are calls by ratio, `lengths` reads by length, `yields` and `times` bases of usable reads by
    length and by the start of sequencing. By contig there are `reads`, `covered` bases, and calls beyond the threshold;
    `contexts`, shape (2, 16), are single-site calls, unmethylated and methylated, by the letters around the site.
    `drift` has the number of reads, and mean shift, scale and variance of each batch.
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
