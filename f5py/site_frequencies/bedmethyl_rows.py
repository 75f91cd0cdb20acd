"""Rows of bedMethyl tables with 18 columns, as written by f5py and modkit."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import Motif
from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow, read_rows
from f5py.io.bam.modifications.modified_sites import names_of_code
from f5py.io.bounds import check_bounds, check_positions
from f5py.io.bytes.byte_pieces import whole_lines
from f5py.site_frequencies.site_counts import SiteColumns, SiteCounts

_COLUMNS = (
    "contig", "start", "end", "code", "score", "strand", "first", "last", "colour", "n_valid", "percent", "methylated",
    "canonical", "n_other", "n_deleted", "failed", "n_different", "n_missing",
)  # fmt: skip
_TEXTS = ("contig", "code", "strand")
_COUNTS = ("methylated", "canonical", "failed", "n_other", "n_deleted", "n_different", "n_missing")
_MOST_READS = 2**32 - 1
_PIECE = 1 << 24
_NOT_ROWS = (b"#", b"track", b"browser")


class BedMethylRows(NamedTuple):
    """A piece of the table."""

    codes: list[str]  # of modifications, by index; modkit may add a motif, as in ``m,CG,0``
    code: NDArray[np.int32]
    combined: NDArray[np.bool_]  # rows of both strands
    sites: SiteColumns  # at the modified base


def is_bedmethyl(beginning: bytes) -> bool:
    """Return whether a table is bedMethyl, or another BED file with a strand and more columns."""
    lines = beginning.splitlines()
    first = next((line for line in lines if not line.startswith(_NOT_ROWS)), b"").split()
    return len(first) >= 11 and first[1].isdigit() and first[2].isdigit() and first[5] in (b"+", b"-", b".")


def bedmethyl_rows(source: BinaryIO, shown: str, contigs: dict[str, int]) -> Iterator[BedMethylRows]:
    """Read a table with tabs between all columns, or blanks between the last nine.

    New names are added to the index `contigs`.
    """
    import_arrow("bedMethyl files")
    import pyarrow
    import pyarrow.compute as compute

    types = dict.fromkeys(("start", *_COUNTS), pyarrow.int64()) | dict.fromkeys(_TEXTS, pyarrow.string())
    for rows in read_rows(_only_rows(whole_lines(source, _PIECE), shown), shown, _COLUMNS, types, tuple(types)):
        contig, code = (rows[name].combine_chunks().dictionary_encode() for name in ("contig", "code"))
        if strange := set(compute.unique(rows["strand"]).to_pylist()) - {"+", "-", "."}:
            raise InputFileError(f"{shown}: a strand is {min(strange)!r}, not +, - or .; is the file damaged?")
        start = rows["start"].to_numpy()
        check_positions(start, shown, "start")
        columns = [rows[name].to_numpy() for name in _COUNTS]
        for count in columns:
            check_bounds(count, 0, _MOST_READS, shown, "a number of reads")
        methylated, canonical, failed, *rest = (count.astype(np.uint32) for count in columns)
        number = np.array([contigs.setdefault(name, len(contigs)) for name in contig.dictionary.to_pylist()], np.int32)
        reverse, combined = (compute.equal(rows["strand"], strand).to_numpy() for strand in "-.")
        sites = SiteColumns(
            np.full(len(start), -1, np.int32), number[contig.indices.to_numpy()], start << 1 | reverse, methylated,
            canonical, failed, np.stack(rest, axis=1),
        )  # fmt: skip
        yield BedMethylRows(code.dictionary.to_pylist(), code.indices.to_numpy(), combined, sites)


def _only_rows(pieces: Iterable[bytes], shown: str) -> Iterator[bytes]:
    """Skip lines before the first row, and replace blanks by tabs."""
    is_first = True
    for one in pieces:
        piece = one
        while is_first and piece.startswith(_NOT_ROWS):
            piece = piece.partition(b"\n")[2]
        if piece and is_first:
            n_columns = len(piece.partition(b"\n")[0].split())
            if n_columns != len(_COLUMNS):
                raise InputFileError(
                    f"{shown}: has {n_columns} columns, not the {len(_COLUMNS)} of bedMethyl as f5py and modkit write "
                    "it, and so no counts of calls"
                )
            is_first = False
        if piece:
            yield piece.replace(b" ", b"\t")


def count_bedmethyl(
    source: BinaryIO, shown: str, counts: SiteCounts, contigs: dict[str, int], motif: Motif, code: str | None = None
) -> tuple[int, bool]:
    """Add the rows of a modification, by default the motif's, to `counts`, and contigs to `contigs`.

    Rows are at sites of the motif, unless they name another one. Returns the number of added rows, and whether some are
    of both strands.
    """
    wanted = list(names_of_code(code or motif.code))
    wanted += [f"{one},{motif.pattern},{motif.offset}" for one in wanted]
    others: set[str] = set()
    n_rows, are_combined = 0, False
    for rows in bedmethyl_rows(source, shown, contigs):
        others.update(rows.codes)
        reverse = rows.sites.step & 1
        start = (rows.sites.step >> 1) - np.array([motif.offset_forward, motif.offset_reverse])[reverse]
        kept = np.isin(rows.code, [i for i, name in enumerate(rows.codes) if name in wanted]) & (start >= 0)
        step = start << 1 | (reverse & (not counts.combine_strands))
        counts.join(SiteColumns._make(column[kept] for column in rows.sites._replace(step=step)))
        n_rows += int(kept.sum())
        are_combined = are_combined or bool(rows.combined[kept].any())
    if others and not n_rows:
        listed = ", ".join(sorted(others)[:5])
        raise InputFileError(f"{shown}: no row is of {wanted[0]} at {motif.pattern}; there are {listed}")
    return n_rows, are_combined
