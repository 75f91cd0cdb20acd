"""Methylation frequencies as Parquet or Arrow tables, as tracks of genome browsers, and as tables for R.

A site has its percentage of methylated calls, or their number; sites without a call above the threshold are left out.
Each strand has its own row at its modified base, unless strands were combined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import OutputFileError, UsageError, unavailable
from f5py.io.arrow.table import ROWS_PER_GROUP, arrow_sink, dictionary_column, string_column
from f5py.io.files.output import TextOutput
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.site_frequencies.site_counts import SiteTotals
from f5py.site_frequencies.site_table import STRAND_COLUMNS, Frequencies
from f5py.text._format_numba import (
    COMMA,
    MINUS,
    NEWLINE,
    PLUS,
    POINT,
    TAB,
    ZERO,
    append_bytes,
    append_fixed,
    append_int,
)

_ROWS_PER_BLOCK = 1 << 14
#: More than the numbers and separators of a row need.
_FIXED_COLUMNS = 2 * 20 + 12
_COLUMNS_FOR_R = 6 * 20
_HEADERS = {
    "dss": b"chr\tpos\tN\tX\n",
    "methylkit": b"chrBase\tchr\tbase\tstrand\tcoverage\tfreqC\tfreqT\n",
}
#: Tables for R.
DSS, METHYLKIT, BISMARK = range(3)
_FORWARD, _REVERSE = np.uint8(ord("F")), np.uint8(ord("R"))
#: Of BED files.
_MOST_SCORE = np.int64(1000)
_PERCENT = 100.0


_ROWS_PER_TABLE = 1 << 18


def write_frequency_rows(out: BinaryIO | Callable[[Any], None], frequencies: Frequencies) -> None:
    """Write the table to a Parquet file, which stays open, or to a function of a pyarrow.Table.

    Chromosomes are dictionary-encoded strings, positions and counts int64, the group size int32, the frequency an
    unrounded float64, the sequence a large string. Raises `MissingDependencyError` without pyarrow.
    """
    fields = [
        ("chromosome", "names"),
        ("start", "int64"),
        ("end", "int64"),
        (f"{frequencies.count_column}_in_group", "int32"),
        ("called_sites", "int64"),
        ("called_sites_methylated", "int64"),
        ("methylated_frequency", "float64"),
        ("group_sequence", "large_string"),
        *((name, "int64") for name in (STRAND_COLUMNS if frequencies.stranded else ())),
    ]
    chromosomes = [name.decode(errors="replace") for name in frequencies.chromosomes]
    with arrow_sink(out, fields, rows_per_group=ROWS_PER_GROUP) as writer:
        for first in range(0, len(frequencies), _ROWS_PER_TABLE):
            sites = frequencies.columns(first, first + _ROWS_PER_TABLE)
            n_reverse, m_reverse = sites.called_reverse, sites.methylated_reverse
            of_strands = [sites.called - n_reverse, sites.methylated - m_reverse, n_reverse, m_reverse]
            writer.write(
                [
                    dictionary_column(sites.chromosome, chromosomes),
                    sites.start,
                    sites.end,
                    sites.group_size,
                    sites.called,
                    sites.methylated,
                    sites.methylated / sites.called,
                    string_column(sites.text_start, sites.text_size, frequencies.texts),
                    *(of_strands if frequencies.stranded else ()),
                ]
            )


@exact_inner
def _append_base(out, at, name, position):
    """Append name, start, end and a tab."""
    at = append_bytes(out, at, name)
    out[at] = TAB
    at = append_int(out, at + 1, position)
    out[at] = TAB
    at = append_int(out, at + 1, position + 1)
    out[at] = TAB
    return at + 1


@exact_inner
def _append_percent(out, at, part, whole):
    """Append a percentage in single precision, so that the last digit agrees with modkit."""
    share = np.float32(part) / np.float32(whole) * np.float32(100.0)
    return append_fixed(out, at, np.float64(share), 2)


@exact_kernel
def format_sites(out, names, name_ends, code, combined, totals):
    """Write one row per site with valid calls; return the number of bytes.

    Parameters
    ----------
    out : uint8
        With room.
    names, name_ends : uint8, int64, shape (n_contigs + 1,)
    code : uint8
        Modification code, as text.
    combined : bool
        The counts are of both strands.
    totals : f5py.site_frequencies.site_counts.SiteTotals
    """
    contig, position, reverse, methylated, canonical, failed, other, deleted, different, missing = totals
    at = np.int64(0)
    for site in range(contig.shape[0]):
        valid = methylated[site] + canonical[site] + other[site]
        if valid == 0:
            continue
        name = contig[site]
        at = _append_base(out, at, names[name_ends[name] : name_ends[name + 1]], position[site])
        at = append_bytes(out, at, code)
        out[at] = TAB
        at = append_int(out, at + 1, min(valid, _MOST_SCORE))
        out[at] = TAB
        if combined:
            out[at + 1] = POINT
        else:
            out[at + 1] = MINUS if reverse[site] else PLUS
        out[at + 2] = TAB
        at = append_int(out, at + 3, position[site])
        out[at] = TAB
        at = append_int(out, at + 1, position[site] + 1)
        out[at] = TAB
        # from blue, all canonical, to red, all methylated
        red = (np.int64(2) * 255 * methylated[site] + valid) // (np.int64(2) * valid)
        at = append_int(out, at + 1, red)
        out[at] = COMMA
        out[at + 1] = ZERO
        out[at + 2] = COMMA
        at = append_int(out, at + 3, 255 - red)
        out[at] = TAB
        at = append_int(out, at + 1, valid)
        out[at] = TAB
        at = _append_percent(out, at + 1, methylated[site], valid)
        out[at] = TAB
        at = append_int(out, at + 1, methylated[site])
        out[at] = TAB
        at = append_int(out, at + 1, canonical[site])
        for count in (other[site], deleted[site], failed[site], different[site], missing[site]):
            out[at] = TAB
            at = append_int(out, at + 1, count)
        out[at] = NEWLINE
        at += 1
    return at


@exact_kernel
def format_counts(out, names, name_ends, kind, totals):
    """Write one row of a table for R per site that has valid calls; return the number of bytes.

    Parameters
    ----------
    out : uint8
        With room.
    names, name_ends : uint8, int64, shape (n_contigs + 1,)
    kind : int
        `DSS`, `METHYLKIT` or `BISMARK`.
    totals : f5py.site_frequencies.site_counts.SiteTotals
    """
    at = np.int64(0)
    for site in range(totals.contig.shape[0]):
        methylated = totals.methylated[site]
        valid = methylated + totals.canonical[site] + totals.other[site]
        if valid == 0:
            continue
        name = names[name_ends[totals.contig[site]] : name_ends[totals.contig[site] + 1]]
        place = totals.position[site] + 1
        at = append_bytes(out, at, name)
        if kind == METHYLKIT:
            out[at] = POINT
            at = append_int(out, at + 1, place)
            out[at] = TAB
            at = append_bytes(out, at + 1, name)
        out[at] = TAB
        at = append_int(out, at + 1, place)
        out[at] = TAB
        if kind == DSS:
            at = append_int(out, at + 1, valid)
            out[at] = TAB
            at = append_int(out, at + 1, methylated)
        elif kind == METHYLKIT:
            out[at + 1] = _REVERSE if totals.reverse[site] else _FORWARD
            out[at + 2] = TAB
            at = append_int(out, at + 3, valid)
            for count in (methylated, valid - methylated):
                out[at] = TAB
                at = append_fixed(out, at + 1, 100.0 * count / valid, 4)
        else:
            at = append_int(out, at + 1, place)
            out[at] = TAB
            at = append_fixed(out, at + 1, 100.0 * methylated / valid, 6)
            for count in (methylated, valid - methylated):
                out[at] = TAB
                at = append_int(out, at + 1, count)
        out[at] = NEWLINE
        at += 1
    return at


@exact_kernel
def format_percentages(out, names, name_ends, contig, position, methylated, canonical, other):
    """Write one bedGraph row per site with valid calls; return the number of bytes.

    Parameters
    ----------
    out : uint8
        With room.
    names, name_ends : uint8, int64, shape (n_contigs + 1,)
    contig : int32, position : int64, shape (n,)
        0-based position of the modified base.
    methylated, canonical, other : int64, shape (n,)
        Numbers of calls.
    """
    at = np.int64(0)
    for site in range(contig.shape[0]):
        valid = methylated[site] + canonical[site] + other[site]
        if valid == 0:
            continue
        name = contig[site]
        at = _append_base(out, at, names[name_ends[name] : name_ends[name + 1]], position[site])
        at = _append_percent(out, at, methylated[site], valid)
        out[at] = NEWLINE
        at += 1
    return at


def import_bigwig() -> Any:
    """Import ``pyBigWig``. Raises `MissingDependencyError`."""
    try:
        import pyBigWig
    except ImportError as problem:
        raise unavailable(problem, "bigWig output needs", "pyBigWig", "bigwig") from problem
    return pyBigWig


def write_rows(
    out: TextOutput,
    totals: SiteTotals,
    names: list[bytes],
    fixed_width: int,
    format_block: Callable[[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64], SiteTotals], int],
) -> None:
    """Write text with at most a row per site, a block of sites at a time.

    Parameters
    ----------
    names : list of bytes
        Chromosomes by index.
    fixed_width : int
        Largest number of bytes of a row without its chromosome.
    format_block : function
        Formats sites into a buffer, given the joined names and their offsets; returns the number of bytes.
    """
    text = np.frombuffer(b"".join(names), np.uint8)
    name_ends = offsets_of([len(name) for name in names])
    width = max(map(len, names), default=0) + fixed_width
    for first in range(0, len(totals.position), _ROWS_PER_BLOCK):
        block = SiteTotals._make(column[first : first + _ROWS_PER_BLOCK] for column in totals)
        rows = np.empty(len(block.position) * width, np.uint8)
        size = format_block(rows, text, name_ends, block)
        out.write(rows[:size].data)


def write_bedgraph(out: TextOutput, totals: SiteTotals, names: list[bytes]) -> None:
    """Write chromosome, start, end and percentage of every site."""

    def format_block(rows: NDArray[np.uint8], text: NDArray, name_ends: NDArray, sites: SiteTotals) -> int:
        columns = sites.contig, sites.position, sites.methylated, sites.canonical, sites.other
        return format_percentages(rows, text, name_ends, *columns)

    write_rows(out, totals, names, _FIXED_COLUMNS, format_block)


def write_table_for_r(out: TextOutput, totals: SiteTotals, names: list[bytes], kind: str) -> None:
    """Write the counts of every site; `kind` is one of `f5py.options.output_names.FOR_R`."""
    which = {"dss": DSS, "methylkit": METHYLKIT, "bismark": BISMARK}[kind]
    if kind in _HEADERS:
        out.write(_HEADERS[kind])

    def format_block(rows: NDArray[np.uint8], text: NDArray, name_ends: NDArray, sites: SiteTotals) -> int:
        return format_counts(rows, text, name_ends, which, sites)

    width = _COLUMNS_FOR_R + max(map(len, names), default=0)  # methylKit has the name twice
    write_rows(out, totals, names, width, format_block)


def write_bigwig(path: str, shown: str, totals: SiteTotals, names: list[bytes], lengths: Mapping[bytes, int]) -> None:
    """Write the percentage of every site.

    Parameters
    ----------
    path : str
        Path for the library.
    shown : str
        Name of the output in errors.
    lengths : mapping of bytes to int
        Bases of each chromosome.

    Raises
    ------
    MissingDependencyError
        pyBigWig is not installed.
    UsageError
        The length of a chromosome is unknown, or a site is beyond its end.
    OutputFileError
        The library cannot write the file.
    """
    library = import_bigwig()
    valid = totals.valid
    called = np.flatnonzero(valid)
    contig, position = totals.contig[called], totals.position[called]
    percent = _PERCENT * totals.methylated[called] / valid[called]
    bounds = [*np.flatnonzero(np.diff(contig, prepend=-1)).tolist(), len(contig)]  # of the rows of each chromosome
    used = [names[contig[first]] for first in bounds[:-1]]
    for name, end in zip(used, bounds[1:], strict=True):
        if position[end - 1] >= lengths.get(name, 0):
            raise UsageError(
                f"{shown}: the length of {name.decode(errors='replace')} is not known, or smaller than the position "
                f"{int(position[end - 1]) + 1:,} of a site in it; give the lengths of this reference with --chrom-sizes"
            )
    try:
        with library.open(path, "w") as file:
            file.addHeader([(name.decode(), int(lengths[name])) for name in used] or _any_chromosome(lengths))
            for name, (begin, end) in zip(used, pairwise(bounds), strict=True):
                for first in range(begin, end, _ROWS_PER_BLOCK):
                    rows = slice(first, min(first + _ROWS_PER_BLOCK, end))
                    values = percent[rows].tolist()
                    file.addEntries(name.decode(), position[rows].tolist(), values=values, span=1)
    except RuntimeError as problem:
        raise OutputFileError(f"{shown}: cannot write: {problem}") from problem


def _any_chromosome(lengths: Mapping[bytes, int]) -> list[tuple[str, int]]:
    """Choose a chromosome for a file without sites, which needs one too."""
    return [(name.decode(), int(length)) for name, length in list(lengths.items())[:1]]
