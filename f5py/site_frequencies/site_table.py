"""Tables of sites that grow while rows of text are counted into them, and the frequencies they end as."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.site_frequencies.table_reader import MAX_POSITION

if TYPE_CHECKING:
    from f5py.core.motifs import Motif
    from f5py.io.files.output import TextOutput
    from f5py.site_frequencies._site_table_numba import Names, Sites

#: Columns of a table of frequencies; the fourth is named after the one of the calls.
FREQUENCY_HEADER = (
    "chromosome\tstart\tend\t{}_in_group\tcalled_sites\tcalled_sites_methylated\tmethylated_frequency\tgroup_sequence"
)
#: Further columns of one with the counts of both strands.
STRAND_COLUMNS = (
    "called_sites_forward", "called_sites_methylated_forward",
    "called_sites_reverse", "called_sites_methylated_reverse",
)  # fmt: skip
#: Header lines of tables of frequencies -> name of the column of counts in the calls.
HEADERS_OF_FREQUENCIES = {
    "\t".join([FREQUENCY_HEADER.format(count), *strands]).encode(): count
    for count in ("num_motifs", "num_cpgs")
    for strands in (STRAND_COLUMNS, ())
}

#: From a motif's first one on: the shortest k-mers of a pore model.
_SHOWN_BASES = 5
_ROWS_PER_BLOCK = 1 << 14
_FIRST_ENTRIES = 1 << 10  # a power of two, as the hash tables must be


class FrequencyColumns(NamedTuple):
    """Some sites of a `Frequencies`, as arrays of one length."""

    chromosome: NDArray[np.int32]  # index into its `chromosomes`
    # start, end: 0-based positions of the first bases of the first and the last motif in the group
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    group_size: NDArray[np.int32]  # motifs in the group
    # called, methylated: counted calls, and those of them above zero; a group counts with its size
    called: NDArray[np.int64]
    methylated: NDArray[np.int64]
    # text_start, text_size: where the group's sequence, or ``split-group``, is in the `texts`
    text_start: NDArray[np.int64]
    text_size: NDArray[np.int32]
    # called_reverse, methylated_reverse: those of the reverse strand, if strands are counted apart
    called_reverse: NDArray[np.int64]
    methylated_reverse: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Counts per site, in the order of the output: by chromosome (bytes), start and end."""

    count_column: str  # ``"num_motifs"`` or ``"num_cpgs"``, as in the calls
    chromosomes: list[bytes]  # names by index
    odd_groups: int  # rows of groups that were split into another number of sites than they said
    stranded: bool  # whether the counts of both strands are shown apart, too
    _order: NDArray[np.intp]
    _sites: Sites
    _names: Names

    def __len__(self) -> int:
        return len(self._order)

    @property
    def texts(self) -> NDArray[np.uint8]:
        """The sequences of all sites, in no order."""
        return self._sites.texts

    def calls(self) -> tuple[int, int]:
        """Count the calls of single sites, and how many of them say methylated."""
        return int(self._sites.called[self._order].sum()), int(self._sites.methylated[self._order].sum())

    def covered(self, least: int) -> Frequencies:
        """Select the sites with at least so many calls; a group's calls count for each of its sites."""
        needed = least * self._sites.group_size[self._order].astype(np.int64)
        return replace(self, _order=self._order[self._sites.called[self._order] >= needed])

    def columns(self, first: int = 0, last: int | None = None) -> FrequencyColumns:
        """Return the sites from `first` up to `last`, or to the end, as arrays."""
        from f5py.site_frequencies._site_table_numba import SPLIT_TEXT

        sites, which = self._sites, self._order[first:last]
        size = sites.text_size[which]
        return FrequencyColumns(
            sites.name[which],
            sites.span[which] >> 32,
            sites.span[which] & MAX_POSITION,
            sites.group_size[which],
            sites.called[which],
            sites.methylated[which],
            np.where(size == 0, 0, sites.text_start[which]),
            np.where(size == 0, np.int32(len(SPLIT_TEXT)), size),
            sites.called_reverse[which],
            sites.methylated_reverse[which],
        )

    def count_without(self, motif: Motif) -> int:
        """Count the rows with a sequence that holds fewer sites of a motif than they say.

        None for a motif that is longer than the bases that sequences surely show of it.
        """
        from f5py.site_frequencies._frequency_numba import count_without_sites
        from f5py.site_frequencies._site_table_numba import PADDING

        if len(motif.pattern) > _SHOWN_BASES:
            return 0
        sites, which = self._sites, self._order
        text = np.concatenate((sites.texts, np.zeros(PADDING, np.uint8)))
        return int(
            count_without_sites(
                text, sites.text_start[which], sites.text_size[which], sites.span[which] >> 32,
                sites.span[which] & MAX_POSITION, sites.group_size[which], motif.codes(False).masks,
                motif.codes(True).masks,
            )
        )  # fmt: skip

    def write(self, out: TextOutput) -> None:
        """Write the table with its header as tab-separated text."""
        from f5py.site_frequencies._site_table_numba import FIXED_COLUMNS, format_rows

        columns = [FREQUENCY_HEADER.format(self.count_column), *(STRAND_COLUMNS if self.stranded else ())]
        out.write("\t".join(columns).encode() + b"\n")
        longest_name = max(map(len, self.chromosomes), default=0)
        for first in range(0, len(self), _ROWS_PER_BLOCK):
            block = self._order[first : first + _ROWS_PER_BLOCK]
            texts = int(self._sites.text_size[block].sum(dtype=np.int64))
            rows = np.empty(texts + len(block) * (longest_name + FIXED_COLUMNS), np.uint8)
            out.write(rows[: format_rows(rows, block, self._sites, self._names, self.stranded)].data)


class SiteTable:
    """Hash tables of sites and chromosome names that compiled loops fill.

    Parameters
    ----------
    stranded : bool
        Whether strands are counted apart; else their counts are never written, and take no memory.

    Attributes
    ----------
    state : int64
        Where the loop is and how full the tables are; see `_site_table_numba`.
    sites, names
        The tables; replaced by larger ones by `make_room`.
    """

    def __init__(self, stranded: bool = False) -> None:
        from f5py.site_frequencies import _site_table_numba as jit

        self._jit = jit
        self.stranded = stranded
        n = _FIRST_ENTRIES
        self.state = np.zeros(jit.STATE_SIZE, np.int64)
        self.names = jit.Names(
            slots=np.zeros(n * jit.SLOTS_PER_ENTRY, np.int32),
            ends=np.zeros(n + 1, np.int64),
            text=np.empty(n, np.uint8),
        )
        self.sites = jit.Sites(
            slots=np.zeros(n * jit.SLOTS_PER_ENTRY, np.int32),
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
        # what stands for the sequence of a site that was split from a group
        self.sites.texts[: len(jit.SPLIT_TEXT)] = jit.SPLIT_TEXT
        self.sites.text_start[0] = len(jit.SPLIT_TEXT)

    def make_room(self, text_size: int) -> None:
        """Make room for the row that did not fit, and enlarge whatever is nearly full by at least a half.

        Parameters
        ----------
        text_size : int
            Bytes of all rows at hand.
        """
        jit, sites = self._jit, self.sites
        n = int(self.state[jit.N_SITES])
        wanted = n + int(self.state[jit.NEEDED])
        if wanted > len(sites.name):
            capacity = len(sites.name)
            while capacity < wanted:
                capacity *= 2
            slots = np.zeros(capacity * jit.SLOTS_PER_ENTRY, np.int32)
            jit.fill_site_slots(slots, sites.name, sites.span, n)
            # one by one, so that no more than one array is there twice
            self.sites = sites = sites._replace(slots=slots, text_start=longer(sites.text_start, capacity + 1))
            for column in ("name", "span", "group_size", "called", "methylated", "text_size"):
                self.sites = sites = sites._replace(**{column: longer(getattr(sites, column), capacity)})
            of_reverse = np.zeros((2, capacity), np.int64)
            if self.stranded:
                of_reverse[:, :n] = sites.called_reverse[:n], sites.methylated_reverse[:n]
            self.sites = sites = sites._replace(called_reverse=of_reverse[0], methylated_reverse=of_reverse[1])
        # no row holds more text than all of them
        if sites.text_start[n] + text_size > len(sites.texts):
            self.sites = sites._replace(texts=longer(sites.texts, 2 * len(sites.texts) + text_size))
        self.names = longer_names(self.names, int(self.state[jit.N_NAMES]), text_size)

    def result(self, count_column: str) -> Frequencies:
        """Return all sites with calls in the order of the output."""
        jit, sites, names = self._jit, self.sites, self.names
        n_sites = int(self.state[jit.N_SITES])
        chromosomes = name_list(names, int(self.state[jit.N_NAMES]))
        rank = name_ranks(chromosomes)
        covered = np.flatnonzero(sites.called[:n_sites])
        return Frequencies(
            count_column=count_column,
            chromosomes=chromosomes,
            odd_groups=int(self.state[jit.NOTABLE]),
            stranded=self.stranded,
            _order=covered[np.lexsort((sites.span[covered], rank[sites.name[covered]]))],
            _sites=sites,
            _names=names,
        )


def longer(array: NDArray, size: int) -> NDArray:
    """Return a copy with room for `size` elements; what follows the old ones is arbitrary."""
    enlarged = np.empty(size, array.dtype)
    enlarged[: len(array)] = array
    return enlarged


def longer_names(names: Names, n_names: int, text_size: int) -> Names:
    """Return `names` with room for one more, which is at most `text_size` bytes long."""
    from f5py.site_frequencies import _site_table_numba as jit

    if n_names >= len(names.ends) - 1:
        capacity = 2 * n_names
        slots = np.zeros(capacity * jit.SLOTS_PER_ENTRY, np.int32)
        jit.fill_name_slots(slots, names.ends, names.text, n_names)
        names = names._replace(slots=slots, ends=longer(names.ends, capacity + 1))
    if names.ends[n_names] + text_size > len(names.text):
        names = names._replace(text=longer(names.text, 2 * len(names.text) + text_size))
    return names


def name_list(names: Names, n_names: int) -> list[bytes]:
    """Return the names as Python objects."""
    ends = names.ends[: n_names + 1].tolist()
    text = names.text[: ends[-1]].tobytes()
    return [text[first:last] for first, last in pairwise(ends)]


def name_ranks(names: list[bytes]) -> NDArray[np.int32]:
    """Place of each name in the order of bytes; int32."""
    rank = np.empty(len(names), np.int32)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names), dtype=np.int32)
    return rank
