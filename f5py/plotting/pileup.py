"""Data of a plot of several reads' signals over the same bases of the reference."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import elements_of
from f5py.plotting.data import PlotData

#: Most points of a read at a base; of more samples means are drawn.
_MOST_POINTS = 8
#: Share of the points beyond either end of the axis.
_CUT = 0.002


class Trace(NamedTuple):
    """Signal of a read along the reference, by ascending position; shape (m,) each."""

    name: str
    sample: int  # index of the sample
    position: NDArray[np.float64]  # 0-based; base p is the interval from p to p + 1
    current: NDArray[np.float32]  # pA, on the scale of the model
    # mean of each base's events, shape (bases of the region,); NaN at bases without events
    mean: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class StrandPileup:
    """Reads of a strand, with the base and the expected level at each position, on that strand."""

    strand: str  # "+" or "-"
    letters: NDArray[np.uint8]  # shape (b,); 0 at positions without a read
    level: NDArray[np.float32]  # shape (b,): pA; NaN at positions without a read
    level_stdv: NDArray[np.float32]
    traces: list[Trace]

    def medians(self, n_samples: int) -> NDArray[np.float32]:
        """Compute the median of the reads' means by sample and base, NaN without reads."""
        medians = np.full((n_samples, len(self.level)), np.nan, np.float32)
        for i in range(n_samples):
            means = [trace.mean for trace in self.traces if trace.sample == i]
            seen = np.isfinite(means).any(axis=0) if means else np.zeros(len(self.level), np.bool_)
            if seen.any():
                medians[i, seen] = np.nanmedian(np.stack(means)[:, seen], axis=0)
        return medians


@dataclass(frozen=True, eq=False)
class Pileup:
    """Signals of several reads over a region."""

    contig: str
    start: int  # 0-based, half-open
    end: int
    kind: str  # "samples" or "events"
    chemistry: str
    model: str
    sample_names: tuple[str, ...]
    strands: list[StrandPileup]
    n_left_out: int

    @property
    def region(self) -> str:
        """Region as in samtools."""
        return f"{self.contig}:{self.start + 1}-{self.end}"

    @property
    def caption(self) -> list[str]:
        """Chemistry and model, kind of the lines, and reads that are left out."""
        lines = "samples" if self.kind == "samples" else "means of events"
        words = [
            f"{self.chemistry}, model {self.model}; thin lines: {lines} of the reads, scaled to the model",
            "thick lines: medians of the reads; orange: expected level, with its standard deviation",
            "each k-mer is drawn at its first base on the reference",
        ]
        if self.n_left_out:
            words.append(f"{self.n_left_out} more reads are not drawn")
        return words

    def limits(self) -> tuple[float, float]:
        """Return limits of the axis around nearly all that is drawn."""
        drawn = [trace.current for one in self.strands for trace in one.traces]
        drawn += [level for one in self.strands for level in (one.level - one.level_stdv, one.level + one.level_stdv)]
        low, high = np.nanquantile(np.concatenate(drawn), [_CUT, 1 - _CUT])
        room = 0.04 * float(high - low)
        return float(low) - room, float(high) + room

    def words(self, strand: StrandPileup) -> str:
        """Title of a strand's reads."""
        n = len(strand.traces)
        return f"{strand.strand} strand: {n} {'read' if n == 1 else 'reads'}"


def trace_of(data: PlotData, sample: int, start: int, end: int, kind: str) -> Trace:
    """Place a read's samples, or its events' means, along the reference.

    The samples of a base are stretched over its width.
    """
    seen = np.flatnonzero(~data.skipped)
    aligned = data.event_kmer >= 0
    kmer, length = data.event_kmer[aligned], data.event_length[aligned].astype(np.float64)
    n = len(data.position)
    sums = np.bincount(kmer, length * data.event_mean[aligned], minlength=n)
    means = sums[seen] / np.bincount(kmer, length, minlength=n)[seen]
    mean = np.full(end - start, np.nan, np.float32)
    mean[data.position[seen] - start] = (means - data.shift) / data.scale
    if kind == "events":
        at = np.flatnonzero(np.isfinite(mean))
        return Trace(data.name, sample, (start + at + 0.5).astype(np.float64), mean[at], mean)
    n_samples = data.kmer_end[seen] - data.kmer_start[seen]
    n_points = np.minimum(n_samples, _MOST_POINTS)
    part = elements_of(np.zeros_like(n_points), n_points) / np.repeat(n_points, n_points)
    begin = np.repeat(data.kmer_start[seen], n_points) + (part * np.repeat(n_samples, n_points)).astype(np.int64)
    stop = np.append(begin[1:], 0)
    stop[np.cumsum(n_points) - 1] = data.kmer_end[seen]
    sums = np.append(0.0, np.cumsum(data.current, dtype=np.float64))
    current = (sums[stop - data.first_sample] - sums[begin - data.first_sample]) / (stop - begin)
    centre = part + 0.5 / np.repeat(n_points, n_points)
    position = np.repeat(data.position[seen], n_points) + (1 - centre if data.descending else centre)
    order = np.argsort(position, kind="stable")
    return Trace(
        data.name, sample, position[order], ((current - data.shift) / data.scale)[order].astype(np.float32), mean
    )


def strand_pileup(strand: str, reads: Sequence[tuple[int, PlotData]], start: int, end: int, kind: str) -> StrandPileup:
    """Collect the reads of a strand; `reads` are each read's sample and its data in the region."""
    letters = np.zeros(end - start, np.uint8)
    level, level_stdv = np.full((2, end - start), np.nan, np.float32)
    for _, data in reads:
        at = data.position - start
        letters[at] = data.letter
        level[at] = (data.level - data.shift) / data.scale
        level_stdv[at] = data.level_stdv / data.var
    traces = [trace_of(data, sample, start, end, kind) for sample, data in reads]
    return StrandPileup(strand, letters, level, level_stdv, traces)
