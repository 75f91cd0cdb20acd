"""Merging of tables of methylation frequencies, as if their calls were counted together."""

from typing import BinaryIO, NoReturn

import numpy as np

import f5py.site_frequencies.table_reader as reading
from f5py.errors import InputFileError
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.site_frequencies.site_table import (
    HEADERS_OF_FREQUENCIES,
    SLOTS_PER_ENTRY,
    SPLIT_TEXT,
    STRAND_COLUMNS,
    Frequencies,
    SiteTable,
    find_site,
    number_name,
)
from f5py.text._bytes_numba import LANES

N_COLUMNS, N_STRANDED_COLUMNS = 8, 12
_CHROMOSOME, _START, _END, _SIZE, _CALLED, _METHYLATED, _SHARE, _SEQUENCE = range(N_COLUMNS)
#: First columns of the counts of each strand: calls, methylated calls.
_FORWARD, _REVERSE = N_COLUMNS, N_COLUMNS + 2


@exact_inner
def _counts_of_strand(text, starts, ends, column):
    """Parse the calls and methylated calls of a strand; return -1 twice for impossible ones."""
    called = reading.natural(text, starts[column], ends[column], reading.MAX_COUNT)
    methylated = reading.natural(text, starts[column + 1], ends[column + 1], reading.MAX_COUNT)
    if called < 0 or methylated < 0 or methylated > called:
        return np.int64(-1), np.int64(-1)
    return called, methylated


@exact_kernel
def merge_rows(text, end, stranded, state, sites, names):
    """Add the counts of the whole lines ``text[state[AT]:end]``; return `DONE`, `FULL` or `UNUSUAL`.

    Parameters
    ----------
    text : uint8
        `PADDING` bytes longer than `end`.
    stranded : bool
        Rows have the counts of both strands.
    state : int64, shape (STATE_SIZE,)
        ``state[NOTABLE]`` counts rows with another sequence than an earlier row of the same key.
    """
    starts, ends = np.empty(reading.MAX_COLUMNS, np.int64), np.empty(reading.MAX_COLUMNS, np.int64)
    slots, site_names, spans, group_sizes, called, methylated, text_starts, text_sizes, texts = sites[:9]
    n_columns = N_STRANDED_COLUMNS if stranded else N_COLUMNS
    name_slots, name_ends, name_text = names
    name_begin, name_end = name_ends[:-1], name_ends[1:]
    at, line, n_sites, n_names = state[reading.AT], state[reading.LINE], state[reading.N_SITES], state[reading.N_NAMES]
    text_end = text_starts[n_sites]
    name, site = np.int64(-1), np.int64(-1)
    status = reading.DONE
    block, separators = at - LANES, np.uint64(0)
    while at < end:
        columns, newline, block, separators = reading.next_row(text, at, block, separators, starts, ends)
        if columns == 0:
            line += 1
            at = newline + 1
            continue
        if columns != n_columns:
            status = reading.UNUSUAL
            break
        start = reading.natural(text, starts[_START], ends[_START], reading.MAX_POSITION)
        last = reading.natural(text, starts[_END], ends[_END], reading.MAX_POSITION)
        size = reading.natural(text, starts[_SIZE], ends[_SIZE], reading.MAX_POSITION)
        n_called = reading.natural(text, starts[_CALLED], ends[_CALLED], reading.MAX_COUNT)
        n_methylated = reading.natural(text, starts[_METHYLATED], ends[_METHYLATED], reading.MAX_COUNT)
        if start < 0 or last < 0 or size < 0 or n_called < 0 or n_methylated < 0 or n_methylated > n_called:
            status = reading.UNUSUAL
            break
        n_reverse = m_reverse = np.int64(0)
        if stranded:
            n_forward, m_forward = _counts_of_strand(text, starts, ends, _FORWARD)
            n_reverse, m_reverse = _counts_of_strand(text, starts, ends, _REVERSE)
            adds_up = n_forward + n_reverse == n_called and m_forward + m_reverse == n_methylated
            if n_forward < 0 or n_reverse < 0 or not adds_up:
                status = reading.UNUSUAL
                break
        first, stop = starts[_SEQUENCE], ends[_SEQUENCE]
        if (
            (n_sites + 1) * SLOTS_PER_ENTRY > slots.shape[0]
            or (n_names + 1) * SLOTS_PER_ENTRY > name_slots.shape[0]
            or text_end + stop - first > texts.shape[0]
            or name_ends[n_names] + ends[0] - starts[0] > name_text.shape[0]
        ):
            state[reading.NEEDED] = 1
            status = reading.FULL
            break
        if name < 0 or not reading.same_text(name_text, name_ends[name], name_ends[name + 1], text, starts[0], ends[0]):
            name = number_name(name_slots, name_begin, name_end, name_text, n_names, text, starts[0], ends[0])
            n_names = max(n_names, name + 1)
        site = find_site(slots, site_names, spans, n_sites, site + 1, name, start << 32 | last)
        is_split = reading.same_text(text, first, stop, SPLIT_TEXT, 0, SPLIT_TEXT.shape[0])
        length = np.int64(0 if is_split else stop - first)
        begin, known = text_starts[site], np.int64(0)
        replace = site == n_sites
        if replace:
            n_sites += 1
            called[site] = methylated[site] = 0
        elif length > 0:
            known = np.int64(text_sizes[site])
            if known == 0:
                replace = True  # "split-group": the sequence is unknown
            elif not reading.same_text(text, first, stop, texts, begin, begin + known):
                state[reading.NOTABLE] += 1
                replace = length > known
        if replace:
            group_sizes[site] = size
            text_starts[site] = text_end
            text_sizes[site] = length
            for i in range(length):
                texts[text_end + i] = text[first + i]
            text_end += length
        text_starts[n_sites] = text_end
        if n_called > reading.MAX_COUNT - called[site]:
            status = reading.UNUSUAL
            break
        called[site] += n_called
        methylated[site] += n_methylated
        if stranded:
            sites.called_reverse[site] += n_reverse
            sites.methylated_reverse[site] += m_reverse
        line += 1
        at = newline + 1
    state[reading.AT], state[reading.LINE], state[reading.N_SITES], state[reading.N_NAMES] = at, line, n_sites, n_names
    return status


def is_frequency_header(beginning: bytes) -> bool:
    """Return whether a text begins with the header of a table of frequencies."""
    return beginning.partition(b"\n")[0] in HEADERS_OF_FREQUENCIES


class FrequencyMerger:
    """Sum of tables of frequencies, in any order.

    The key of a site is (chromosome, start, end). Of different sequences for one key the first of the longest is kept,
    with its group size; any sequence replaces ``split-group``. Memory grows with the number of sites. `count_columns`
    are those of ``"num_motifs"`` and ``"num_cpgs"`` in the tables.
    """

    def __init__(self) -> None:
        self._table = SiteTable()
        self.count_columns: set[str] = set()
        self._last_count_column = ""
        self._is_stranded: bool | None = None

    @property
    def n_conflicts(self) -> int:
        """Number of rows with another sequence than an earlier row of the same key."""
        return int(self._table.state[reading.NOTABLE])

    def add(self, frequencies: BinaryIO, name: str = "standard input", chunk_size: int = reading.CHUNK_SIZE) -> None:
        """Add an uncompressed table; empty lines and repeated headers are skipped."""
        header = frequencies.readline(max(map(len, HEADERS_OF_FREQUENCIES)) + 2).removesuffix(b"\n")
        if header not in HEADERS_OF_FREQUENCIES:
            other = "not the header of meth-freq; give its table of frequencies, header included"
            complaint = reading.header_complaint(header, HEADERS_OF_FREQUENCIES, "tables that meth-freq writes", other)
            raise InputFileError(f"{name}, line 1: {complaint}")
        self._last_count_column = HEADERS_OF_FREQUENCIES[header]
        self.count_columns.add(self._last_count_column)
        is_stranded = STRAND_COLUMNS[0].encode() in header
        if self._is_stranded not in (None, is_stranded):
            raise InputFileError(
                f"{name}, line 1: {'has' if is_stranded else 'lacks'} the counts of both strands, unlike the tables "
                "before; make all of them with meth-freq --stranded, or none"
            )
        if self._is_stranded is None:
            self._is_stranded, self._table = is_stranded, SiteTable(is_stranded)
        table = self._table
        reader = reading.TableReader(frequencies, header, name, table.state)

        def loop(text: np.ndarray, size: int, _: float | None) -> int:
            return merge_rows(text, size, is_stranded, table.state, table.sites, table.names)

        reader.read(loop, table.make_room, lambda line: _check_row(reader, line), chunk_size)

    def result(self) -> Frequencies:
        """Return the sums, with the count column of the last table."""
        return self._table.result(self._last_count_column)


def _check_row(reader: reading.TableReader, line: bytes) -> NoReturn:
    """Raise `InputFileError` for a line."""
    row = reader.columns(line)
    sizes = [title for title in row if title.endswith("_in_group")]
    for title in ("start", "end", *sizes):
        reader.check_natural(title, row[title])
    for title in ("called_sites", "called_sites_methylated"):
        reader.check_natural(title, row[title], reading.MAX_COUNT)
    called, methylated = int(row["called_sites"]), int(row["called_sites_methylated"])
    if methylated > called:
        reader.reject(f"{methylated} of {called} sites are methylated; is the file damaged?")
    if STRAND_COLUMNS[0] in row:
        for title in STRAND_COLUMNS:
            reader.check_natural(title, row[title], reading.MAX_COUNT)
        forward, m_forward, reverse, m_reverse = (int(row[title]) for title in STRAND_COLUMNS)
        sums = forward + reverse, m_forward + m_reverse
        if sums != (called, methylated) or m_forward > forward or m_reverse > reverse:
            reader.reject("the counts of both strands do not fit those of the site; is the file damaged?")
    reader.reject(f"the counts of this site add up to more than {reading.MAX_COUNT}; is the file damaged?")
