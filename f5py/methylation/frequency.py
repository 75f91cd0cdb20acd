"""Methylation frequency of every site: call rows in, one row per site out.

A call counts when the size of its log-likelihood ratio reaches a threshold, and counts as methylated when the
ratio is above zero. The threshold is not multiplied by the number of motifs in a group, as in f5c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError

if TYPE_CHECKING:
    from f5py.methylation._frequency_numba import Names, Sites

#: Default of the threshold on the log-likelihood ratio.
CALL_THRESHOLD = 2.5

_CHUNK_SIZE = 4 << 20
_LONGEST_LINE = 1 << 28
_ROWS_PER_BLOCK = 1 << 14
_FIRST_ENTRIES = 1 << 10  # a power of two, as the hash tables must be

#: header line -> name of the column of counts; a row has as many columns as its header.
_HEADERS = {
    f"chromosome\t{strand}start\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    f"num_calling_strands\t{count}\tsequence".encode(): count
    for strand in ("strand\t", "")
    for count in ("num_motifs", "num_cpgs")
}
_NATURAL = re.compile(rb"[0-9]{1,10}")
_NEGATIVE = re.compile(rb"-[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:[+-]?(inf|infinity|nan))")


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Counts per site, in the order of the output: by chromosome (bytes), start and end.

    Attributes
    ----------
    count_column : str
        ``"num_motifs"`` or ``"num_cpgs"``, as in the calls.
    chromosomes : list of bytes
        Names by index.
    chromosome : int32, shape (n,)
        Index into `chromosomes`.
    start, end : int64, shape (n,)
        0-based positions of the first bases of the first and the last motif in the group.
    group_size : int32, shape (n,)
        Motifs in the group.
    called, methylated : int64, shape (n,)
        Counted calls, and those of them above zero; a group counts with its size.
    """

    count_column: str
    chromosomes: list[bytes]
    chromosome: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    group_size: NDArray[np.int32]
    called: NDArray[np.int64]
    methylated: NDArray[np.int64]
    _order: NDArray[np.intp]
    _sites: Sites
    _names: Names

    def write(self, out: BinaryIO) -> None:
        """Write the table with its header as tab-separated text."""
        from f5py.methylation._frequency_numba import FIXED_COLUMNS, format_rows

        out.write(
            f"chromosome\tstart\tend\t{self.count_column}_in_group\tcalled_sites\tcalled_sites_methylated\t"
            "methylated_frequency\tgroup_sequence\n".encode()
        )
        longest_name = max(map(len, self.chromosomes), default=0)
        text_ends = self._sites.text_ends
        for first in range(0, len(self._order), _ROWS_PER_BLOCK):
            block = self._order[first : first + _ROWS_PER_BLOCK]
            texts = int((text_ends[block + 1] - text_ends[block]).sum())
            rows = np.empty(texts + len(block) * (longest_name + FIXED_COLUMNS), np.uint8)
            out.write(rows[: format_rows(rows, block, self._sites, self._names)].data)


def methylation_frequency(
    calls: BinaryIO,
    threshold: float = CALL_THRESHOLD,
    split_groups: bool = False,
    name: str = "standard input",
    chunk_size: int = _CHUNK_SIZE,
) -> Frequencies:
    """Count the calls of every site. Memory grows with the number of sites, not with that of calls.

    Parameters
    ----------
    calls : binary file
        The table of calls: header and rows, uncompressed. Runs of tabs count as one; a line that repeats the
        header is skipped, so that tables may be joined with ``cat``.
    threshold : float
        Calls with a smaller absolute ratio are skipped; a ratio that is not a number is not.
    split_groups : bool
        Count every ``CG`` of a group of several motifs as a site of its own. Such a site shows
        ``split-group`` for its sequence if a group was what it was first seen in.
    name : str
        The table's name for messages.
    chunk_size : int
        Bytes that are read at a time; the result does not depend on it.

    Returns
    -------
    Frequencies
        Sites with at least one counted call. Group size and sequence are those of the first counted row.

    Raises
    ------
    InputFileError
        Another header, a row with another number of columns, or a start, end, count or ratio that is not a
        number or out of range. The message names the line.
    """
    header = calls.readline(max(map(len, _HEADERS)) + 1).removesuffix(b"\n")
    if header not in _HEADERS:
        raise InputFileError(f"{name}, line 1: {_header_complaint(header)}")
    counter = _Counter(name, header, threshold, split_groups)
    buffer = bytearray(chunk_size + counter.padding)
    left = 0  # bytes of an incomplete line at the start of the buffer
    while True:
        with memoryview(buffer) as view:
            n_read = calls.readinto(view[left : -counter.padding])  # type: ignore[attr-defined]
        used = left + n_read
        if n_read == 0 and used > 0:
            buffer[used] = ord("\n")
            used += 1
        whole = buffer.rfind(b"\n", 0, used) + 1
        counter.count(buffer, whole)
        left = used - whole
        buffer[:left] = buffer[whole:used]
        if n_read == 0:
            return counter.result()
        if left == len(buffer) - counter.padding:
            if left > _LONGEST_LINE:
                counter.refuse(f"longer than {_LONGEST_LINE} bytes; is this a table of calls?")
            buffer += bytes(left)


def _header_complaint(header: bytes) -> str:
    """Return what is wrong with the first line."""
    if not header:
        return "no header; give the table that call-methylation writes"
    if header.removesuffix(b"\r") in _HEADERS:
        return "the header ends with a carriage return; convert the line ends with tr -d '\\r'"
    return "not the header of call-methylation; give its table of calls, header included"


class _Counter:
    """The growing tables of sites and chromosome names."""

    def __init__(self, name: str, header: bytes, threshold: float, split_groups: bool) -> None:
        from f5py.methylation import _frequency_numba as jit

        self._jit = jit
        #: Bytes that the buffer of `count` must have behind the text, the first for a last newline.
        self.padding = jit.PADDING + 1
        self._name = name
        self._header = header
        self._n_columns = header.count(b"\t") + 1
        self._threshold = threshold
        self._split_groups = split_groups
        self._state = np.zeros(jit.STATE_SIZE, np.int64)
        self._state[jit.LINE] = 2
        n = _FIRST_ENTRIES
        self._sites = jit.Sites(
            slots=np.zeros(n * jit.SLOTS_PER_ENTRY, np.int32),
            name=np.empty(n, np.int32),
            span=np.empty(n, np.int64),
            group_size=np.empty(n, np.int32),
            called=np.empty(n, np.int64),
            methylated=np.empty(n, np.int64),
            text_ends=np.zeros(n + 1, np.int64),
            texts=np.empty(n, np.uint8),
        )
        self._names = jit.Names(
            slots=np.zeros(n * jit.SLOTS_PER_ENTRY, np.int32),
            ends=np.zeros(n + 1, np.int64),
            text=np.empty(n, np.uint8),
        )

    def count(self, buffer: bytearray, size: int) -> None:
        """Count the rows in the first `size` bytes, which are whole lines; `padding` bytes must follow."""
        jit, state = self._jit, self._state
        text = np.frombuffer(buffer, np.uint8)
        odd_ratio: float | None = None
        state[jit.AT] = 0
        while True:
            at = int(state[jit.AT])
            status = jit.count_rows(
                text,
                size,
                self._n_columns,
                self._threshold,
                self._split_groups,
                0.0 if odd_ratio is None else odd_ratio,
                odd_ratio is not None,
                state,
                self._sites,
                self._names,
            )
            if status == jit.DONE:
                return
            if at != state[jit.AT]:
                odd_ratio = None  # it was the ratio of the row at which the loop started
            if status == jit.FULL:
                self._grow(text_size=size)
                continue
            at = int(state[jit.AT])
            line = bytes(buffer[at : buffer.index(b"\n", at)])
            if line == self._header:
                state[jit.AT] += len(line) + 1
                state[jit.LINE] += 1
            else:
                odd_ratio = self._judge(line)

    def _grow(self, text_size: int) -> None:
        """Make room for the row that did not fit, and enlarge whatever is nearly full by at least a half."""
        jit, sites, names = self._jit, self._sites, self._names
        n = int(self._state[jit.N_SITES])
        wanted = n + int(self._state[jit.NEEDED_SITES])
        if wanted > len(sites.name):
            capacity = len(sites.name)
            while capacity < wanted:
                capacity *= 2
            slots = np.zeros(capacity * jit.SLOTS_PER_ENTRY, np.int32)
            jit.fill_site_slots(slots, sites.name, sites.span, n)
            sites = sites._replace(
                slots=slots,
                text_ends=_longer(sites.text_ends, capacity + 1),
                **{
                    column: _longer(getattr(sites, column), capacity)
                    for column in ("name", "span", "group_size", "called", "methylated")
                },
            )
        # no row holds more text than all of them
        if sites.text_ends[n] + text_size > len(sites.texts):
            sites = sites._replace(texts=_longer(sites.texts, 2 * len(sites.texts) + text_size))
        n = int(self._state[jit.N_NAMES])
        if n >= len(names.ends) - 1:
            capacity = 2 * n
            slots = np.zeros(capacity * jit.SLOTS_PER_ENTRY, np.int32)
            jit.fill_name_slots(slots, names.ends, names.text, n)
            names = names._replace(slots=slots, ends=_longer(names.ends, capacity + 1))
        if names.ends[n] + text_size > len(names.text):
            names = names._replace(text=_longer(names.text, 2 * len(names.text) + text_size))
        self._sites, self._names = sites, names

    def _judge(self, line: bytes) -> float:
        """Return the ratio of a row that the compiled loop leaves to Python, or raise if the row is wrong."""
        columns = [column for column in line.split(b"\t") if column]
        if len(columns) != self._n_columns:
            if not line:
                self.refuse("empty; is the file damaged?")
            relation = "fewer" if len(columns) < self._n_columns else "more"
            self.refuse(f"{len(columns)} columns, {relation} than the header's {self._n_columns}; is the file damaged?")
        titles = [title.decode() for title in self._header.split(b"\t")]
        row = dict(zip(titles, columns, strict=True))
        limit = self._jit.MAX_INT
        for title in ("start", "end", _HEADERS[self._header]):
            value = row[title]
            shown = f"{title} is {value[:40].decode(errors='replace')!r}"
            if _NEGATIVE.fullmatch(value):
                self.refuse(f"{shown}, which is negative; is the file damaged?")
            if not _NATURAL.fullmatch(value) or int(value) > limit:
                self.refuse(f"{shown}, not a whole number from 0 to {limit}; is the file damaged?")
        ratio = row["log_lik_ratio"]
        if not _NUMBER.fullmatch(ratio):
            shown = ratio[:40].decode(errors="replace")
            self.refuse(f"log_lik_ratio is {shown!r}, which is not a number; is the file damaged?")
        if self._split_groups and int(row["start"]) + len(row["sequence"]) > limit:
            self.refuse(f"the group reaches beyond position {limit}; is the file damaged?")
        return float(ratio)

    def refuse(self, why: str) -> NoReturn:
        """Raise with the number of the present line."""
        raise InputFileError(f"{self._name}, line {self._state[self._jit.LINE]}: {why}")

    def result(self) -> Frequencies:
        """Return all sites with calls in the order of the output."""
        jit, sites, names = self._jit, self._sites, self._names
        n_sites, n_names = int(self._state[jit.N_SITES]), int(self._state[jit.N_NAMES])
        ends = names.ends[: n_names + 1].tolist()
        text = names.text[: ends[-1]].tobytes()
        chromosomes = [text[first:last] for first, last in pairwise(ends)]
        rank = np.empty(n_names, np.int32)
        rank[sorted(range(n_names), key=chromosomes.__getitem__)] = np.arange(n_names, dtype=np.int32)
        covered = np.flatnonzero(sites.called[:n_sites])
        order = covered[np.lexsort((sites.span[covered], rank[sites.name[covered]]))]
        span = sites.span[order]
        return Frequencies(
            count_column=_HEADERS[self._header],
            chromosomes=chromosomes,
            chromosome=sites.name[order],
            start=span >> 32,
            end=span & jit.MAX_INT,
            group_size=sites.group_size[order],
            called=sites.called[order],
            methylated=sites.methylated[order],
            _order=order,
            _sites=sites,
            _names=names,
        )


def _longer(array: NDArray, size: int) -> NDArray:
    """Return a copy with room for `size` elements; what follows the old ones is arbitrary."""
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer
