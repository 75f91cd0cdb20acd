"""Reference sequences, with ambiguity codes resolved as the callers expect."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError

#: Ambiguity codes and the alphabetically first base that they may stand for.
_RESOLVED = dict.fromkeys("MRWVHDN", "A") | dict.fromkeys("SYB", "C") | {"K": "G"}


def _letter_table() -> NDArray[np.uint8]:
    table = np.arange(256, dtype=np.uint8)
    for letter in range(ord("a"), ord("z") + 1):
        table[letter] = letter - 32
    for code, base in _RESOLVED.items():
        table[ord(code)] = table[ord(code.lower())] = ord(base)
    return table


class Reference:
    """An indexed FASTA file; the index is made if it is missing.

    Parameters
    ----------
    path : str
    contigs, lengths : sequences
        Names and lengths in the BAM header; each must be in the FASTA file with the same length.

    Raises
    ------
    InputFileError
        If the file is unreadable, or a contig is missing or of another length.
    """

    def __init__(self, path: str, contigs: list[str], lengths: list[int]) -> None:
        import pysam

        if not os.path.exists(path):
            raise InputFileError(f"{path}: no such file; give the reference with -g")
        try:
            self._fasta = pysam.FastaFile(path)
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or (
                "it is no FASTA file (plain or bgzip), or its index .fai is damaged or cannot be written"
            )
            raise InputFileError(f"{path}: cannot read the reference: {reason}") from None
        self._path = path
        self._contigs = contigs
        self._lengths = lengths
        self._table = _letter_table()
        known = dict(zip(self._fasta.references, self._fasta.lengths, strict=True))
        missing = [name for name in contigs if name not in known]
        if missing:
            listed = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
            raise InputFileError(
                f"{path}: the reference lacks {len(missing)} of the BAM file's {len(contigs)} contigs ({listed}); "
                "give the FASTA file that the reads were mapped to"
            )
        for name, length in zip(contigs, lengths, strict=True):
            if known[name] != length:
                raise InputFileError(
                    f"{path}: contig {name} has {known[name]} bases, but {length} in the BAM file; "
                    "give the FASTA file that the reads were mapped to"
                )

    def segment(self, contig: int, start: int, end: int) -> bytes:
        """Bases of ``[start, end)``, cut at the contig's end, as in the file.

        Raises
        ------
        InputFileError
            If the file does not have them, because it is damaged or its index is not that of the file.
        """
        end = min(end, self._lengths[contig])
        try:
            bases = self._fasta.fetch(self._contigs[contig], start, end).encode()
        except (OSError, ValueError):
            bases = b""
        if len(bases) != end - start:
            raise InputFileError(
                f"{self._path}: bases {start + 1} to {end} of contig {self._contigs[contig]} cannot be read; is the "
                f"file damaged or newer than its index? Delete {self._path}.fai to have it made anew"
            )
        return bases

    def normalise(self, letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Upper-case letters with every ambiguity code replaced by its alphabetically first base."""
        return self._table[letters]

    def close(self) -> None:
        """Close the file."""
        self._fasta.close()
