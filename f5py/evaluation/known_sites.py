"""Methylation frequencies of single sites from bedMethyl, tables of meth-freq, or simulations."""

import warnings
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import Motif
from f5py.errors import InputFileError
from f5py.io.arrow.text_input import open_bytes
from f5py.io.bounds import POSITION_BITS, check_bounds, check_positions

#: Bounds of frequencies of sites with the same state in all reads.
UNMETHYLATED, METHYLATED = 0.05, 0.95
_NAME = "S128"
_MOST_READS = 1 << 40
_COUNTED = {"contig": (0, _NAME), "start": (1, np.int64), "end": (2, np.int64), "n": (4, np.int64), "m": (5, np.int64)}
_BEDMETHYL = {
    "contig": (0, _NAME), "start": (1, np.int64), "strand": (5, "S1"), "n": (9, np.int64), "share": (10, float),
}  # fmt: skip
_SIMULATED = _COUNTED | {"n": (3, np.int64), "m": (4, np.int64)}
_HEADERS = {
    b"chromosome\tstart\tend\tnum_motifs_in_group\tcalled_sites\t": _COUNTED,
    b"chromosome\tstart\tend\tnum_cpgs_in_group\tcalled_sites\t": _COUNTED,
    b"chromosome\tstart\tend\tn_reads\tn_methylated\t": _SIMULATED,
}


class KnownSites(NamedTuple):
    """Sites of one motif, strands combined, ordered by contig and position; shape (n,) each."""

    contigs: list[str]
    place: NDArray[np.int64]  # contig << POSITION_BITS | start on the forward strand
    n_reads: NDArray[np.float64]
    frequency: NDArray[np.float64]  # from 0 to 1
    is_uniform: NDArray[np.bool_]  # False if one strand is unmethylated and the other methylated


def columns_of(first_line: bytes) -> dict[str, tuple[int, Any]] | None:
    """Return the columns of a table of sites by its first line, or None for another table."""
    for header, columns in _HEADERS.items():
        if first_line.startswith(header):
            return columns
    fields = first_line.split()
    return _BEDMETHYL if len(fields) >= 11 and fields[1].isdigit() and fields[2].isdigit() else None


def read_sites(path: str, motif: Motif) -> KnownSites:
    """Read the single sites with reads of a table; rows of bedMethyl are at the motif's methylated bases."""
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
        raise InputFileError(f"{path}: has a contig with a name of {_NAME[1:]} letters or more; shorten it")
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
    return _merge_strands([name.decode("latin-1") for name in names], contig, start[kept], rows["n"][kept], share[kept])


def _merge_strands(
    contigs: list[str], contig: NDArray[np.int64], start: NDArray[np.int64], n_reads: NDArray[np.int64],
    share: NDArray[np.float64],
) -> KnownSites:  # fmt: skip
    """Combine rows of the same site."""
    place, which = np.unique(contig.astype(np.int64) << POSITION_BITS | start, return_inverse=True)
    n = len(place)
    total = np.bincount(which, n_reads, n).astype(np.float64)
    frequency = np.bincount(which, n_reads * share, n) / np.maximum(total, 1)
    low, high = (np.bincount(which, extreme, n) for extreme in (share <= UNMETHYLATED, share >= METHYLATED))
    return KnownSites(contigs, place, total, frequency, (low == 0) | (high == 0))
