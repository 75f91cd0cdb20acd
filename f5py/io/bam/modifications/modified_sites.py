"""Calls of modified bases at the sites of a motif, from records with the tags MM and ML, many at a time.

The tags may be of any caller (SAM optional fields specification, section 1.7): entries of several modifications, of
both strands of the read, with codes as letters or as numbers of ChEBI. A base that an entry does not list is unmodified
with certainty if the entry's mode is ``.`` or is not given, and nothing is known of it if the mode is ``?``.

A value N of ML stands for the probability (N + 0.5) / 256. A base has the wanted modification, another one, or none;
what is left of 1 is the probability of none. Its call is the most probable of these, and fails if that is less probable
than the threshold asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import Motif
from f5py.core.offsets import offsets_of
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import fixed_numbers
from f5py.io.reads.reference import Reference
from f5py.threads.ahead import worked_ahead

#: Numbers of ChEBI of modifications that have letters (SAM optional fields specification, section 1.7).
CHEBI = {
    "m": 27551, "h": 76792, "f": 76794, "c": 76793, "g": 16964, "e": 80961, "b": 17477, "a": 28871, "o": 44605,
    "n": 18107,
}  # fmt: skip
_LETTERS = {str(number): letter for letter, number in CHEBI.items()}


class ModifiedSites(NamedTuple):
    """Calls of single sites, in the order of the records."""

    contig: NDArray[np.int32]
    position: NDArray[np.int64]  # 0-based position of the motif's first base
    reverse: NDArray[np.bool_]  # strand of the reference that has the modified base
    # `CANONICAL`, `MODIFIED`, `OTHER` or `FAILED` of `_modified_sites_numba`; where sites without a call are wanted,
    # too, `DELETED`, `DIFFERENT` and `MISSING`
    state: NDArray[np.uint8]
    # of ML, for the wanted modification; -1 for a base that is unmodified because it is not listed, -2 without one
    value: NDArray[np.int16]
    record: NDArray[np.int64]  # number of the record among those that were given


@dataclass
class TagCounts:
    """Numbers of calls that the tags of records had, and of those left out."""

    records: int = 0  # aligned ones, without secondary alignments
    without: int = 0  # those of them without tags of the modification
    damaged: int = 0  # those whose tags are damaged or of another sequence, as those of clipped records without MN are
    n: int = 0  # calls of the modification
    not_aligned: int = 0  # those of them whose base is not opposite to one of the reference
    not_at_motif: int = 0  # those where the motif is not

    def add(self, counts: NDArray[np.int64]) -> None:
        """Add the counts of `list_sites`."""
        for name, count in zip(self.__dataclass_fields__, counts.tolist(), strict=True):
            setattr(self, name, getattr(self, name) + count)


@dataclass(frozen=True)
class WantedSites:
    """Choice of the calls that are wanted."""

    motif: Motif
    threshold: float  # natural log-odds that a call needs; at most 0, every base has its most probable state
    code: str | None = None  # of the modification: a letter, or its number of ChEBI; by default the motif's
    # tells where sites are; without it the bases of the reads do
    reference: Reference | None = field(default=None, compare=False)
    without_call: bool = False  # list sites of the reference, too, of which a record that lies there has no call

    @property
    def codes(self) -> tuple[str, str]:
        """The code of the modification, and its other name; the same twice if it has only one."""
        return names_of_code(self.code or self.motif.code)

    @property
    def least(self) -> float:
        """Probability that a call needs."""
        return 1.0 / (1.0 + math.exp(-self.threshold)) if self.threshold > 0 else 0.0


def names_of_code(code: str) -> tuple[str, str]:
    """Return the code of a modification and its other name, a number or a letter; the same twice if it has only one."""
    return code, _LETTERS.get(code, str(CHEBI.get(code, code)))


def modified_sites(
    data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, wanted: WantedSites
) -> tuple[ModifiedSites, NDArray[np.int64]]:
    """List the calls of `n` records. Raises `InputFileError` if the reference lacks bases under a record.

    Parameters
    ----------
    data, starts, n
        As `f5py.io.bam.bam_records.record_chunks` has them.

    Returns
    -------
    counts : int64, shape (6,)
        See `TagCounts.add`.
    """
    from f5py.io.bam._bam_columns_numba import places_of
    from f5py.io.bam._bam_numba import N_BASES
    from f5py.io.bam.modifications._modified_sites_numba import Segments, Wanted, list_sites

    motif = wanted.motif
    n_bases = int(fixed_numbers(data, starts[:n], N_BASES, np.int32).sum(dtype=np.int64))
    room, without_call = n_bases, wanted.without_call and wanted.reference is not None
    if without_call:
        contig, begin, end = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64)
        places_of(data, starts, contig, begin, end)
        room += int(np.maximum(end - begin, 0).sum())
    columns = ModifiedSites(
        np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.bool_), np.empty(room, np.uint8),
        np.empty(room, np.int16), np.empty(room, np.int64),
    )  # fmt: skip
    counts = np.zeros(6, np.int64)
    code, other_code = (np.frombuffer(code.encode(), np.uint8) for code in wanted.codes)
    calls = Wanted(
        (code, other_code), wanted.least, np.uint8(1 << "ACGT".index(motif.canonical)),
        (motif.offset_forward, motif.offset_reverse), (motif.codes(False).masks, motif.codes(True).masks),
        without_call,
    )  # fmt: skip
    segments = Segments(*_segments(data, starts, n, wanted))
    n_found = list_sites(data, starts, n, calls, segments, columns, counts)
    return ModifiedSites._make(column[:n_found].copy() for column in columns), counts


def listed_sites(
    alignments: AlignmentFile, wanted: WantedSites, tags: TagCounts, n_threads: int,
    advance: Callable[[int], object] = lambda count: None,
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], ModifiedSites]]:  # fmt: skip
    """Yield records, as `AlignmentFile.chunks` has them, with the calls at the sites in them.

    Parameters
    ----------
    tags : TagCounts
        Added to.
    n_threads : int
        As many chunks of records are worked on at the same time.
    advance : function
        Told how many records are done.
    """

    def work(chunk: tuple[NDArray[np.uint8], NDArray[np.int64], int]):
        data, starts, n = chunk
        return data, starts[: n + 1], *modified_sites(data, starts, n, wanted)

    with closing(worked_ahead(alignments.chunks(), work, n_threads, "f5py-tags")) as chunks:
        for data, starts, sites, counts in chunks:
            tags.add(counts)
            advance(len(starts) - 1)
            yield data, starts, sites


def _segments(
    data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, wanted: WantedSites
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Letters of the reference around the records, their offsets, and where they begin; nothing without a reference."""
    from f5py.io.bam._bam_columns_numba import places_of
    from f5py.io.bam.modifications._modified_sites_numba import used_records

    if wanted.reference is None:
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    contig, begin, end = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64)
    places_of(data, starts, contig, begin, end)
    is_used = np.empty(n, np.bool_)
    used_records(data, starts, is_used)
    margin = len(wanted.motif.pattern)
    used = np.flatnonzero(is_used)
    first = np.maximum(begin[used] - margin, 0)
    letters, offsets = wanted.reference.segments(contig[used], first, end[used] + margin)
    sizes, at = np.zeros(n, np.int64), np.zeros(n, np.int64)
    sizes[used], at[used] = np.diff(offsets), first
    return letters, offsets_of(sizes), at
