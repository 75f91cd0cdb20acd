"""Methylation frequencies as tracks of genome browsers: bedGraph and bigWig.

A site with valid calls has its percentage of methylated ones. Each strand has its own value at its modified base,
unless strands are combined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import OutputFileError, UsageError, unavailable
from f5py.io.files.output import TextOutput
from f5py.site_frequencies.site_counts import SiteTotals

_ROWS_PER_BLOCK = 1 << 14
#: More than the numbers and separators of a row need.
_FIXED_COLUMNS = 2 * 20 + 12
_PERCENT = 100.0


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
    from f5py.outputs.sites._bedmethyl_numba import format_percentages

    def format_block(rows: NDArray[np.uint8], text: NDArray, name_ends: NDArray, sites: SiteTotals) -> int:
        columns = sites.contig, sites.position, sites.methylated, sites.canonical, sites.other
        return format_percentages(rows, text, name_ends, *columns)

    write_rows(out, totals, names, _FIXED_COLUMNS, format_block)


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
