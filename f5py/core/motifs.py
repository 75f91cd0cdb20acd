"""Methylation motifs as data: where they occur, which of their bases is methylated, and the model that knows it.

A motif is one IUPAC pattern with the place of its methylated base. Everything is stated in the coordinates of the
reference's forward strand: a forward record has its sites where the pattern occurs, a reverse record where the
pattern's reverse complement does. Both are the same places for the motifs that are their own reverse complement (CG,
GC, GATC, CCWGG); of another motif, such as CHG, a record shows only the sites of its own strand. A site's reported
start is the first base of its occurrence on the forward strand, whatever the strand of the record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError

#: The methylation alphabet; M is the methylated base.
ALPHABET = "ACGMT"

#: IUPAC letter -> the bases that it stands for.
IUPAC = {
    "A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip

#: A group's window reaches 10 bases after the first base of its last site, and must hold that site.
MAX_MOTIF_LENGTH = 11
#: A motif that stands for more sequences is hardly a recognition site.
MAX_SPELLINGS = 256

_COMPLEMENT = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")
#: Complement of every upper-case base by its code; other letters are unchanged. uint8, shape (256,).
COMPLEMENTS = np.arange(256, dtype=np.uint8)
COMPLEMENTS[list(b"ACGTU")] = list(b"TGCAA")
#: Base -> code of its modification in the SAM tags; for G and T, the code for any modification of that base.
_CODES = {"C": "m", "A": "a", "G": "G", "T": "T"}


class MotifCodes(NamedTuple):
    """A motif on one strand, as the jitted loops take it."""

    # shape (length,): bases that each position may hold, as bits of `letter_bits`, in forward coordinates
    masks: NDArray[np.uint8]
    offset: int  # where in the occurrence the methylated base is, in forward coordinates
    # letter_bits, letter_codes: shape (256,): of the letters ACGT: a bit each, 0 for all other letters; and their codes
    # in `ALPHABET`
    letter_bits: NDArray[np.uint8]
    letter_codes: NDArray[np.uint8]
    # shape (5,): the code opposite to each code of `ALPHABET`. M is opposite to what its plain base is opposite to.
    complement: NDArray[np.uint8]
    separation: int  # consecutive sites at most this far apart form one group


@dataclass(frozen=True, eq=False)
class Motif:
    """A kind of methylation."""

    name: str
    pattern: str  # the recognition site in IUPAC letters, on the strand that is methylated
    offset: int  # 0-based place of the methylated base in `pattern`; it is one of the letters ACGT
    # name of the built-in R9.4 methylation model; None for a user's motif, which needs a model file
    model: str | None = None
    separation: int = 10  # consecutive sites whose starts are at most this far apart are called as one group

    @property
    def canonical(self) -> str:
        """The base that M stands for: the one that is methylated, or is not."""
        return self.pattern[self.offset]

    @property
    def code(self) -> str:
        """The modification's code in the MM tag of SAM records.

        ``m`` (5-methylcytosine) for C and ``a`` (6-methyladenine) for A; G and T have no methylation that is
        commonly called and get the tag's code for any modification of the base, ``G`` and ``T``.
        """
        return _CODES[self.canonical]

    @property
    def offset_forward(self) -> int:
        """Offset of the modified base from a site's reported start, in a forward record."""
        return self.offset

    @property
    def offset_reverse(self) -> int:
        """Offset of the base opposite to the modified one from a site's reported start, in a reverse record."""
        return len(self.pattern) - 1 - self.offset

    @property
    def is_palindromic(self) -> bool:
        """Whether both strands have their sites at the same places."""
        return reverse_complement(self.pattern) == self.pattern

    def codes(self, reverse: bool) -> MotifCodes:
        """Encode the motif for the jitted loops, for forward or for reverse records."""
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
    """Return the reverse complement of a sequence of upper-case IUPAC letters."""
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
    """Look up a motif by name; raises `F5pyError` for an unknown one."""
    if name not in MOTIFS:
        raise F5pyError(f"unknown methylation motif {name!r}; choose one of: {', '.join(MOTIFS)}")
    return MOTIFS[name]


def parse_motif(text: str) -> Motif:
    """Read a user's motif such as ``CHG:0`` or ``GATC:1``.

    Raises `F5pyError` if the site is empty, too long, too ambiguous or has other letters; the offset is no number or
    outside of the site; the methylated base is not one of ACGT. The motif's name is the text in upper case with the
    offset; it has no built-in model.

    Parameters
    ----------
    text : str
        ``IUPAC[:OFFSET]``: the recognition site in IUPAC letters of either case, and the 0-based place of its
        methylated base; without it, the first base.
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
