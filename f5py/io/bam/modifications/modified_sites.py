"""Base modification calls at motif sites, from MM and ML tags of any caller, many records at a time.

The tags (SAM optional fields specification, section 1.7) may have several modifications, both strands, and codes as
letters or ChEBI numbers. An unlisted base is unmodified if the entry's mode is ``.`` or missing, unknown if it is
``?``.

An ML value N means the probability (N + 0.5) / 256. The rest to 1 is the probability of no modification. A call is the
most probable of wanted, other and no modification, and fails below the threshold.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.cigar import ALIGNED, DELETION, OF_RECORD, OF_REFERENCE
from f5py.core.motifs import Motif
from f5py.core.offsets import offsets_of
from f5py.io.bam._bam_numba import (
    CONTIG,
    FLAGS,
    IS_REVERSE,
    IS_SECONDARY,
    IS_UNMAPPED,
    N_BASES,
    N_CIGAR,
    POSITION,
    cigar_of,
    sequence_begins,
    signed32,
    unsigned16,
)
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import fixed_numbers, record_places
from f5py.io.bam.modifications._tags_numba import (
    BITS_OF_LETTER,
    COMPLEMENT,
    UNKNOWN,
    first_bases,
    new_bases,
    places_of_tags,
    read_tags,
)
from f5py.io.reads.reference import Reference
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.threads.ordered import prefetch_ordered

#: ChEBI numbers of letter codes (SAM optional fields specification, section 1.7).
CHEBI = {
    "m": 27551, "h": 76792, "f": 76794, "c": 76793, "g": 16964, "e": 80961, "b": 17477, "a": 28871, "o": 44605,
    "n": 18107,
}  # fmt: skip
_LETTERS = {str(number): letter for letter, number in CHEBI.items()}


#: States of calls; the last three have no call: deleted base, other base, no entry.
CANONICAL, MODIFIED, OTHER, FAILED, DELETED, DIFFERENT, MISSING = range(7)
#: Indices of counts.
N_RECORDS, N_WITHOUT, N_DAMAGED, N_LISTED, N_NOT_ALIGNED, N_NOT_AT_SITE = range(6)
#: Bases as bits by BAM code; 0 for ambiguous ones.
_BITS_OF_CODE = np.array([0, 1, 2, 0, 4, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0], np.uint8)


class SiteFilter(NamedTuple):
    """Selection of calls."""

    names: tuple[NDArray[np.uint8], NDArray[np.uint8]]  # the modification's code and number, as texts
    least: float  # probability of a call
    letter: np.uint8  # bit of the modified base
    offsets: tuple[int, int]  # from a site's first base to the modified one, forward and reverse
    masks: tuple[NDArray[np.uint8], NDArray[np.uint8]]  # see `f5py.core.motifs.MotifCodes`; forward and reverse
    without_call: bool  # with a reference: also list sites without a call, on each record's strand


class ModifiedSites(NamedTuple):
    """Calls of single sites, in record order."""

    contig: NDArray[np.int32]
    position: NDArray[np.int64]  # 0-based, of the motif's first base
    reverse: NDArray[np.bool_]  # reference strand of the modified base
    state: NDArray[np.uint8]  # `CANONICAL` to `MISSING`
    value: NDArray[np.int16]  # ML of the wanted modification; -1 for an unlisted, unmodified base, -2 without a call
    record: NDArray[np.int64]  # index of the record


@dataclass
class TagCounts:
    """Numbers of used and skipped records and calls."""

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


@exact_inner
def _state_of(value, highest, total, least):
    """Return the most probable state of a call, `FAILED` below the least probability."""
    modified = (np.float64(value) + 0.5) / 256.0 if value >= 0 else 0.0
    other = (np.float64(highest) + 0.5) / 256.0 if highest >= 0 else 0.0
    canonical = max(1.0 - modified - np.float64(total), 0.0)
    state, best = CANONICAL, canonical
    if modified > best:
        state, best = MODIFIED, modified
    if other > best:
        state, best = OTHER, other
    return FAILED if best < least else state


@exact_inner
def _is_at_site(bases, first, masks):
    """Return whether the motif is at `first` in bases given as bits."""
    found = first >= 0 and first + masks.shape[0] <= bases.shape[0]
    i = 0
    while found and i < masks.shape[0]:
        found = bases[first + i] & masks[i] != 0
        i += 1
    return found


@exact_inner
def _decode(data, at, bases):
    packed = sequence_begins(data, at)
    for j in range(bases.shape[0]):
        pair = np.int64(data[packed + (j >> 1)])
        bases[j] = _BITS_OF_CODE[pair & 15 if j & 1 else pair >> 4]


@exact_inner
def is_used(data, at):
    """Return whether a record is aligned and not secondary."""
    flags = unsigned16(data, at + FLAGS)
    is_placed = signed32(data, at + CONTIG) >= 0 and signed32(data, at + POSITION) >= 0
    return flags & (IS_UNMAPPED | IS_SECONDARY) == 0 and is_placed and unsigned16(data, at + N_CIGAR) > 0


@exact_inner
def _list_of_strand(record, is_reverse, without_call, bases, wanted_sites, segment, n_found, columns, counts):
    """List sites of one strand with a call, or the reference's without one. Return the new total."""
    contig, position, reverse, state, value, _ = columns
    bits, wanted, highest, total = bases
    canonical = COMPLEMENT[wanted_sites.letter] if is_reverse else wanted_sites.letter
    offset, masks = wanted_sites.offsets[1 if is_reverse else 0], wanted_sites.masks[1 if is_reverse else 0]
    reference, reference_start = segment
    begin, n_operations = cigar_of(record, 0, record.shape[0])
    place = np.int64(0)
    on_reference = signed32(record, POSITION)
    for j in range(n_operations):
        operation = np.uint32(signed32(record, begin + 4 * j))
        kind, length = operation & 15, np.int64(operation >> 4)
        is_deletion = without_call and kind == DELETION
        is_of_record = OF_RECORD >> kind & 1 != 0
        n = length if is_deletion else min(length, bits.shape[0] - place) if is_of_record else np.int64(0)
        for i in range(place, place + n):
            is_canonical = not is_deletion and bits[i] == canonical
            if not is_deletion and (is_canonical and wanted[i] != UNKNOWN) == without_call:
                continue
            is_counted = not without_call and wanted[i] >= 0
            counts[N_LISTED] += is_counted
            if not is_deletion and ALIGNED >> kind & 1 == 0:
                counts[N_NOT_ALIGNED] += is_counted
                continue
            site = on_reference + i - place - offset
            if reference.shape[0]:
                is_there = _is_at_site(reference, site - reference_start, masks)
            else:
                is_there = _is_at_site(bits, i - offset, masks)
            if not is_there or site < 0:
                counts[N_NOT_AT_SITE] += is_counted
                continue
            contig[n_found] = signed32(record, CONTIG)
            position[n_found] = site
            reverse[n_found] = is_reverse
            if without_call:
                state[n_found] = DELETED if is_deletion else MISSING if is_canonical else DIFFERENT
                value[n_found] = UNKNOWN
            else:
                state[n_found] = _state_of(wanted[i], highest[i], total[i], wanted_sites.least)
                value[n_found] = wanted[i]
            n_found += 1
        if is_of_record:
            place += length
        if OF_REFERENCE >> kind & 1:
            on_reference += length
    return n_found


@exact_kernel
def list_sites(data, starts, n, wanted, segments, columns, counts):
    """List the calls of `n` records at the sites of a motif; return their number.

    Parameters
    ----------
    wanted : SiteFilter
    segments : tuple of arrays
        Reference letters around records, their offsets, and positions of the first ones; empty without a reference.
    columns : ModifiedSites
        Filled; large enough for every base and, for sites without a call, every reference base.
    counts : int64, shape (6,)
        Added to.
    """
    letters, letter_offsets, letter_starts = segments
    room = np.int64(1) << 12
    all_bases = new_bases(room)
    n_found = np.int64(0)
    for i in range(n):
        at, end = starts[i], starts[i + 1]
        if not is_used(data, at):
            continue
        counts[N_RECORDS] += 1
        n_bases = signed32(data, at + N_BASES)
        text_begin, text_end, ml_begin, ml_end, fits = places_of_tags(data, at, end, n_bases)
        if not fits:
            counts[N_DAMAGED] += 1
            continue
        if n_bases > room:
            room = 2 * n_bases
            all_bases = new_bases(room)
        bases = first_bases(all_bases, n_bases)
        _decode(data, at, bases.bits)
        is_reverse = unsigned16(data, at + FLAGS) & IS_REVERSE != 0
        reference, reference_start = bases.bits[:0], np.int64(0)
        if letter_offsets.shape[0]:
            reference = BITS_OF_LETTER[letters[letter_offsets[i] : letter_offsets[i + 1]]]
            reference_start = letter_starts[i]
        before, of_record = n_found, np.int64(0)
        n_listed, n_not_aligned, n_not_at_site = counts[N_LISTED], counts[N_NOT_ALIGNED], counts[N_NOT_AT_SITE]
        is_sound = True
        for is_minus in (False, True):
            bases.wanted[:], bases.highest[:], bases.total[:] = UNKNOWN, -1, 0.0
            n_entries = read_tags(
                data[text_begin:text_end], data[ml_begin:ml_end], wanted.names, is_minus,
                COMPLEMENT[wanted.letter] if is_minus else wanted.letter, is_reverse, bases,
            )  # fmt: skip
            is_sound = is_sound and n_entries >= 0
            if not is_sound:
                break
            if wanted.without_call and not is_minus:
                n_found = _list_of_strand(
                    data[at:end], is_reverse, True, bases, wanted, (reference, reference_start), n_found, columns,
                    counts,
                )  # fmt: skip
            if n_entries == 0:
                continue
            of_record += n_entries
            n_found = _list_of_strand(
                data[at:end], is_reverse != is_minus, False, bases, wanted, (reference, reference_start), n_found,
                columns, counts,
            )  # fmt: skip
        if not is_sound:
            n_found = before
            counts[N_LISTED], counts[N_NOT_ALIGNED], counts[N_NOT_AT_SITE] = n_listed, n_not_aligned, n_not_at_site
            counts[N_DAMAGED] += 1
            continue
        counts[N_WITHOUT] += of_record == 0
        columns[5][before:n_found] = i
    return n_found


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
    """Return a modification's code and its other form, ChEBI number or letter, or the code twice."""
    return code, _LETTERS.get(code, str(CHEBI.get(code, code)))


def find_modified_sites(
    data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, wanted: SiteSelection
) -> tuple[ModifiedSites, NDArray[np.int64]]:
    """List the calls of `n` records, and their counts; raise `InputFileError` without reference bases."""
    motif = wanted.motif
    n_bases = int(fixed_numbers(data, starts[:n], N_BASES, np.int32).sum(dtype=np.int64))
    room, without_call = n_bases, wanted.without_call and wanted.reference is not None
    if without_call:
        _, begin, end = record_places(data, starts, n)
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
    n_found = list_sites(data, starts, n, calls, _segments(data, starts, n, wanted), columns, counts)
    return ModifiedSites._make(column[:n_found].copy() for column in columns), counts


def iterate_sites(
    alignments: AlignmentFile, wanted: SiteSelection, tags: TagCounts, n_threads: int,
    advance: Callable[[int], object] = lambda count: None,
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], ModifiedSites]]:  # fmt: skip
    """Yield records with the calls at their sites, with several chunks in progress; add to the counts."""

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
    if wanted.reference is None:
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    contig, begin, end = record_places(data, starts, n)
    margin = len(wanted.motif.pattern)
    used = np.flatnonzero(
        (fixed_numbers(data, starts[:n], FLAGS, np.uint16) & (IS_UNMAPPED | IS_SECONDARY) == 0)
        & (contig >= 0)
        & (begin >= 0)
        & (fixed_numbers(data, starts[:n], N_CIGAR, np.uint16) > 0)
    )
    first = np.maximum(begin[used] - margin, 0)
    letters, offsets = wanted.reference.segments(contig[used], first, end[used] + margin)
    sizes, at = np.zeros(n, np.int64), np.zeros(n, np.int64)
    sizes[used], at[used] = np.diff(offsets), first
    return letters, offsets_of(sizes), at
