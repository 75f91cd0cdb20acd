"""Methylation motifs as data: recognition sites, their methylated spelling, and the model that knows them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError

#: The methylation alphabet; M is the methylated base.
ALPHABET = "ACGMT"


@dataclass(frozen=True, eq=False)
class Motif:
    """A kind of methylation.

    Attributes
    ----------
    name : str
    sites : tuple of str
        Recognition sites, all of one length, and closed under reverse complement.
    methylated : tuple of str
        The sites with M in the place of the methylated base.
    model : str
        Name of the built-in R9.4 methylation model.
    plain_base : str
        The base that M stands for.
    """

    name: str
    sites: tuple[str, ...]
    methylated: tuple[str, ...]
    model: str
    plain_base: str = "C"

    @cached_property
    def patterns(self) -> NDArray[np.uint8]:
        """Recognition sites as letters, shape (sites, length)."""
        return np.array([list(site.encode()) for site in self.sites], np.uint8)

    @cached_property
    def methylated_forward(self) -> NDArray[np.uint8]:
        """Codes of each methylated site on the forward strand, shape (sites, length)."""
        return np.array([[ALPHABET.index(base) for base in site] for site in self.methylated], np.uint8)

    @cached_property
    def methylated_reverse(self) -> NDArray[np.uint8]:
        """Codes on the reverse strand of each methylated site, opposite to the forward positions."""
        opposite = []
        for site in self.sites:
            partner = self.methylated[self.sites.index(reverse_complement(site))]
            opposite.append([ALPHABET.index(base) for base in reversed(partner)])
        return np.array(opposite, np.uint8)


def reverse_complement(bases: str) -> str:
    """The other strand of a sequence over ACGT."""
    return bases[::-1].translate(str.maketrans("ACGT", "TGCA"))


MOTIFS = {motif.name: motif for motif in (Motif("cpg", ("CG",), ("MG",), "r9.4_450bps.cpg.6mer"),)}


def motif_named(name: str) -> Motif:
    """The motif of that name; raises `F5pyError` for an unknown one."""
    if name not in MOTIFS:
        raise F5pyError(f"unknown methylation motif {name!r}; choose one of: {', '.join(MOTIFS)}")
    return MOTIFS[name]


def letter_codes() -> NDArray[np.uint8]:
    """Codes in `ALPHABET` of the letters ACGT, 0 for all others; shape (256,)."""
    codes = np.zeros(256, np.uint8)
    for base in "ACGT":
        codes[ord(base)] = ALPHABET.index(base)
    return codes


def complement_codes() -> NDArray[np.uint8]:
    """The code opposite to each code of `ALPHABET`; M, which is only ever placed as part of a site, maps to G."""
    return np.array([ALPHABET.index(base) for base in "TGCGA"], np.uint8)
