"""Methylation frequencies of single sites from tables: bedMethyl, meth-freq's, or those of a simulation."""

from __future__ import annotations

import warnings
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import Motif
from f5py.errors import InputFileError
from f5py.io.bounds import POSITION_BITS, check_bounds, check_positions
from f5py.io.bytes.byte_input import open_bytes

#: Frequencies up to and from which every read of a site is taken for unmethylated or methylated.
UNMETHYLATED, METHYLATED = 0.05, 0.95
_NAME = "S128"
#: More reads than a site can have.
_MOST_READS = 1 << 40
_BEDMETHYL = {
    "contig": (0, _NAME),
    "start": (1, np.int64),
    "strand": (5, "S1"),
    "n": (9, np.int64),
    "share": (10, float),
}
_COUNTED = {"contig": (0, _NAME), "start": (1, np.int64), "end": (2, np.int64), "n": (4, np.int64), "m": (5, np.int64)}
_SIMULATED = _COUNTED | {"n": (3, np.int64), "m": (4, np.int64)}
_HEADERS = {
    b"chromosome\tstart\tend\tnum_motifs_in_group\tcalled_sites\t": _COUNTED,
    b"chromosome\tstart\tend\tnum_cpgs_in_group\tcalled_sites\t": _COUNTED,
    b"chromosome\tstart\tend\tn_reads\tn_methylated\t": _SIMULATED,
}


class KnownSites(NamedTuple):
    """Sites of one motif, both strands as one if the motif has both; ordered by contig and position."""

    contigs: list[str]
    # shape (n,): index of the contig, shifted by `POSITION_BITS`, and start on the forward strand
    place: NDArray[np.int64]
    n_reads: NDArray[np.float64]  # shape (n,)
    frequency: NDArray[np.float64]  # shape (n,): from 0 to 1
    # shape (n,): False if the strands have both states: one at most 5 %, the other at least 95 % methylated
    is_uniform: NDArray[np.bool_]


def columns_of(first_line: bytes) -> dict[str, tuple[int, Any]] | None:
    """Find the columns of a table of sites by its first line, None if it is another table; bedMethyl has no header."""
    for header, columns in _HEADERS.items():
        if first_line.startswith(header):
            return columns
    fields = first_line.split()
    return _BEDMETHYL if len(fields) >= 11 and fields[1].isdigit() and fields[2].isdigit() else None


def read_sites(path: str, motif: Motif) -> KnownSites:
    """Read a table of sites, plain, compressed or Parquet; sites without reads and groups of several are left out.

    Raises `InputFileError` if the file cannot be read, or is no such table.

    Parameters
    ----------
    motif : Motif
        Rows of bedMethyl are at its methylated bases.
    """
    with open_bytes(path) as file:
        first = file.readline(1 << 16)
        columns = columns_of(first)
        if columns is None:
            raise InputFileError(
                f"{path}: is no table of sites; give bedMethyl as f5py or modkit writes it, a table of meth-freq, or a "
                "simulation's truth.tsv"
            )
        dtype = np.dtype([(name, kind) for name, (_, kind) in columns.items()])
        lines = file if columns is not _BEDMETHYL else chain([first], file)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of a table without rows
                rows = np.loadtxt(
                    lines, dtype, comments=None, delimiter=None if columns is _BEDMETHYL else "\t",
                    usecols=[at for at, _ in columns.values()], ndmin=1, encoding="latin-1",
                )  # fmt: skip
        except (ValueError, IndexError) as problem:
            raise InputFileError(f"{path}: is damaged ({problem})") from problem
    check_bounds(rows["n"], 0, _MOST_READS, path, "a number of reads")
    if (np.char.str_len(rows["contig"]) == int(_NAME[1:])).any():
        raise InputFileError(f"{path}: has a contig whose name has {_NAME[1:]} letters or more; shorten it")
    if columns is _BEDMETHYL:
        check_bounds(rows["share"][rows["n"] > 0], 0, 100, path, "a percentage")
        start = rows["start"] - np.where(rows["strand"] == b"-", motif.offset_reverse, motif.offset_forward)
        share = rows["share"] / 100
        kept = rows["n"] > 0
    else:
        check_bounds(rows["m"], 0, _MOST_READS, path, "a number of methylated reads")
        if (rows["m"] > rows["n"]).any():
            raise InputFileError(f"{path}: a row has more methylated reads than reads; make the table again")
        start = rows["start"]
        share = rows["m"] / np.maximum(rows["n"], 1)
        kept = (rows["n"] > 0) & (rows["start"] == rows["end"])
    check_positions(start[kept], path, "start")
    names, contig = np.unique(rows["contig"][kept], return_inverse=True)
    return _merged([name.decode("latin-1") for name in names], contig, start[kept], rows["n"][kept], share[kept])


def _merged(
    contigs: list[str],
    contig: NDArray[np.int64],
    start: NDArray[np.int64],
    n_reads: NDArray[np.int64],
    share: NDArray[np.float64],
) -> KnownSites:
    """Rows of the same site, which are those of two strands, as one."""
    place, which = np.unique(contig.astype(np.int64) << POSITION_BITS | start, return_inverse=True)
    n = len(place)
    total = np.bincount(which, n_reads, n).astype(np.float64)
    frequency = np.bincount(which, n_reads * share, n) / np.maximum(total, 1)
    low, high = (np.bincount(which, extreme, n) for extreme in (share <= UNMETHYLATED, share >= METHYLATED))
    return KnownSites(contigs, place, total, frequency, (low == 0) | (high == 0))
