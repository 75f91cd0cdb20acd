"""Annotated introns, of which spliced alignments get a bonus at each site."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError
from f5py.io.arrow.text_input import open_bytes
from f5py.mapping.index.reference_index import ReferenceIndex

_BLOCK_COLUMNS = 12
_ADVICE = "give BED with 12 columns (genes) or 6 (introns), such as: paftools.js gff2bed genes.gtf"


def read_junctions(path: str, index: ReferenceIndex) -> NDArray[np.int64]:
    """Read the introns of a BED file: those between the blocks of 12 columns, else each line is one.

    Lines of contigs that the reference does not have, and introns without a strand, are left out.

    Returns
    -------
    junctions : int64, shape (n, 3)
        First base and base behind the last one among those of all contigs, and strand, 1 or -1; sorted.

    Raises
    ------
    InputFileError
        The file cannot be read, a line is no BED or beyond the end of its contig, or no intron is on the reference.
    """
    contigs = dict(zip(index.names, pairwise(index.offsets.tolist()), strict=True))
    rows: list[tuple[int, int, int]] = []
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            text = line.decode(errors="replace").rstrip("\r\n")
            fields = text.split("\t")
            if not text.strip() or text.startswith("#") or text.split()[0] in ("track", "browser"):
                continue
            try:
                introns = _introns_of(fields)
            except (ValueError, IndexError):
                shown = text if len(text) <= 80 else f"{text[:80]}..."
                raise InputFileError(f"{path}, line {number}: is no line of BED: {shown!r}; {_ADVICE}") from None
            if fields[0] not in contigs:
                continue
            begin, end = contigs[fields[0]]
            if int(fields[2]) > end - begin:
                raise InputFileError(
                    f"{path}, line {number}: ends at {fields[2]}, but contig {fields[0]} of the reference has "
                    f"{end - begin} bases; give the annotation of this reference"
                )
            strand = {"+": 1, "-": -1}.get(fields[5] if len(fields) > 5 else "", 0)
            rows += [(begin + first, begin + behind, strand) for first, behind in introns if strand]
    if not rows:
        raise InputFileError(
            f"{path}: has no intron with a strand on a contig of the reference ({index.names[0]}, ...); {_ADVICE}"
        )
    return np.array(sorted(rows), np.int64)


def _introns_of(fields: list[str]) -> list[tuple[int, int]]:
    """Return the introns of a line; `ValueError` or `IndexError` if that is damaged."""
    start, end = int(fields[1]), int(fields[2])
    if not 0 <= start < end:
        raise ValueError
    if len(fields) < _BLOCK_COLUMNS:
        return [(start, end)]
    n_blocks = int(fields[9])
    lengths, starts = ([int(one) for one in fields[at].rstrip(",").split(",")] for at in (10, 11))
    if not n_blocks == len(lengths) == len(starts):
        raise ValueError
    blocks = [(start + at, start + at + length) for at, length in zip(starts, lengths, strict=True)]
    if any(first < start or behind > end for first, behind in blocks):
        raise ValueError
    return [(before[1], block[0]) for before, block in pairwise(blocks) if block[0] > before[1]]
