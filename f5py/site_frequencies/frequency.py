"""Methylation frequency of every site: call rows in, counts per site out.

A call counts when the size of its log-likelihood ratio reaches a threshold, and counts as methylated when the
ratio is above zero. The threshold is not multiplied by the number of motifs in a group, as in f5c, unless asked
for, as nanopolish does.

For 2 GB of calls `f5py meth-freq` takes 3.7 s of processor time and 244 MB, where polars takes 5.5 s and 510 MB (from a
pipe 4.6 s and 243 MB against 7.2 s and 2.3 GB) and pyarrow 9.1 s and 1.1 GB (benchmarks/results/meth_freq.md).
"""

from __future__ import annotations

import re
from typing import BinaryIO

import numpy as np

from f5py.core.motifs import Motif, motif_named
from f5py.errors import F5pyError, InputFileError
from f5py.options.shared import CALL_THRESHOLD
from f5py.site_frequencies.site_counts import SiteCounts
from f5py.site_frequencies.site_table import Frequencies, SiteTable, longer, longer_names, name_list
from f5py.site_frequencies.table_reader import (
    CHUNK_SIZE,
    MAX_POSITION,
    Place,
    TableReader,
    header_complaint,
    place_of,
    shown,
)

_FIRST_LISTED = 1 << 16

#: header line -> name of the column of counts; a row has as many columns as its header.
_HEADERS = {
    f"chromosome\t{strand}start\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    f"num_calling_strands\t{count}\tsequence".encode(): count
    for strand in ("strand\t", "")
    for count in ("num_motifs", "num_cpgs")
}
#: Header lines of tables of calls.
HEADERS_OF_CALLS = tuple(_HEADERS)
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:[+-]?(inf|infinity|nan))")


def methylation_frequency(
    calls: BinaryIO,
    threshold: float = CALL_THRESHOLD,
    split_groups: bool = False,
    name: Place = "standard input",
    chunk_size: int = CHUNK_SIZE,
    threshold_per_site: bool = False,
    motif: Motif | None = None,
    stranded: bool = False,
) -> Frequencies:
    """Count the calls of every site. Memory grows with the number of sites, not with that of calls.

    Raises `InputFileError` for another header, a row with another number of columns, or a start, end, count or ratio
    that is not a number or out of range. The message names the line. Sites have at least one counted call; group size
    and sequence are those of the first counted row.

    Parameters
    ----------
    calls : binary file
        The table of calls: header and rows, uncompressed. Runs of tabs count as one; a line that repeats the
        header is skipped, so that tables may be joined with ``cat``.
    threshold : float
        Calls with a smaller absolute ratio are skipped; a ratio that is not a number is not.
    split_groups : bool
        Count every motif of a group of several as a site of its own. Such a site shows ``split-group`` for its
        sequence if a group was what it was first seen in.
    name : str or callable
        The table's name for messages, or what says where a line stands, see `place_of`.
    chunk_size : int
        Bytes that are read at a time; the result does not depend on it.
    threshold_per_site : bool
        Multiply the threshold by the number of motifs in the group, which is nanopolish's rule.
    motif : Motif, optional
        What to split groups at; CpG by default.
    stranded : bool
        Count the calls of the reverse strand apart, too, for which there must be a column of strands.
    """
    from f5py.site_frequencies._frequency_numba import Counting, count_rows

    header = _read_header(calls, name)
    table = SiteTable(stranded)
    reader = TableReader(calls, header, name, table.state)
    motif = motif or motif_named("cpg")
    masks = motif.codes(False).masks, motif.codes(True).masks
    counting = Counting(header.count(b"\t") + 1, threshold, threshold_per_site, split_groups, stranded, *masks)
    needed_by = "--stranded" if stranded else motif.name if split_groups and not motif.is_palindromic else ""
    if needed_by and b"\tstrand\t" not in header:
        raise InputFileError(
            f"{place_of(name, 1)}: no column of strands, which {needed_by} needs; call with --meth-out-version 2"
        )

    def loop(text: np.ndarray, size: int, odd_ratio: float | None) -> int:
        return count_rows(
            text, size, counting, 0.0 if odd_ratio is None else odd_ratio, odd_ratio is not None, table.state,
            table.sites, table.names,
        )  # fmt: skip

    reader.read(loop, table.make_room, lambda line: _judge(reader, line, split_groups, stranded), chunk_size)
    return table.result(_HEADERS[header])


def site_counts(
    calls: BinaryIO,
    motif: Motif,
    threshold: float = CALL_THRESHOLD,
    threshold_per_site: bool = False,
    combine_strands: bool = False,
    name: Place = "standard input",
    chunk_size: int = CHUNK_SIZE,
) -> tuple[SiteCounts, list[bytes]]:
    """Count methylated, unmethylated and too uncertain calls of every single site and strand.

    Raises `InputFileError` as `methylation_frequency`, and for a sequence that does not hold as many motifs as its row
    says, a strand other than ``+`` and ``-``, or a missing strand column. Also returns the names by contig index.

    Parameters
    ----------
    calls, threshold, threshold_per_site, name, chunk_size
        As in `methylation_frequency`.
    combine_strands : bool
        Count both strands as one. A table without a strand column cannot be counted otherwise.
    """
    from f5py.site_frequencies import _site_table_numba as jit
    from f5py.site_frequencies._frequency_numba import OTHER_SITES, Counting, Listed, list_sites

    header = _read_header(calls, name)
    if b"\tstrand\t" not in header and not combine_strands:
        raise InputFileError(
            f"{place_of(name, 1)}: no column of strands; add --combine-strands, or call with --meth-out-version 2"
        )
    if combine_strands:
        check_combinable(motif)
    counts = SiteCounts(threshold, threshold_per_site, combine_strands)
    state = np.zeros(jit.STATE_SIZE, np.int64)
    names = SiteTable().names
    types = (np.int32, np.int64, np.bool_, np.float64, np.int32)
    listed = Listed._make(np.empty(_FIRST_LISTED, dtype) for dtype in types)
    reader = TableReader(calls, header, name, state)
    masks = motif.codes(False).masks, motif.codes(True).masks
    counting = Counting(header.count(b"\t") + 1, threshold, threshold_per_site, True, False, *masks)

    def flush() -> None:
        n = state[jit.N_SITES]
        counts.add(listed.contig[:n], listed.start[:n], listed.reverse[:n], listed.ratio[:n], None, listed.size[:n])
        state[jit.N_SITES] = 0

    def loop(text: np.ndarray, size: int, odd_ratio: float | None) -> int:
        status = list_sites(
            text, size, counting, 0.0 if odd_ratio is None else odd_ratio, odd_ratio is not None, state, names, listed,
        )  # fmt: skip
        if status == OTHER_SITES:
            reader.refuse(
                f"the sequence does not hold the sites of {motif.name} that the row counts; "
                "name the motif of these calls (-q or --motif)"
            )
        return status

    def make_room(text_size: int) -> None:
        nonlocal listed, names
        flush()
        needed = int(state[jit.NEEDED])
        if needed > len(listed.contig):
            listed = Listed._make(longer(array, 2 * needed) for array in listed)
        names = longer_names(names, int(state[jit.N_NAMES]), text_size)

    reader.read(loop, make_room, lambda line: _judge(reader, line, True, need_strand=True), chunk_size)
    flush()
    return counts, name_list(names, int(state[jit.N_NAMES]))


def check_combinable(motif: Motif) -> None:
    """Raise `F5pyError` unless both strands of a motif have their sites at the same places."""
    if not motif.is_palindromic:
        raise F5pyError(f"the strands of {motif.name} have their sites at different places; they cannot be combined")


def _read_header(calls: BinaryIO, name: Place) -> bytes:
    """Return the first line without its end; raises unless it is a header."""
    header = calls.readline(max(map(len, _HEADERS)) + 1).removesuffix(b"\n")
    if header not in _HEADERS:
        raise InputFileError(f"{place_of(name, 1)}: {_header_complaint(header)}")
    return header


def _header_complaint(header: bytes) -> str:
    """Return what is wrong with the first line."""
    names, newest = header.split(b"\t"), next(iter(_HEADERS)).split(b"\t")
    other = "not the header of call-methylation; give its table of calls, header included"
    if b"log_lik_ratio" in names and (missing := [name for name in newest if name not in names]):
        other = f"has no column {missing[0].decode()}; give the table of call-methylation with all of its columns"
    return header_complaint(header, _HEADERS, "the table that call-methylation writes", other)


def _judge(reader: TableReader, line: bytes, split_groups: bool, need_strand: bool = False) -> float:
    """Return the ratio of a row that the compiled loop leaves to Python, or raise if the row is wrong."""
    row = reader.columns(line)
    count = "num_motifs" if "num_motifs" in row else "num_cpgs"
    for title in ("start", "end", count):
        reader.check_natural(title, row[title])
    ratio = row["log_lik_ratio"]
    if not _NUMBER.fullmatch(ratio):
        reader.refuse(f"log_lik_ratio is {shown(ratio)}, which is not a number; is the file damaged?")
    if split_groups and int(row["start"]) + len(row["sequence"]) > MAX_POSITION:
        reader.refuse(f"the group reaches beyond position {MAX_POSITION}; is the file damaged?")
    if need_strand and row.get("strand", b"+") not in (b"+", b"-"):
        reader.refuse(f"strand is {shown(row['strand'])}, neither + nor -; is the file damaged?")
    return float(ratio)
