"""Base modification calls at motif sites, from MM and ML tags of any caller, many records at a time.

The tags (SAM optional fields specification, section 1.7) may have several modifications, both strands, and codes as
letters or ChEBI numbers. An unlisted base is unmodified if the entry's mode is ``.`` or missing, unknown if it is
``?``.

An ML value N means the probability (N + 0.5) / 256. The rest to 1 is the probability of no modification. A call is the
most probable of wanted, other and no modification, and fails below the threshold.
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
from f5py.threads.ordered import prefetch_ordered

#: ChEBI numbers of letter codes (SAM optional fields specification, section 1.7).
CHEBI = {
    "m": 27551, "h": 76792, "f": 76794, "c": 76793, "g": 16964, "e": 80961, "b": 17477, "a": 28871, "o": 44605,
    "n": 18107,
}  # fmt: skip
_LETTERS = {str(number): letter for letter, number in CHEBI.items()}


class ModifiedSites(NamedTuple):
    """Calls of single sites, in record order."""

    contig: NDArray[np.int32]
    position: NDArray[np.int64]  # 0-based, of the motif's first base
    reverse: NDArray[np.bool_]  # reference strand of the modified base
    state: NDArray[np.uint8]  # see `_modified_sites_numba`
    value: NDArray[np.int16]  # ML of the wanted modification; -1 for an unlisted, unmodified base, -2 without a call
    record: NDArray[np.int64]  # index of the record


@dataclass
class TagCounts:
    """Numbers of records and calls, by fate."""

    records: int = 0  # aligned and not secondary
    without: int = 0  # of these, without tags of the modification
    damaged: int = 0  # of these, with tags that are damaged or of another sequence
    n: int = 0  # calls of the modification
    not_aligned: int = 0  # of these, on unaligned bases
    not_at_motif: int = 0  # of these, outside the motif

    def add(self, counts: NDArray[np.int64]) -> None:
        """Add the counts of `list_sites`."""
        for name, count in zip(self.__dataclass_fields__, counts.tolist(), strict=True):
            setattr(self, name, getattr(self, name) + count)


@dataclass(frozen=True)
class SiteSelection:
    """Selection of calls."""

    motif: Motif
    threshold: float  # least natural log-odds of a call; at 0 or below every base has its most probable state
    code: str | None = None  # letter or ChEBI number; the motif's by default
    reference: Reference | None = field(default=None, compare=False)  # defines the sites in place of the reads
    without_call: bool = False  # also list reference sites without a call of the record there

    @property
    def codes(self) -> tuple[str, str]:
        """The two names of the modification's code, see `names_of_code`."""
        return names_of_code(self.code or self.motif.code)

    @property
    def least(self) -> float:
        """Least probability of a call."""
        return 1.0 / (1.0 + math.exp(-self.threshold)) if self.threshold > 0 else 0.0


def names_of_code(code: str) -> tuple[str, str]:
    """Return a modification's code and its other form, ChEBI number or letter; equal if there is none."""
    return code, _LETTERS.get(code, str(CHEBI.get(code, code)))


def find_modified_sites(
    data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, wanted: SiteSelection
) -> tuple[ModifiedSites, NDArray[np.int64]]:
    """List the calls of `n` records from `record_chunks`, and their counts (`TagCounts.add`).

    Raises `InputFileError` if the reference lacks bases under a record.
    """
    from f5py.io.bam._bam_columns_numba import places_of
    from f5py.io.bam._bam_numba import N_BASES
    from f5py.io.bam.modifications._modified_sites_numba import ReferenceSegments, SiteFilter, list_sites

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
    calls = SiteFilter(
        (code, other_code), wanted.least, np.uint8(1 << "ACGT".index(motif.canonical)),
        (motif.offset_forward, motif.offset_reverse), (motif.codes(False).masks, motif.codes(True).masks),
        without_call,
    )  # fmt: skip
    segments = ReferenceSegments(*_segments(data, starts, n, wanted))
    n_found = list_sites(data, starts, n, calls, segments, columns, counts)
    return ModifiedSites._make(column[:n_found].copy() for column in columns), counts


def iterate_sites(
    alignments: AlignmentFile, wanted: SiteSelection, tags: TagCounts, n_threads: int,
    advance: Callable[[int], object] = lambda count: None,
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], ModifiedSites]]:  # fmt: skip
    """Yield records, as `AlignmentFile.chunks`, with the calls at their sites.

    Parameters
    ----------
    tags : TagCounts
        Added to.
    n_threads : int
        Chunks processed at the same time.
    advance : function
        Called with the number of finished records.
    """

    def work(chunk: tuple[NDArray[np.uint8], NDArray[np.int64], int]):
        data, starts, n = chunk
        return data, starts[: n + 1], *find_modified_sites(data, starts, n, wanted)

    with closing(prefetch_ordered(alignments.chunks(), work, n_threads, "f5py-tags")) as chunks:
        for data, starts, sites, counts in chunks:
            tags.add(counts)
            advance(len(starts) - 1)
            yield data, starts, sites


def _segments(
    data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, wanted: SiteSelection
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return reference letters around the records, offsets and start positions; empty without a reference."""
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
