"""Data of a plot of a locus: packed reads with their modification calls, and frequencies by site."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError
from f5py.io.bam.modifications.modification_calls import (
    Modification,
    aligned_calls,
    has_modifications,
    modifications_of,
    read_name,
)
from f5py.plotting.genes import Genes
from f5py.plotting.packing import pack_rows

if TYPE_CHECKING:
    import pysam

#: Least gap between reads of a row, as a share of the region.
_GAP = 0.01
#: Default least coverage of a site's frequency, as a share of the median site's.
_LEAST_SHARE = 0.2


class Marks(NamedTuple):
    """Calls by read; shape (c,) each."""

    read: NDArray[np.int64]
    position: NDArray[np.int64]  # 0-based on the reference, of CpG always on the forward strand
    ratio: NDArray[np.float64]  # natural log-odds of modified against unmodified


class SiteShares(NamedTuple):
    """Share of modified calls by site; shape (s,) each."""

    position: NDArray[np.int64]
    modified: NDArray[np.int64]
    called: NDArray[np.int64]  # calls at or beyond the threshold


class SmoothShares(NamedTuple):
    """Share of modified calls by bins of equal width; shape (m,) each."""

    centre: NDArray[np.float64]  # 0-based
    share: NDArray[np.float64]
    stretch: NDArray[np.int64]  # index of the bin


class Cells(NamedTuple):
    """Counts of a read's calls by state, in bins of the region; shape (m,) each."""

    read: NDArray[np.int64]
    cell: NDArray[np.int64]  # index of the bin
    modified: NDArray[np.int64]
    plain: NDArray[np.int64]
    undecided: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RegionData:
    """Reads over a locus."""

    contig: str
    start: int  # 0-based, half-open
    end: int
    modification: str  # such as ``5mC (C+m)``
    threshold: float  # calls with a smaller absolute ratio are undecided
    names: list[str]  # of the n reads
    read_start: NDArray[np.int64]  # shape (n,)
    read_end: NDArray[np.int64]  # shape (n,)
    reverse: NDArray[np.bool_]  # shape (n,)
    haplotype: NDArray[np.int64]  # shape (n,): HP tag, or rank from 1 on of a textual one; 0 without a tag
    haplotype_names: dict[int, str]
    row: NDArray[np.int64]  # shape (n,): row of the drawing in its haplotype
    marks: Marks
    depth: NDArray[np.int64]  # shape (end - start,): all reads with calls of modified bases
    n_left_out: int  # reads beyond the maximum
    min_coverage: int | None = None  # least decided calls of a site's frequency; see `least_calls`
    genes: Genes | None = None

    @property
    def region(self) -> str:
        """Region as in samtools."""
        return f"{self.contig}:{self.start + 1}-{self.end}"

    def haplotypes(self) -> list[int]:
        """Return the haplotypes in the data, ascending, 0 last."""
        found = np.unique(self.haplotype).tolist()
        return sorted(found, key=lambda number: (number == 0, number))

    def shares(self, haplotype: int | None = None) -> SiteShares:
        """Compute the frequencies of a haplotype, or of all reads."""
        decided = np.abs(self.marks.ratio) >= self.threshold
        if haplotype is not None:
            decided &= self.haplotype[self.marks.read] == haplotype
        position, site = np.unique(self.marks.position[decided], return_inverse=True)
        called = np.bincount(site, minlength=len(position))
        modified = np.bincount(site, self.marks.ratio[decided] > 0, minlength=len(position)).astype(np.int64)
        return SiteShares(position, modified, called)

    def least_calls(self, sites: SiteShares) -> int:
        """Return the least number of decided calls of a drawn frequency."""
        if self.min_coverage is not None:
            return self.min_coverage
        return max(1, math.ceil(_LEAST_SHARE * float(np.median(sites.called)))) if len(sites.called) else 1

    def shown_shares(self, haplotype: int | None = None) -> SiteShares:
        """Return the frequencies with enough calls."""
        sites = self.shares(haplotype)
        enough = sites.called >= self.least_calls(sites)
        return SiteShares(*(part[enough] for part in sites))

    def smooth_shares(self, haplotype: int | None, n_stretches: int) -> SmoothShares:
        """Compute frequencies of all decided calls in bins."""
        sites = self.shares(haplotype)
        stretch = (sites.position - self.start) * n_stretches // (self.end - self.start)
        called = np.bincount(stretch, sites.called, minlength=n_stretches)
        modified = np.bincount(stretch, sites.modified, minlength=n_stretches)
        seen = np.flatnonzero(called >= self.least_calls(sites))
        centre = self.start + (seen + 0.5) * (self.end - self.start) / n_stretches
        return SmoothShares(centre, modified[seen] / called[seen], seen)

    def cells(self, n_cells: int) -> Cells:
        """Count calls by read and bin."""
        cell = (self.marks.position - self.start) * n_cells // (self.end - self.start)
        state = np.where(np.abs(self.marks.ratio) < self.threshold, 2, np.where(self.marks.ratio > 0, 0, 1))
        key, place = np.unique(self.marks.read * n_cells + cell, return_inverse=True)
        counts = np.bincount(place * 3 + state, minlength=3 * len(key)).reshape(-1, 3)
        return Cells(key // n_cells, key % n_cells, counts[:, 0], counts[:, 1], counts[:, 2])


def region_data(
    records: Iterable[pysam.AlignedSegment],
    region: tuple[str, int, int],
    code: str | None,
    threshold: float,
    max_reads: int,
    min_coverage: int | None = None,
    genes: Genes | None = None,
) -> RegionData:
    """Collect the reads of a locus, or raise `F5pyError` without calls.

    Parameters
    ----------
    records : iterable of pysam.AlignedSegment
        Records that overlap the region, sorted.
    region : (str, int, int)
        Contig and 0-based, half-open interval.
    code : str or None
        Code of the modification in the MM tag; by default the one with most calls.
    max_reads : int
        Longer overlaps are preferred.
    """
    contig, start, end = region
    kept = [record for record in records if has_modifications(record)]
    depth = _depth(kept, start, end)
    overlap = np.array([min(r.reference_end or 0, end) - max(r.reference_start, start) for r in kept], np.int64)
    chosen = np.sort(np.argsort(-overlap, kind="stable")[:max_reads])
    kept = [kept[i] for i in chosen.tolist()]
    calls = [modifications_of(record) for record in kept]
    key = _modification(calls, code)
    read, position, ratio = [], [], []
    for i, (record, found) in enumerate(zip(kept, calls, strict=True)):
        where, odds = _on_reference(record, [one for group in key for one in found.get(group, ())])
        inside = (where >= start) & (where < end)
        read.append(np.full(int(inside.sum()), i, np.int64))
        position.append(where[inside])
        ratio.append(odds[inside])
    if not any(map(len, read)):
        raise F5pyError(
            f"-w {contig}:{start + 1}-{end}: no read there has calls of modified bases (MM and ML tags); "
            "f5py call-methylation --modbam writes them"
        )
    marks = Marks(np.concatenate(read), np.concatenate(position), np.concatenate(ratio))
    read_start = np.array([max(r.reference_start, start) for r in kept], np.int64)
    read_end = np.array([min(r.reference_end or 0, end) for r in kept], np.int64)
    haplotype, haplotype_names = _haplotypes([r.get_tag("HP") if r.has_tag("HP") else 0 for r in kept])
    base, _, letter = key[0]
    return RegionData(
        contig=contig,
        start=start,
        end=end,
        modification=f"{_NAMES.get(str(letter), 'modification')} ({base}+{letter})",
        threshold=threshold,
        names=[read_name(r) for r in kept],
        read_start=read_start,
        read_end=read_end,
        reverse=np.array([r.is_reverse for r in kept], np.bool_),
        haplotype=haplotype,
        haplotype_names=haplotype_names,
        row=_rows(read_start, read_end, haplotype, int((end - start) * _GAP)),
        marks=marks,
        depth=depth,
        n_left_out=len(overlap) - len(kept),
        min_coverage=min_coverage,
        genes=genes,
    )


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
    start: NDArray[np.int64], end: NDArray[np.int64], haplotype: NDArray[np.int64], gap: int
) -> NDArray[np.int64]:
    """Pack the reads of each haplotype into rows."""
    rows = np.zeros(len(start), np.int64)
    for one in np.unique(haplotype):
        mine = haplotype == one
        rows[mine] = pack_rows(start[mine], end[mine], gap)
    return rows
