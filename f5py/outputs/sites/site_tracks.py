"""Methylation frequencies as Parquet or Arrow tables, browser tracks, and tables for R.

A site has its percentage of methylated calls, or their number; sites without a call above the threshold are left out.
Each strand has its own row at its modified base, unless strands were combined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from f5py.core.offsets import offsets_of
from f5py.errors import OutputFileError, UsageError, unavailable
from f5py.io.arrow.table import ROWS_PER_GROUP, arrow_sink, dictionary_column, string_column
from f5py.io.files.output import TextOutput
from f5py.jit.kernel import exact_kernel
from f5py.outputs.formatted_text import append_cell
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
_ROWS_PER_TABLE = 1 << 18
#: More than the numbers and separators of a row need.
_FIXED_COLUMNS = 10 * 20 + 40
#: Kinds of rows: for genome browsers, and for R.
KINDS = ("bedmethyl", "bedgraph", "dss", "methylkit", "bismark")
BEDMETHYL, BEDGRAPH, DSS, METHYLKIT, BISMARK = range(5)
_HEADERS = {"dss": b"chr\tpos\tN\tX\n", "methylkit": b"chrBase\tchr\tbase\tstrand\tcoverage\tfreqC\tfreqT\n"}
_FORWARD, _REVERSE = np.uint8(ord("F")), np.uint8(ord("R"))
#: Of BED files.
_MOST_SCORE = np.int64(1000)
_PERCENT = 100.0


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


@exact_kernel
def format_sites(out, names, name_ends, kind, code, combined, totals):
    """Write one row per site with valid calls; return the number of bytes.

    Parameters
    ----------
    out : uint8
        With room.
    names, name_ends : uint8, int64, shape (n_contigs + 1,)
    kind : int
        Index among `KINDS`.
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
        name = names[name_ends[contig[site]] : name_ends[contig[site] + 1]]
        start, end = position[site], position[site] + 1
        at = append_bytes(out, at, name)
        if kind == METHYLKIT:
            out[at] = POINT
            at = append_int(out, at + 1, end)
            out[at] = TAB
            at = append_bytes(out, at + 1, name)
        if kind in (BEDMETHYL, BEDGRAPH):
            at = append_cell(out, append_cell(out, at, start), end)
            if kind == BEDMETHYL:
                out[at] = TAB
                at = append_bytes(out, at + 1, code)
                at = append_cell(out, at, min(valid, _MOST_SCORE))
                out[at] = TAB
                out[at + 1] = POINT if combined else (MINUS if reverse[site] else PLUS)
                at = append_cell(out, append_cell(out, at + 2, start), end)
                # from blue, all canonical, to red, all methylated
                red = (np.int64(2) * 255 * methylated[site] + valid) // (np.int64(2) * valid)
                at = append_cell(out, at, red)
                out[at] = COMMA
                out[at + 1] = ZERO
                out[at + 2] = COMMA
                at = append_cell(out, append_int(out, at + 3, 255 - red), valid)
            # in single precision, so that the last digit agrees with modkit
            share = np.float32(methylated[site]) / np.float32(valid) * np.float32(100.0)
            out[at] = TAB
            at = append_fixed(out, at + 1, np.float64(share), 2)
            if kind == BEDMETHYL:
                for count in (methylated, canonical, other, deleted, failed, different, missing):
                    at = append_cell(out, at, count[site])
        else:
            at = append_cell(out, at, end)
            if kind == DSS:
                at = append_cell(out, append_cell(out, at, valid), methylated[site])
            elif kind == METHYLKIT:
                out[at] = TAB
                out[at + 1] = _REVERSE if reverse[site] else _FORWARD
                at = append_cell(out, at + 2, valid)
                for count in (methylated[site], valid - methylated[site]):
                    out[at] = TAB
                    at = append_fixed(out, at + 1, 100.0 * count / valid, 4)
            else:
                at = append_cell(out, at, end)
                out[at] = TAB
                at = append_fixed(out, at + 1, 100.0 * methylated[site] / valid, 6)
                at = append_cell(out, append_cell(out, at, methylated[site]), valid - methylated[site])
        out[at] = NEWLINE
        at += 1
    return at


def write_rows(
    out: TextOutput, totals: SiteTotals, names: list[bytes], kind: str, code: str = "", combined: bool = False
) -> None:
    """Write text with a row per site that has valid calls.

    Parameters
    ----------
    names : list of bytes
        Chromosomes by index.
    kind : str
        One of `KINDS`.
    code : str
        Modification code.
    combined : bool
        The counts are of both strands.
    """
    out.write(_HEADERS.get(kind, b""))
    text, name_ends = np.frombuffer(b"".join(names), np.uint8), offsets_of([len(name) for name in names])
    code_text = np.frombuffer(code.encode(), np.uint8)
    width = 2 * max(map(len, names), default=0) + _FIXED_COLUMNS + len(code_text)  # methylKit has the name twice
    for first in range(0, len(totals.position), _ROWS_PER_BLOCK):
        block = SiteTotals._make(column[first : first + _ROWS_PER_BLOCK] for column in totals)
        rows = np.empty(len(block.position) * width, np.uint8)
        out.write(rows[: format_sites(rows, text, name_ends, KINDS.index(kind), code_text, combined, block)].data)


def import_bigwig() -> Any:
    """Import ``pyBigWig``. Raises `MissingDependencyError`."""
    try:
        import pyBigWig
    except ImportError as problem:
        raise unavailable(problem, "bigWig output needs", "pyBigWig", "bigwig") from problem
    return pyBigWig


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
