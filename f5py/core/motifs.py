"""Methylation motifs: IUPAC patterns with the position of the methylated base.

Coordinates are those of the reference's forward strand. A forward record has its sites at occurrences of the pattern, a
reverse record at occurrences of its reverse complement. These coincide for palindromic motifs (CG, GC, GATC, CCWGG); of
other motifs, such as CHG, a record shows only the sites of its own strand. A site's reported start is the first base of
its occurrence on the forward strand.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError

#: The methylation alphabet; M is the methylated base.
ALPHABET = "ACGMT"

#: Bases of IUPAC letters.
IUPAC = {
    "A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip

#: A group's window ends 10 bases after the first base of its last site.
MAX_MOTIF_LENGTH = 11
#: Limit of sequences that a motif matches.
MAX_SPELLINGS = 256

_COMPLEMENT = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")
#: Complements of upper-case bases; other letters are unchanged. uint8, shape (256,).
COMPLEMENTS = np.arange(256, dtype=np.uint8)
COMPLEMENTS[list(b"ACGTU")] = list(b"TGCAA")
#: SAM modification codes by base; for G and T that of any modification.
_CODES = {"C": "m", "A": "a", "G": "G", "T": "T"}


class MotifCodes(NamedTuple):
    """A motif on one strand, for kernels."""

    masks: NDArray[np.uint8]  # shape (length,): possible bases of each position, as `letter_bits`
    offset: int  # of the methylated base, in forward coordinates
    letter_bits: NDArray[np.uint8]  # shape (256,): a bit for each of ACGT, 0 for other letters
    letter_codes: NDArray[np.uint8]  # shape (256,): codes of ACGT in `ALPHABET`
    complement: NDArray[np.uint8]  # shape (5,): complements of the codes of `ALPHABET`; M counts as its plain base
    separation: int  # largest distance of consecutive sites of a group


@dataclass(frozen=True, eq=False)
class Motif:
    """A methylation motif."""

    name: str
    pattern: str  # recognition site in IUPAC letters, on the methylated strand
    offset: int  # 0-based position of the methylated base, one of ACGT, in `pattern`
    model: str | None = None  # built-in R9.4 methylation model; None for a user's motif
    separation: int = 10  # largest distance of consecutive sites of a group

    @property
    def canonical(self) -> str:
        """The base behind the letter M."""
        return self.pattern[self.offset]

    @property
    def code(self) -> str:
        """The modification's code in MM: ``m`` or ``a``; ``G`` and ``T`` mean any modification of these bases."""
        return _CODES[self.canonical]

    @property
    def offset_forward(self) -> int:
        """Offset of the modified base from a site's reported start, in a forward record."""
        return self.offset

    @property
    def offset_reverse(self) -> int:
        """Offset of the base opposite to the modified one, in a reverse record."""
        return len(self.pattern) - 1 - self.offset

    @property
    def is_palindromic(self) -> bool:
        return reverse_complement(self.pattern) == self.pattern

    def codes(self, reverse: bool) -> MotifCodes:
        """Encode the motif for kernels, for forward or reverse records."""
        pattern = reverse_complement(self.pattern) if reverse else self.pattern
        masks = [sum(1 << "ACGT".index(base) for base in IUPAC[letter]) for letter in pattern]
        letter_bits, letter_codes = np.zeros(256, np.uint8), np.zeros(256, np.uint8)
        for i, base in enumerate("ACGT"):
            letter_bits[ord(base)] = 1 << i
            letter_codes[ord(base)] = ALPHABET.index(base)
        opposite = "".join(reverse_complement(self.canonical if base == "M" else base) for base in ALPHABET)
        return MotifCodes(
            np.array(masks, np.uint8),
            self.offset_reverse if reverse else self.offset_forward,
            letter_bits,
            letter_codes,
            np.array([ALPHABET.index(base) for base in opposite], np.uint8),
            self.separation,
        )


def reverse_complement(bases: str) -> str:
    """Return the reverse complement of upper-case IUPAC letters."""
    return bases[::-1].translate(_COMPLEMENT)


MOTIFS = {
    motif.name: motif
    for motif in (
        Motif("cpg", "CG", 0, "r9.4_450bps.cpg.6mer"),
        Motif("gpc", "GC", 1, "r9.4_450bps.gpc.6mer"),
        Motif("dam", "GATC", 1, "r9.4_450bps.dam.6mer"),
        Motif("dcm", "CCWGG", 1, "r9.4_450bps.dcm.6mer"),
    )
}


def motif_named(name: str) -> Motif:
    """Return a motif by name; raise `F5pyError` for an unknown one."""
    if name not in MOTIFS:
        raise F5pyError(f"unknown methylation motif {name!r}; choose one of: {', '.join(MOTIFS)}")
    return MOTIFS[name]


def parse_motif(text: str) -> Motif:
    """Parse a motif ``IUPAC[:OFFSET]`` such as ``CHG:0`` with the 0-based offset of the methylated base.

    Its name is the upper-case text with the offset. Raises `F5pyError` if the site is empty, too long, too ambiguous or
    not IUPAC, the offset is outside of it, or the methylated base is not one of ACGT.
    """
    where = f"motif {text!r}"
    pattern, colon, offset_text = text.partition(":")
    pattern = pattern.upper()
    if not pattern:
        raise F5pyError(f"{where}: no recognition site; give it in IUPAC letters, such as CHG:0")
    if len(pattern) > MAX_MOTIF_LENGTH:
        raise F5pyError(f"{where}: {len(pattern)} bases are too many; at most {MAX_MOTIF_LENGTH} are supported")
    for letter in pattern:
        if letter not in IUPAC:
            raise F5pyError(f"{where}: {letter!r} is no IUPAC letter of a DNA base; use {''.join(IUPAC)}")
    if colon and not (offset_text.isascii() and offset_text.isdigit() and len(offset_text) < 10):
        raise F5pyError(
            f"{where}: the offset {offset_text!r} is not a whole number; give the 0-based place of the methylated base"
        )
    offset = int(offset_text) if colon else 0
    if offset >= len(pattern):
        raise F5pyError(f"{where}: the offset is outside of the site; its bases are 0 to {len(pattern) - 1}")
    if pattern[offset] not in "ACGT":
        raise F5pyError(
            f"{where}: the methylated base, {pattern[offset]!r} at offset {offset}, is not one of ACGT; "
            "call one base at a time"
        )
    n_spellings = math.prod(len(IUPAC[letter]) for letter in pattern)
    if n_spellings > MAX_SPELLINGS:
        raise F5pyError(f"{where}: stands for {n_spellings} sequences; at most {MAX_SPELLINGS} are supported")
    return Motif(f"{pattern}:{offset}", pattern, offset)
