"""Several tables of methylation frequencies into one, as if their calls had been counted together."""

from __future__ import annotations

from typing import BinaryIO, NoReturn

import numpy as np

from f5py.errors import InputFileError
from f5py.site_frequencies.site_table import HEADERS_OF_FREQUENCIES, STRAND_COLUMNS, Frequencies, SiteTable
from f5py.site_frequencies.table_reader import CHUNK_SIZE, TableReader, header_complaint


class FrequencyMerger:
    """Adds up tables of frequencies, one after the other.

    The key of a site is (chromosome, start, end). Where the tables show different sequences for one key, the longest
    is kept, the first of equally long ones, and the group size with it; ``split-group`` gives way to any sequence.
    Neither the tables nor the rows in them need any order, and a last newline may be missing. Memory grows with the
    number of sites.

    Attributes
    ----------
    count_columns : set of str
        ``"num_motifs"`` and ``"num_cpgs"``: which of them the tables had.
    """

    def __init__(self) -> None:
        self._table = SiteTable()
        self.count_columns: set[str] = set()
        self._last_count_column = ""
        self._is_stranded: bool | None = None

    @property
    def n_conflicts(self) -> int:
        """Rows that showed another sequence than an earlier row of the same key."""
        from f5py.site_frequencies._site_table_numba import NOTABLE

        return int(self._table.state[NOTABLE])

    def add(self, frequencies: BinaryIO, name: str = "standard input", chunk_size: int = CHUNK_SIZE) -> None:
        """Add one table.

        Raises `InputFileError` for another header, or a row that is not one of such a table. The message names the
        line.

        Parameters
        ----------
        frequencies : binary file
            Uncompressed, with its header. Empty lines are passed over, and so are lines that repeat the header.
        """
        from f5py.site_frequencies._frequency_merge_numba import merge_rows

        header = frequencies.readline(max(map(len, HEADERS_OF_FREQUENCIES)) + 2).removesuffix(b"\n")
        if header not in HEADERS_OF_FREQUENCIES:
            other = "not the header of meth-freq; give its table of frequencies, header included"
            complaint = header_complaint(header, HEADERS_OF_FREQUENCIES, "tables that meth-freq writes", other)
            raise InputFileError(f"{name}, line 1: {complaint}")
        self._last_count_column = HEADERS_OF_FREQUENCIES[header]
        self.count_columns.add(self._last_count_column)
        table = self._table
        is_stranded = STRAND_COLUMNS[0].encode() in header
        if self._is_stranded not in (None, is_stranded):
            raise InputFileError(
                f"{name}, line 1: {'has' if is_stranded else 'lacks'} the counts of both strands, unlike the tables "
                "before; make all of them with meth-freq --stranded, or none"
            )
        self._is_stranded = table.stranded = is_stranded
        reader = TableReader(frequencies, header, name, table.state)

        def loop(text: np.ndarray, size: int, _: float | None) -> int:
            return merge_rows(text, size, is_stranded, table.state, table.sites, table.names)

        reader.read(loop, table.make_room, lambda line: _judge(reader, line), chunk_size)

    def result(self) -> Frequencies:
        """Return the sums; the column of group sizes is named as in the last table."""
        return self._table.result(self._last_count_column)


def _judge(reader: TableReader, line: bytes) -> NoReturn:
    """Say what is wrong with a line."""
    from f5py.site_frequencies._site_table_numba import MAX_COUNT

    row = reader.columns(line)
    sizes = [title for title in row if title.endswith("_in_group")]
    for title in ("start", "end", *sizes):
        reader.check_natural(title, row[title])
    for title in ("called_sites", "called_sites_methylated"):
        reader.check_natural(title, row[title], MAX_COUNT)
    called, methylated = int(row["called_sites"]), int(row["called_sites_methylated"])
    if methylated > called:
        reader.refuse(f"{methylated} of {called} sites are methylated; is the file damaged?")
    if STRAND_COLUMNS[0] in row:
        for title in STRAND_COLUMNS:
            reader.check_natural(title, row[title], MAX_COUNT)
        forward, m_forward, reverse, m_reverse = (int(row[title]) for title in STRAND_COLUMNS)
        sums = forward + reverse, m_forward + m_reverse
        if sums != (called, methylated) or m_forward > forward or m_reverse > reverse:
            reader.refuse("the counts of both strands do not fit those of the site; is the file damaged?")
    reader.refuse(f"the counts of this site add up to more than {MAX_COUNT}; is the file damaged?")
