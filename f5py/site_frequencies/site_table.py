"""Hash tables of sites, filled from rows of text, and their frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

import f5py.site_frequencies.table_reader as reading
from f5py.core._name_table_numba import fill_table, find_name, free_slot
from f5py.jit.instructions import lowest_bit
from f5py.jit.kernel import exact_kernel, inner
from f5py.text._bytes_numba import LANES, where_is
from f5py.text._format_numba import NEWLINE, TAB, append_bytes, append_fixed, append_int

if TYPE_CHECKING:
    from f5py.core.motifs import Motif
    from f5py.io.files.output import TextOutput

#: Slots of a hash table per entry.
SLOTS_PER_ENTRY = 2
#: Bases of a stretch with adjacent slots in the hash table, and bases per slot, as powers of two.
_STRETCH_BITS, _SLOT_BITS = 10, 4
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SPLIT_TEXT = np.frombuffer(b"split-group", np.uint8)
#: Upper bound of the numbers and separators of an output row.
_FIXED_COLUMNS = 11 * 20 + len(SPLIT_TEXT)
#: Columns of a table of frequencies; the fourth is named as in the calls.
FREQUENCY_HEADER = (
    "chromosome\tstart\tend\t{}_in_group\tcalled_sites\tcalled_sites_methylated\tmethylated_frequency\tgroup_sequence"
)
#: Additional columns with the counts of both strands.
STRAND_COLUMNS = (
    "called_sites_forward", "called_sites_methylated_forward",
    "called_sites_reverse", "called_sites_methylated_reverse",
)  # fmt: skip
#: Header lines of tables of frequencies -> count column of the calls.
HEADERS_OF_FREQUENCIES = {
    "\t".join([FREQUENCY_HEADER.format(count), *strands]).encode(): count
    for count in ("num_motifs", "num_cpgs")
    for strands in (STRAND_COLUMNS, ())
}

#: Bases that sequences show from a motif's start on: the shortest k-mer of a pore model.
_SHOWN_BASES = 5
_ROWS_PER_BLOCK = 1 << 14
_FIRST_ENTRIES = 1 << 10  # a power of two, as the hash tables must be
#: By the bits of `MotifCodes.masks`.
_BASES = np.frombuffer(b"ACGT", np.uint8)
_ALL = np.uint64(2**64 - 1)


class SiteHash(NamedTuple):
    """Counts per key (chromosome, start, end) in order of first occurrence, with a hash table of the keys."""

    slots: NDArray[np.int32]  # entry + 1, or 0; a power of two long
    name: NDArray[np.int32]  # chromosome
    span: NDArray[np.int64]  # start << 32 | end
    group_size: NDArray[np.int32]  # motifs in the group
    called: NDArray[np.int64]
    methylated: NDArray[np.int64]
    text_start: NDArray[np.int64]  # of the sequence in `texts`
    text_size: NDArray[np.int32]  # 0 for a split group
    texts: NDArray[np.uint8]  # begins with `SPLIT_TEXT`
    called_reverse: NDArray[np.int64]  # on the reverse strand; zeros unless strands are counted apart
    methylated_reverse: NDArray[np.int64]


class NameHash(NamedTuple):
    """Chromosome names in order of first occurrence, with a hash table as in `f5py.core.names.NameTable`."""

    slots: NDArray[np.int64]
    ends: NDArray[np.int64]  # begins with 0
    text: NDArray[np.uint8]


@inner
def _site_slot(name, span, n_slots):
    """Return the first slot to probe for a key.

    A stretch of a chromosome starts at a random slot and its sites follow in order, as rows mostly do.
    """
    stretch = np.uint64(span) >> np.uint64(32 + _STRETCH_BITS)
    mixed = (stretch ^ (np.uint64(name) << np.uint64(24))) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MULTIPLIER
    within = (np.uint64(span) >> np.uint64(32 + _SLOT_BITS)) & np.uint64((1 << (_STRETCH_BITS - _SLOT_BITS)) - 1)
    return np.int64(((mixed >> np.uint64(32)) + within) & np.uint64(n_slots - 1))


# These functions take arrays, not named tuples: taking an array from a tuple counts a reference, which is slower than
# the work.


@inner
def number_name(slots, name_begin, name_end, name_text, n_names, text, start, end):
    """Return the index of the name ``text[start:end]``, which is added as ``n_names`` if new."""
    which = find_name(text, start, end, name_text, name_begin, name_end, slots)
    if which >= 0:
        return which
    slots[free_slot(text, start, end, slots)] = n_names
    begin = name_begin[n_names]
    for i in range(end - start):
        name_text[begin + i] = text[start + i]
    name_end[n_names] = begin + end - start
    return n_names


@inner
def find_site(slots, names, spans, n_sites, guess, name, span):
    """Return the index of a key, which is added as ``n_sites`` if new.

    `guess` is tried first: sites mostly follow the order of earlier reads or files.
    """
    if guess < n_sites and spans[guess] == span and names[guess] == name:
        return guess
    slot = _site_slot(name, span, slots.shape[0])
    while slots[slot] != 0:
        site = np.int64(slots[slot]) - 1
        if spans[site] == span and names[site] == name:
            return site
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot] = n_sites + 1
    names[n_sites] = name
    spans[n_sites] = span
    return n_sites


@exact_kernel
def fill_site_slots(slots, name, span, n_sites):
    """Insert all keys into an empty hash table.

    Parameters
    ----------
    slots : int32
        Zeros; their number is a power of two.
    """
    for site in range(n_sites):
        slot = _site_slot(np.int64(name[site]), span[site], slots.shape[0])
        while slots[slot] != 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = site + 1


@exact_kernel
def format_rows(out, order, sites, names, stranded):
    """Write the rows of the sites in `order`; return their number of bytes.

    Parameters
    ----------
    order : int64
        Indices of sites.
    """
    at = np.int64(0)
    for site in order:
        name = sites.name[site]
        at = append_bytes(out, at, names.text[names.ends[name] : names.ends[name + 1]])
        out[at] = TAB
        at = append_int(out, at + 1, sites.span[site] >> 32)
        out[at] = TAB
        at = append_int(out, at + 1, sites.span[site] & reading.MAX_POSITION)
        out[at] = TAB
        at = append_int(out, at + 1, np.int64(sites.group_size[site]))
        out[at] = TAB
        at = append_int(out, at + 1, sites.called[site])
        out[at] = TAB
        at = append_int(out, at + 1, sites.methylated[site])
        out[at] = TAB
        at = append_fixed(out, at + 1, sites.methylated[site] / sites.called[site], 3)
        out[at] = TAB
        begin, size = sites.text_start[site], sites.text_size[site]
        if size == 0:
            at = append_bytes(out, at + 1, SPLIT_TEXT)
        else:
            at = append_bytes(out, at + 1, sites.texts[begin : begin + size])
        if stranded:
            n_reverse, m_reverse = sites.called_reverse[site], sites.methylated_reverse[site]
            for count in (sites.called[site] - n_reverse, sites.methylated[site] - m_reverse, n_reverse, m_reverse):
                out[at] = TAB
                at = append_int(out, at + 1, count)
        out[at] = NEWLINE
        at += 1
    return at


@inner
def _motif_starts(text, window, masks):
    """Return the bit mask of motif starts in ``text[window : window + LANES]``."""
    found = _ALL
    for i in range(masks.shape[0]):
        here = np.uint64(0)
        for bit in range(4):
            if masks[i] >> bit & 1:
                here |= where_is(text, window + i, _BASES[bit])
        found &= here
    return found


@inner
def _begins_motif(text, start, end, masks):
    """Return whether ``text[start:end]`` is a prefix of the motif."""
    same = start < end
    i = 0
    while same and start + i < end:
        bases = np.uint8(0)
        for bit in range(4):
            if text[start + i] == _BASES[bit]:
                bases = np.uint8(1 << bit)
        same = bases & masks[i] != 0
        i += 1
    return same


@inner
def group_sites(text, first, stop, position, last, number, masks, starts, n_before):
    """List the positions of motifs in the sequence ``text[first:stop]`` of a row; return their number.

    They go to ``starts[n_before:]``, with room for ``stop - first + 1``. The sequence ends k bases after the start of
    the last motif, so that a longer motif is cut. It is listed, at `last`, if the row counts one more motif and the
    sequence ends with its prefix.
    """
    width = masks.shape[0]
    origin = np.int64(-1)  # offset of the row's start in the text
    n_found = np.int64(0)
    for window in range(first, stop - width + 1, LANES):
        found = _motif_starts(text, window, masks)
        while found != 0:
            motif = window + lowest_bit(found)
            found &= found - np.uint64(1)
            if motif > stop - width:
                break
            if origin < 0:
                origin = motif
            starts[n_before + n_found] = position + motif - origin
            n_found += 1
    if n_found == number - 1 and n_found > 0:
        motif = origin + last - position
        if motif > stop - width and _begins_motif(text, motif, stop, masks):
            starts[n_before + n_found] = last
            n_found += 1
    return n_found


@exact_kernel
def count_without_sites(text, text_starts, text_sizes, firsts, lasts, numbers, masks_forward, masks_reverse):
    """Count the rows with a sequence of fewer motifs, on either strand, than the row counts.

    Parameters
    ----------
    text : uint8
        `PADDING` bytes longer than the sequences.
    text_starts, text_sizes : int64 and int32, shape (n,)
    firsts, lasts : int64, shape (n,)
        0-based positions of the first and the last motif.
    """
    starts = np.empty(1 << 10, np.int64)
    n_rows = np.int64(0)
    for row in range(len(numbers)):
        first, size, number = text_starts[row], np.int64(text_sizes[row]), np.int64(numbers[row])
        if size + 1 > starts.shape[0]:
            starts = np.empty(2 * (size + 1), np.int64)
        stop = first + size
        is_short = size > 0
        for masks in (masks_forward, masks_reverse):
            is_short &= group_sites(text, first, stop, firsts[row], lasts[row], number, masks, starts, 0) < number
        n_rows += is_short
    return n_rows


class FrequencyColumns(NamedTuple):
    """Columns of a `Frequencies`, shape (n,) each."""

    chromosome: NDArray[np.int32]  # index into `Frequencies.chromosomes`
    start: NDArray[np.int64]  # 0-based, first base of the group's first motif
    end: NDArray[np.int64]  # first base of its last motif
    group_size: NDArray[np.int32]  # motifs in the group
    called: NDArray[np.int64]  # a group's calls count once per motif
    methylated: NDArray[np.int64]
    text_start: NDArray[np.int64]  # of the sequence, or ``split-group``, in `Frequencies.texts`
    text_size: NDArray[np.int32]
    called_reverse: NDArray[np.int64]  # on the reverse strand, if strands are counted apart
    methylated_reverse: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Counts per site, in the order of the output: by chromosome (bytes), start and end."""

    count_column: str  # ``"num_motifs"`` or ``"num_cpgs"``, as in the calls
    chromosomes: list[bytes]  # names by index
    odd_groups: int  # rows of groups split into another number of sites than counted
    stranded: bool  # with the counts of both strands
    _order: NDArray[np.intp]
    _sites: SiteHash
    _names: NameHash

    def __len__(self) -> int:
        return len(self._order)

    @property
    def texts(self) -> NDArray[np.uint8]:
        """Sequences of all sites, unordered."""
        return self._sites.texts

    def calls(self) -> tuple[int, int]:
        """Count all calls, and the methylated ones."""
        return int(self._sites.called[self._order].sum()), int(self._sites.methylated[self._order].sum())

    def covered(self, least: int) -> Frequencies:
        """Select the sites with at least `least` calls; a group's calls count for each of its sites."""
        needed = least * self._sites.group_size[self._order].astype(np.int64)
        return replace(self, _order=self._order[self._sites.called[self._order] >= needed])

    def columns(self, first: int = 0, last: int | None = None) -> FrequencyColumns:
        """Return the columns of the sites from `first` to `last`."""
        sites, which = self._sites, self._order[first:last]
        size = sites.text_size[which]
        return FrequencyColumns(
            sites.name[which],
            sites.span[which] >> 32,
            sites.span[which] & reading.MAX_POSITION,
            sites.group_size[which],
            sites.called[which],
            sites.methylated[which],
            np.where(size == 0, 0, sites.text_start[which]),
            np.where(size == 0, np.int32(len(SPLIT_TEXT)), size),
            sites.called_reverse[which],
            sites.methylated_reverse[which],
        )

    def count_without(self, motif: Motif) -> int:
        """Count the rows with fewer sites in their sequence than counted; 0 for motifs over 5 bases."""
        if len(motif.pattern) > _SHOWN_BASES:
            return 0
        sites, which = self._sites, self._order
        text = np.concatenate((sites.texts, np.zeros(reading.PADDING, np.uint8)))
        return int(
            count_without_sites(
                text, sites.text_start[which], sites.text_size[which], sites.span[which] >> 32,
                sites.span[which] & reading.MAX_POSITION, sites.group_size[which], motif.codes(False).masks,
                motif.codes(True).masks,
            )
        )  # fmt: skip

    def write(self, out: TextOutput) -> None:
        """Write the table with its header as tab-separated text."""
        columns = [FREQUENCY_HEADER.format(self.count_column), *(STRAND_COLUMNS if self.stranded else ())]
        out.write("\t".join(columns).encode() + b"\n")
        longest_name = max(map(len, self.chromosomes), default=0)
        for first in range(0, len(self), _ROWS_PER_BLOCK):
            block = self._order[first : first + _ROWS_PER_BLOCK]
            texts = int(self._sites.text_size[block].sum(dtype=np.int64))
            rows = np.empty(texts + len(block) * (longest_name + _FIXED_COLUMNS), np.uint8)
            out.write(rows[: format_rows(rows, block, self._sites, self._names, self.stranded)].data)


class SiteTable:
    """Growing hash tables of sites and chromosome names, filled by compiled loops.

    `state` is as in `f5py.site_frequencies.table_reader`; `make_room` replaces `sites` and `names`. Counts of the
    reverse strand take no memory unless `stranded`.
    """

    def __init__(self, stranded: bool = False) -> None:
        self.stranded = stranded
        n = _FIRST_ENTRIES
        self.state = np.zeros(reading.STATE_SIZE, np.int64)
        self.names = NameHash(
            slots=np.full(n * SLOTS_PER_ENTRY, -1), ends=np.zeros(n + 1, np.int64), text=np.empty(n, np.uint8)
        )
        self.sites = SiteHash(
            slots=np.zeros(n * SLOTS_PER_ENTRY, np.int32),
            name=np.empty(n, np.int32),
            span=np.empty(n, np.int64),
            group_size=np.empty(n, np.int32),
            called=np.empty(n, np.int64),
            methylated=np.empty(n, np.int64),
            text_start=np.zeros(n + 1, np.int64),
            text_size=np.zeros(n, np.int32),
            texts=np.empty(n, np.uint8),
            called_reverse=np.zeros(n, np.int64),
            methylated_reverse=np.zeros(n, np.int64),
        )
        # in place of a sequence for sites of split groups
        self.sites.texts[: len(SPLIT_TEXT)] = SPLIT_TEXT
        self.sites.text_start[0] = len(SPLIT_TEXT)

    def make_room(self, text_size: int) -> None:
        """Enlarge full tables so that another row of at most `text_size` bytes fits."""
        sites = self.sites
        n = int(self.state[reading.N_SITES])
        wanted = n + int(self.state[reading.NEEDED])
        if wanted > len(sites.name):
            capacity = len(sites.name)
            while capacity < wanted:
                capacity *= 2
            slots = np.zeros(capacity * SLOTS_PER_ENTRY, np.int32)
            fill_site_slots(slots, sites.name, sites.span, n)
            # one by one, so that at most one array exists twice
            self.sites = sites = sites._replace(slots=slots, text_start=enlarge(sites.text_start, capacity + 1))
            for column in ("name", "span", "group_size", "called", "methylated", "text_size"):
                self.sites = sites = sites._replace(**{column: enlarge(getattr(sites, column), capacity)})
            of_reverse = np.zeros((2, capacity), np.int64)
            if self.stranded:
                of_reverse[:, :n] = sites.called_reverse[:n], sites.methylated_reverse[:n]
            self.sites = sites = sites._replace(called_reverse=of_reverse[0], methylated_reverse=of_reverse[1])
        if sites.text_start[n] + text_size > len(sites.texts):
            self.sites = sites._replace(texts=enlarge(sites.texts, 2 * len(sites.texts) + text_size))
        self.names = enlarge_names(self.names, int(self.state[reading.N_NAMES]), text_size)

    def result(self, count_column: str) -> Frequencies:
        """Return the sites with calls in the order of the output."""
        sites, names = self.sites, self.names
        n_sites = int(self.state[reading.N_SITES])
        chromosomes = list_names(names, int(self.state[reading.N_NAMES]))
        rank = rank_names(chromosomes)
        covered = np.flatnonzero(sites.called[:n_sites])
        return Frequencies(
            count_column=count_column,
            chromosomes=chromosomes,
            odd_groups=int(self.state[reading.NOTABLE]),
            stranded=self.stranded,
            _order=covered[np.lexsort((sites.span[covered], rank[sites.name[covered]]))],
            _sites=sites,
            _names=names,
        )


def enlarge(array: NDArray, size: int) -> NDArray:
    """Return a copy of `size` elements; the additional ones are arbitrary."""
    enlarged = np.empty(size, array.dtype)
    enlarged[: len(array)] = array
    return enlarged


def enlarge_names(names: NameHash, n_names: int, text_size: int) -> NameHash:
    """Return `names` with room for another one of at most `text_size` bytes."""
    if n_names >= len(names.ends) - 1:
        capacity = 2 * n_names
        slots = np.full(capacity * SLOTS_PER_ENTRY, -1)
        fill_table(names.text, names.ends[:n_names], names.ends[1 : n_names + 1], slots)
        names = names._replace(slots=slots, ends=enlarge(names.ends, capacity + 1))
    if names.ends[n_names] + text_size > len(names.text):
        names = names._replace(text=enlarge(names.text, 2 * len(names.text) + text_size))
    return names


def list_names(names: NameHash, n_names: int) -> list[bytes]:
    """Return the names as bytes."""
    ends = names.ends[: n_names + 1].tolist()
    text = names.text[: ends[-1]].tobytes()
    return [text[first:last] for first, last in pairwise(ends)]


def rank_names(names: list[bytes]) -> NDArray[np.int32]:
    """Return the rank of each name in byte order."""
    rank = np.empty(len(names), np.int32)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names), dtype=np.int32)
    return rank


class RegionSums(NamedTuple):
    """Methylation of regions in one sample, shape (n,) each; NaN without sites, or for spreads with one."""

    sites: NDArray[np.int64]
    calls: NDArray[np.int64]
    mean: NDArray[np.float64]  # of the sites' frequencies
    weighted_mean: NDArray[np.float64]  # methylated calls of all calls
    standard_deviation: NDArray[np.float64]  # of the sites' frequencies, with n - 1 in the denominator


@exact_kernel
def sum_sites(first, stop, called, methylated, sums):
    """Fill the sums of regions.

    Parameters
    ----------
    sums : RegionSums
    """
    for region in range(first.shape[0]):
        n_sites, n_calls, n_methylated = stop[region] - first[region], np.int64(0), np.int64(0)
        total = squares = 0.0
        for site in range(first[region], stop[region]):
            n_calls += called[site]
            n_methylated += methylated[site]
            total += methylated[site] / called[site]
        mean = total / n_sites if n_sites else np.nan
        for site in range(first[region], stop[region]):
            difference = methylated[site] / called[site] - mean
            squares += difference * difference
        sums.sites[region], sums.calls[region], sums.mean[region] = n_sites, n_calls, mean
        sums.weighted_mean[region] = n_methylated / n_calls if n_calls else np.nan
        sums.standard_deviation[region] = math.sqrt(squares / (n_sites - 1)) if n_sites > 1 else np.nan


def sums_of_regions(
    frequencies: Frequencies, contigs: list[str], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> RegionSums:
    """Sum the sites or groups that start in each region: 0-based, half-open, perhaps overlapping."""
    sites, names = frequencies.columns(), frequencies.chromosomes
    rank = rank_names(names)
    of_name = {name.decode("utf-8", "surrogateescape"): int(rank[i]) for i, name in enumerate(names)}
    place = rank[sites.chromosome].astype(np.int64) << 32 | sites.start  # ascending
    contig = np.array([of_name.get(name, -1) for name in contigs], np.int64)
    first, stop = (np.searchsorted(place, contig << 32 | bound) for bound in (starts, ends))
    stop = np.where(contig < 0, first, stop)
    kinds = (np.int64, np.int64, np.float64, np.float64, np.float64)
    sums = RegionSums._make(np.empty(len(first), kind) for kind in kinds)
    sum_sites(first, stop, sites.called, sites.methylated, sums)
    return sums
