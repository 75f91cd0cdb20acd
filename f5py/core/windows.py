"""Reference windows of a run, from a samtools region or a BED file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import merge_intervals
from f5py.errors import F5pyError, InputFileError
from f5py.messages.console import NO_LAST_LINE_END, input_warning

_END = 2**31 - 1


class Windows:
    """Disjoint, sorted half-open intervals on contigs.

    They are given in any order: contig index, 0-based start and exclusive end, clipped to BAM's largest position,
    2**31 - 1. Some commands bound a samtools region differently from a BED file. With `clips_groups` a group of sites
    belongs to a window only as a whole, otherwise by its start, so that adjacent windows have each group once.
    """

    def __init__(
        self, intervals: list[tuple[int, int, int]], is_region: bool = False, clips_groups: bool = False
    ) -> None:
        self.is_region = is_region
        self._clips_groups = clips_groups
        limits = [(contig, min(start, _END), min(end, _END)) for contig, start, end in intervals]
        contig, start, end = np.array(sorted(limits), np.int64).reshape(-1, 3).T
        places = merge_intervals(sort_keys(contig, start), sort_keys(contig, end))
        self._start_places, self._end_places = places
        self._contigs, self._starts, self._ends = places[0] >> 32, places[0] & _END, places[1] & _END

    @classmethod
    def parse(
        cls, texts: Sequence[str], contigs: list[str], all_known: bool = True, clips_groups: bool = False
    ) -> Windows:
        """Parse ``-w``: BED files and regions; without `all_known`, those on other contigs are left out."""
        intervals: list[tuple[int, int, int]] = []
        for text in texts:
            if text.endswith(".bed"):
                index = {name: i for i, name in enumerate(contigs)}
                for name, start, end, place, _ in read_bed(text):
                    if name in index:
                        intervals.append((index[name], start, end))
                    elif all_known:
                        known = _instead_of(name, contigs)
                        raise InputFileError(f"{place}: there is no contig {name!r} in the BAM file; it has {known}")
            else:  # names of contigs have no spaces
                regions = (_parse_region(one, contigs, all_known) for one in text.split() or [text])
                intervals += [region for region in regions if region is not None]
        intervals = list(dict.fromkeys(intervals))
        return cls(intervals, len(intervals) == 1 and not texts[0].endswith(".bed"), clips_groups)

    def with_previous_end(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (contig index, start, end, end of the previous window on the contig or 0), in order."""
        before = -1, 0
        for contig, start, end in zip(self._contigs.tolist(), self._starts.tolist(), self._ends.tolist(), strict=True):
            yield contig, start, end, before[1] if before[0] == contig else 0
            before = contig, end

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return contig index, start and end of each window, in order."""
        return self._contigs, self._starts, self._ends

    def share_passed(self, contig: int, position: int, contig_lengths: list[int]) -> float:
        """Return the share of the windows' bases before a position, 0 to 1."""
        ends = np.minimum(self._ends, np.array(contig_lengths, np.int64)[self._contigs])
        lengths = np.maximum(ends - self._starts, 0)
        sort_keys = (contig << 32 | position) - self._start_places
        return float(np.clip(sort_keys, 0, lengths).sum() / max(lengths.sum(), 1))

    def overlapping(
        self, contig: NDArray[np.integer], start: NDArray[np.int64], end: NDArray[np.int64], extension: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Find the windows that each of n stretches of the reference overlaps.

        The stretches are 0-based and half-open. Returns starts and ends of all windows, the latter with an `extension`,
        and the range of overlapped windows of each stretch.
        """
        end_places = self._end_places + extension
        first = np.searchsorted(end_places, sort_keys(contig, start), side="right")
        stop = np.searchsorted(self._start_places, sort_keys(contig, end), side="left")
        return self._starts, self._ends + extension, first, np.maximum(stop, first)

    def hold_groups(
        self, contig: NDArray[np.integer], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which groups of sites, by first and last one, belong to a window."""
        return self.contain(contig, first, last if self._clips_groups else first)

    def contain(
        self, contig: NDArray[np.integer], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which stretches, by 0-based first and last base, lie entirely in a window."""
        window = np.searchsorted(self._start_places, sort_keys(contig, first), side="right") - 1
        if len(self._starts) == 0:
            return np.zeros(len(first), np.bool_)
        # windows are sorted and disjoint: if it is not in this one, it is in none
        return (window >= 0) & (sort_keys(contig, last) < self._end_places[window])


def one_region(text: str, contigs: list[str], contig_lengths: list[int]) -> tuple[Windows, int, int, int]:
    """Parse a region as its only window; also return contig index, start and end, clipped to the contig.

    Raises `F5pyError` if the text is no region of these contigs, `InputFileError` if it begins after its contig.
    """
    if len(text.split()) > 1:
        raise F5pyError(f"-w {text}: give one region, written as contig:start-end")
    window = Windows.parse([text], contigs)
    contig, start, end, _ = next(window.with_previous_end())
    length = contig_lengths[contig]
    if start >= length:
        raise InputFileError(f"-w {text}: contig {contigs[contig]} has only {length} bases")
    return window, contig, start, min(end, length)


def sort_keys(contig: NDArray[np.integer], position: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers that sort by contig and then by position."""
    return contig.astype(np.int64) << 32 | position


def other_spelling(contig: str) -> str:
    """Return the name of a contig without its prefix chr, or with it."""
    return contig[3:] if contig.startswith("chr") else f"chr{contig}"


def _instead_of(name: str, contigs: list[str]) -> str:
    """List contigs that may be meant by a name that is none of them."""
    known = [other_spelling(name)] if other_spelling(name) in contigs else contigs
    return ", ".join(known[:3]) + (", ..." if len(known) > 3 else "")


def _parse_region(text: str, contigs: list[str], all_known: bool) -> tuple[int, int, int] | None:
    if text in contigs:  # a name may contain a colon
        return contigs.index(text), 0, _END
    name, colon, limits = text.rpartition(":")
    if not colon:
        name, limits = text, ""
    if name not in contigs:
        if not all_known:
            return None
        raise F5pyError(f"-w {text}: there is no contig {name!r} in the BAM file; it has {_instead_of(name, contigs)}")
    first, _, last = limits.replace(",", "").partition("-")
    try:
        start = int(first) - 1 if first else 0
        end = int(last) if last else _END
    except ValueError:
        start, end = 0, 0
    if start < 0 or end <= start or (colon and not limits):
        raise F5pyError(f"-w {text}: write a region as contig:start-end, 1-based with start <= end, e.g. {name}:1-1000")
    return contigs.index(name), start, end


def read_bed(path: str) -> list[tuple[str, int, int, str, str]]:
    """Read the non-empty intervals of a BED file: contig, start, end, place in the file, any name.

    Raises `InputFileError` if the file cannot be read, is damaged, or has no intervals.
    """
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        reason = f"{problem.strerror}; check the name" if isinstance(problem, OSError) else problem
        raise InputFileError(f"{path}: cannot read the BED file: {reason}") from None
    if "\0" in text:
        line_number = text[: text.index("\0")].count("\n") + 1
        raise InputFileError(f"{path}, line {line_number}: has a byte of zero; the file is damaged, copy it again")
    if text and not text.endswith("\n"):
        input_warning("windows", f"{path}: {NO_LAST_LINE_END}")
    intervals = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or line.startswith("#") or fields[0] in ("track", "browser"):
            continue
        try:
            name, start, end = fields[0], int(fields[1]), int(fields[2])
        except (ValueError, IndexError):
            raise InputFileError(f"{path}, line {number}: expected contig, start and end, found {line!r}") from None
        if not 0 <= start <= end:
            raise InputFileError(f"{path}, line {number}: start {start} and end {end} are no interval")
        if end > start:
            label = line.split("\t")[3] if line.count("\t") >= 3 else fields[3] if len(fields) > 3 else ""
            intervals.append((name, start, end, f"{path}, line {number}", label))
    if not intervals:
        raise InputFileError(f"{path}: the BED file has no windows")
    return intervals
