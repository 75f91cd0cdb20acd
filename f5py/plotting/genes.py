"""Genes of a locus, from a BED, GFF or GTF file."""

import re
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.windows import other_spelling
from f5py.errors import InputFileError, UsageError
from f5py.io.arrow.text_input import open_bytes
from f5py.io.bytes.byte_pieces import whole_lines
from f5py.messages.console import input_warning

_PIECE = 16 << 20
_COMPRESSED = (".gz", ".bgz", ".zst", ".bz2", ".xz")
# Patterns of lines after the contig.
_BED = (
    rb"\t(?P<start>[0-9]{1,18})\t(?P<end>[0-9]{1,18})(?:\t(?P<name>[^\t\n\r]*)(?:\t[^\t\n]*(?:\t(?P<strand>[+-]))?)?)?"
)
_GFF = (
    rb"\t[^\t\n]*\t[A-Za-z_]*gene\t(?P<start>[0-9]{1,18})\t(?P<end>[0-9]{1,18})\t[^\t\n]*\t(?P<strand>[^\t\n])\t[^\t\n]*\t"
    rb"(?P<name>[^\n\r]*)"
)
_FORMATS = {".bed": _BED, ".gff": _GFF, ".gff3": _GFF, ".gtf": _GFF}
#: Attributes with a gene's name, in order of preference.
_NAMES = tuple(
    re.compile(rf'(?:^|;)\s*{name}[= ]"?([^";]*)') for name in ("Name", "gene_name", "gene", "gene_id", "ID")
)


class Genes(NamedTuple):
    """Genes of a locus, by position; shape (g,) each."""

    start: NDArray[np.int64]  # 0-based, half-open, clipped to the locus
    end: NDArray[np.int64]
    strand: list[str]  # ``+``, ``-`` or ``.``
    name: list[str]
    row: NDArray[np.int64]  # of the drawing


def read_genes(path: str, contig: str, start: int, end: int) -> Genes:
    """Read the genes of a locus: all intervals of BED, or gene features of GFF and GTF.

    The file may be compressed. Its name must tell the format.
    """
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes if suffix.lower() not in _COMPRESSED]
    fields = _FORMATS.get(suffixes[-1] if suffixes else "")
    if fields is None:
        raise UsageError(f"--genes {path}: does not end in .bed, .gff, .gff3 or .gtf, with or without .gz")
    pattern = re.compile(rb"^" + re.escape(contig.encode()) + fields, re.MULTILINE)
    other = other_spelling(contig)
    elsewhere = re.compile(rb"^" + re.escape(other.encode()) + fields, re.MULTILINE)
    rows: list[dict[str, bytes | None]] = []
    is_one = is_empty = has_other = None
    with open_bytes(path) as source:
        for piece in whole_lines(source, _PIECE):
            is_empty = False
            is_one = is_one or re.search(rb"^[^#\t\n]+" + fields, piece, re.MULTILINE)
            rows += [found.groupdict() for found in pattern.finditer(piece)]
            has_other = has_other or elsewhere.search(piece)
    if not is_one and is_empty is False:
        raise InputFileError(f"{path}: no line is one of a gene in {suffixes[-1][1:].upper()} format")
    if has_other and not rows:
        input_warning("genes", f"{path}: has genes of {other}, but none of {contig}, as the alignments call it")
    first = np.array([int(row["start"] or 0) for row in rows], np.int64) - (fields is _GFF)
    last = np.array([int(row["end"] or 0) for row in rows], np.int64)
    kept = np.flatnonzero((first < end) & (last > start) & (last > first))
    kept = kept[np.lexsort((last[kept], first[kept]))]
    first, last = np.maximum(first[kept], start), np.minimum(last[kept], end)
    chosen = [rows[i] for i in kept.tolist()]
    names = [_name((row["name"] or b"").decode("utf-8", "replace"), fields is _GFF) for row in chosen]
    strands = [(row["strand"] or b".").decode("ascii", "replace") for row in chosen]
    # 140 letters of a name are as wide as the locus
    room = first + np.array([len(name) for name in names], np.int64) * ((end - start) // 140 + 1)
    return Genes(first, last, strands, names, pack_rows(first, np.maximum(last, room), (end - start) // 100))


def _name(text: str, is_attributes: bool) -> str:
    if not is_attributes:
        return text
    return next((found[1] for one in _NAMES if (found := one.search(text))), "")


def pack_rows(start: NDArray[np.int64], end: NDArray[np.int64], gap: int) -> NDArray[np.int64]:
    """Return the first row with room for each half-open interval, at least `gap` from others."""
    rows = np.zeros(len(start), np.int64)
    taken: list[int] = []
    for i in np.argsort(start, kind="stable").tolist():
        row = next((n for n, last in enumerate(taken) if last + gap <= start[i]), len(taken))
        taken[row : row + 1] = [int(end[i])]
        rows[i] = row
    return rows
