"""Data of a plot of a locus: reads of samples with their modification calls, and frequencies by site."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError
from f5py.io.bam.modifications.modification_calls import (
    Modification,
    aligned_calls,
    read_name,
)
from f5py.plotting.genes import Genes, pack_rows

if TYPE_CHECKING:
    import pysam

#: Least gap between reads of a row, as a share of the region.
_GAP = 0.01
#: Default least coverage of a site's frequency, as a share of the median site's.
_LEAST_SHARE = 0.2
#: Default window of a line, as a share of its sites.
_WINDOW_SHARE = 1 / 40
#: A line is interrupted by gaps of this share of the region, if they have this many times the median distance of sites.
_BREAK_SHARE, _BREAK_TIMES = 0.05, 10
#: The axis shows the lowest or the highest fifth only, if all lines are in it.
_FIFTHS = ((0.0, 0.2), (0.8, 1.0))
_HAPLOTYPE_COLOURS = {1: "one", 2: "two", 0: "none"}
#: Names of the colors of several samples in the style of pages.
SAMPLE_COLOURS = ("one", "two", "other", "four", "five", "none")


class CallMarks(NamedTuple):
    """Calls by read; shape (c,) each."""

    read: NDArray[np.int64]
    position: NDArray[np.int64]  # 0-based on the reference, of CpG always on the forward strand
    ratio: NDArray[np.float64]  # natural log-odds of modified against unmodified


class SiteShares(NamedTuple):
    """Share of modified calls by site; shape (s,) each."""

    position: NDArray[np.int64]
    modified: NDArray[np.int64]
    called: NDArray[np.int64]  # calls at or beyond the threshold


class Line(NamedTuple):
    """Frequencies of a sample or a haplotype: sites with enough calls, and means over several of them."""

    words: str
    colour: str  # name in the style of the page
    reads: NDArray[np.bool_]  # shape (n,)
    sites: SiteShares
    position: NDArray[np.float64]  # shape (m,): 0-based; NaN where the line is interrupted
    share: NDArray[np.float64]  # shape (m,)


@dataclass(frozen=True, eq=False)
class RegionData:
    """Reads of one or several samples over a locus."""

    contig: str
    start: int  # 0-based, half-open
    end: int
    modification: str  # such as ``5mC (C+m)``
    threshold: float  # calls with a smaller absolute ratio are undecided
    names: list[str]  # of the n reads
    read_start: NDArray[np.int64]  # shape (n,)
    read_end: NDArray[np.int64]  # shape (n,)
    reverse: NDArray[np.bool_]  # shape (n,)
    sample: NDArray[np.int64]  # shape (n,): index of `sample_names`
    sample_names: tuple[str, ...]
    haplotype: NDArray[np.int64]  # shape (n,): HP tag, or rank from 1 on of a textual one; 0 without a tag
    haplotype_names: dict[int, str]
    row: NDArray[np.int64]  # shape (n,): row of the drawing in its group, see `groups`
    marks: CallMarks
    depth: NDArray[np.int64]  # shape (samples, end - start): all reads with calls of modified bases
    n_left_out: int  # reads beyond the maximum
    min_coverage: int | None = None  # least decided calls of a site's frequency; see `least_calls`
    genes: Genes | None = None
    smooth: int | None = None  # sites of a line's window; see `window`

    @property
    def region(self) -> str:
        """Region as in samtools."""
        return f"{self.contig}:{self.start + 1}-{self.end}"

    @property
    def caption(self) -> list[str]:
        """Modification, threshold, window of the lines, and range of the axis."""
        low, high = self.limits
        lines, window = self.lines, self.window
        over = f"means of {window} sites, weighted by calls" if window > 1 else "single sites"
        words = [f"{self.modification}, threshold {self.threshold:g} (log-odds); lines: {over}"]
        if high - low < 1:
            shares = np.concatenate([one.sites.modified / one.sites.called for one in lines])
            n_beyond = int(((shares < low) | (shares > high)).sum())
            beyond = f"; {n_beyond} sites beyond it are drawn at its edge" if n_beyond else ""
            words.append(f"the axis of frequencies shows {100 * low:.0f} to {100 * high:.0f} % only{beyond}")
        if self.n_left_out:
            words.append(f"{self.n_left_out} more reads are not drawn")
        return words

    def in_group(self, group: tuple[int, int]) -> NDArray[np.bool_]:
        """Mark the reads of a sample and haplotype."""
        return (self.sample == group[0]) & (self.haplotype == group[1])

    def groups(self) -> list[tuple[int, int]]:
        """List samples and haplotypes that have reads, ascending, haplotype 0 last."""
        found = set(zip(self.sample.tolist(), self.haplotype.tolist(), strict=True))
        return sorted(found, key=lambda one: (one[0], one[1] == 0, one[1]))

    def group_words(self, group: tuple[int, int]) -> str:
        """Title of the reads of a sample and haplotype."""
        names = [self.sample_names[group[0]]] if len(self.sample_names) > 1 else []
        if any(haplotype for _, haplotype in self.groups()):
            names.append(f"haplotype {self.haplotype_names[group[1]]}" if group[1] else "without haplotype")
        n_reads = int(self.in_group(group).sum())
        words = f"{n_reads} {'read' if n_reads == 1 else 'reads'}"
        return f"{', '.join(names)}: {words}" if names else words

    def group_colour(self, group: tuple[int, int]) -> str:
        """Color name of the line that the reads of a sample and haplotype belong to."""
        if len(self.sample_names) > 1:
            return SAMPLE_COLOURS[group[0] % len(SAMPLE_COLOURS)]
        return _HAPLOTYPE_COLOURS.get(group[1], "other")

    @cached_property
    def lines(self) -> list[Line]:
        """Line of each sample, or of each haplotype if there is only one sample."""
        several = len(self.sample_names) > 1
        lines: list[Line] = []
        for group in self.groups():
            name = self.sample_names[group[0]] if several else self.group_words(group).partition(":")[0]
            if not lines or lines[-1].words != name:
                reads = self.sample == group[0] if several else self.in_group(group)
                sites = self.shown_shares(reads)
                lines.append(Line(name, self.group_colour(group), reads, sites, *self._smoothed(sites)))
        return lines

    @cached_property
    def window(self) -> int:
        """Number of sites behind a point of a line."""
        return self.smooth or 2 * (int(_WINDOW_SHARE * len(self.shown_shares().position)) // 2) + 1

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of the axis of frequencies: of all, or of a fifth that all lines are in."""
        shares = np.concatenate([one.share for one in self.lines])
        for low, high in _FIFTHS:
            if len(shares) and np.nanmin(shares) >= low and np.nanmax(shares) <= high:
                return low, high
        return 0.0, 1.0

    def _smoothed(self, sites: SiteShares) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the positions and means of a line."""
        n, before = len(sites.position), (self.window - 1) // 2
        first = np.maximum(np.arange(n) - before, 0)
        end = np.minimum(np.arange(n) - before + self.window, n)
        modified, called = (np.append(0, np.cumsum(one)) for one in (sites.modified, sites.called))
        share = (modified[end] - modified[first]) / (called[end] - called[first])
        gaps = np.diff(sites.position)
        least = max(_BREAK_SHARE * (self.end - self.start), _BREAK_TIMES * float(np.median(gaps)) if n > 1 else 0)
        breaks = np.flatnonzero(gaps > least) + 1
        return np.insert(sites.position.astype(np.float64), breaks, np.nan), np.insert(share, breaks, np.nan)

    def shares(self, reads: NDArray[np.bool_] | None = None) -> SiteShares:
        """Compute the frequencies of some reads, marked in shape (n,), or of all."""
        decided = np.abs(self.marks.ratio) >= self.threshold
        if reads is not None:
            decided &= reads[self.marks.read]
        position, site = np.unique(self.marks.position[decided], return_inverse=True)
        called = np.bincount(site, minlength=len(position))
        modified = np.bincount(site, self.marks.ratio[decided] > 0, minlength=len(position)).astype(np.int64)
        return SiteShares(position, modified, called)

    def least_calls(self, sites: SiteShares) -> int:
        """Return the least number of decided calls of a drawn frequency."""
        if self.min_coverage is not None:
            return self.min_coverage
        return max(1, math.ceil(_LEAST_SHARE * float(np.median(sites.called)))) if len(sites.called) else 1

    def shown_shares(self, reads: NDArray[np.bool_] | None = None) -> SiteShares:
        """Return the frequencies with enough calls."""
        sites = self.shares(reads)
        enough = sites.called >= self.least_calls(sites)
        return SiteShares(*(part[enough] for part in sites))

    def cells(self, n_cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Count calls by read and bin; return these, and modified, plain and undecided calls, shape (3, m)."""
        cell = (self.marks.position - self.start) * n_cells // (self.end - self.start)
        state = np.where(np.abs(self.marks.ratio) < self.threshold, 2, np.where(self.marks.ratio > 0, 0, 1))
        key, place = np.unique(self.marks.read * n_cells + cell, return_inverse=True)
        counts = np.bincount(place * 3 + state, minlength=3 * len(key)).reshape(-1, 3)
        return key // n_cells, key % n_cells, counts.T


def region_data(
    samples: Mapping[str, Iterable[pysam.AlignedSegment]], region: tuple[str, int, int], code: str | None,
    threshold: float, max_reads: int, min_coverage: int | None = None, genes: Genes | None = None,
    smooth: int | None = None, by_mean: bool = False,
) -> RegionData:  # fmt: skip
    """Collect the reads of a locus, or raise `F5pyError` if a sample has no calls there.

    `code` is that of the MM tag, by default the one with most calls. Of each sample at most `max_reads` are taken, the
    longest overlaps first. With `by_mean` reads are ordered by their share of modified calls, one in a row.
    """
    contig, start, end = region
    kept: list[pysam.AlignedSegment] = []
    of_sample: list[int] = []
    depth = np.zeros((len(samples), end - start), np.int64)
    n_left_out = 0
    for i, records in enumerate(samples.values()):
        these = [record for record in records if record.has_tag("MM") or record.has_tag("Mm")]
        depth[i] = _depth(these, start, end)
        overlap = np.array([min(r.reference_end or 0, end) - max(r.reference_start, start) for r in these], np.int64)
        chosen = np.sort(np.argsort(-overlap, kind="stable")[:max_reads])
        kept += [these[j] for j in chosen.tolist()]
        of_sample += [i] * len(chosen)
        n_left_out += len(these) - len(chosen)
    sample = np.array(of_sample, np.int64)
    calls = [record.modified_bases or {} for record in kept]
    key = _modification(calls, code)
    read, position, ratio = [], [], []
    for i, (record, found) in enumerate(zip(kept, calls, strict=True)):
        where, odds = _on_reference(record, [one for group in key for one in found.get(group, ())])
        inside = (where >= start) & (where < end)
        read.append(np.full(int(inside.sum()), i, np.int64))
        position.append(where[inside])
        ratio.append(odds[inside])
    n_calls = np.bincount(sample, list(map(len, read)), minlength=len(samples))
    if not n_calls.all():
        of = f" of {list(samples)[int(n_calls.argmin())]}" if len(samples) > 1 else ""
        raise F5pyError(
            f"-w {contig}:{start + 1}-{end}: no read there{of} has calls of modified bases (MM and ML tags); "
            "f5py call-methylation --modbam writes them"
        )
    marks = CallMarks(np.concatenate(read), np.concatenate(position), np.concatenate(ratio))
    read_start = np.array([max(r.reference_start, start) for r in kept], np.int64)
    read_end = np.array([min(r.reference_end or 0, end) for r in kept], np.int64)
    haplotype, haplotype_names = _haplotypes([r.get_tag("HP") if r.has_tag("HP") else 0 for r in kept])
    base, _, letter = key[0]
    rank = None
    if by_mean:  # those without decided calls come last
        decided = np.abs(marks.ratio) >= threshold
        called = np.bincount(marks.read[decided], minlength=len(kept))
        modified = np.bincount(marks.read[decided], marks.ratio[decided] > 0, minlength=len(kept))
        rank = np.where(called > 0, -modified / np.maximum(called, 1), 1.0)
    group = np.unique(np.stack([sample, haplotype]), axis=1, return_inverse=True)[1].ravel()
    return RegionData(
        contig=contig, start=start, end=end,
        modification=f"{_NAMES.get(str(letter), 'modification')} ({base}+{letter})", threshold=threshold,
        names=[read_name(r) for r in kept], read_start=read_start, read_end=read_end,
        reverse=np.array([r.is_reverse for r in kept], np.bool_), sample=sample, sample_names=tuple(samples),
        haplotype=haplotype, haplotype_names=haplotype_names,
        row=_rows(group, read_start, read_end, int((end - start) * _GAP), rank), marks=marks, depth=depth,
        n_left_out=n_left_out, min_coverage=min_coverage, genes=genes, smooth=smooth,
    )  # fmt: skip


_NUMBER = re.compile(r"-?[0-9]{1,18}")
_NAMES = {"m": "5mC", "h": "5hmC", "a": "6mA", "21839": "4mC", "17802": "pseudouridine"}


def _haplotypes(tags: list[Any]) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Return the haplotype number of every read by its HP tag, 0 for none, and names by number.

    Tags are numbers unless one of them is other text.
    """
    texts = [str(tag) for tag in tags]
    if all(_NUMBER.fullmatch(text) for text in texts):
        return np.array(texts, np.int64), {int(text): text for text in texts}
    names = sorted({text for text in texts if text != "0"})
    numbers = {"0": 0} | {name: i for i, name in enumerate(names, 1)}
    return np.array([numbers[text] for text in texts], np.int64), {number: name for name, number in numbers.items()}


def _modification(calls: list[dict[Modification, list[tuple[int, int]]]], code: str | None) -> list[Modification]:
    """Return the keys of the drawn modification, one per strand."""
    numbers: dict[str, int] = {}
    for found in calls:
        for key, places in found.items():
            numbers[str(key[2])] = numbers.get(str(key[2]), 0) + len(places)
    if code is None:
        code = max(numbers, key=lambda one: (numbers[one], one), default="m")
    elif numbers and code not in numbers:
        raise F5pyError(f"--code {code}: the reads there have calls of {', '.join(sorted(numbers))} only")
    keys = {key for found in calls for key in found if str(key[2]) == code}
    return sorted(keys, key=lambda key: key[:2]) or [("C", 0, code)]


def _on_reference(
    record: pysam.AlignedSegment, calls: list[tuple[int, int]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return positions and log-odds of aligned calls; a reverse CpG has the position of the forward C."""
    place, position, ratio = aligned_calls(record, calls)
    bases = np.frombuffer((record.query_sequence or "").encode(), np.uint8)
    if record.is_reverse and len(bases):
        before = bases[np.maximum(place - 1, 0)]
        position = position - ((bases[place] == ord("G")) & (before == ord("C")) & (place > 0))
    return position, ratio


def _depth(records: list[pysam.AlignedSegment], start: int, end: int) -> NDArray[np.int64]:
    """Count the records over each base, deletions included."""
    first = np.array([record.reference_start for record in records], np.int64).clip(start, end)
    last = np.array([record.reference_end or 0 for record in records], np.int64).clip(start, end)
    steps = np.bincount(first - start, minlength=end - start + 1) - np.bincount(last - start, minlength=end - start + 1)
    return np.cumsum(steps)[:-1]


def _rows(
    group: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], gap: int, rank: NDArray | None
) -> NDArray[np.int64]:
    """Pack the reads of each group into rows, or give each its own, in the order of their ranks."""
    rows = np.zeros(len(start), np.int64)
    for one in np.unique(group):
        mine = np.flatnonzero(group == one)
        if rank is None:
            rows[mine] = pack_rows(start[mine], end[mine], gap)
        else:
            rows[mine[np.argsort(rank[mine], kind="stable")]] = np.arange(len(mine))
    return rows
