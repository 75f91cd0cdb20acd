"""Codes and ranks of k-mers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.errors import UsageError


def base_codes() -> NDArray[np.uint8]:
    """Return the codes 0 to 3 of ACGT in either case; uint8, shape (256,)."""
    codes = np.zeros(256, np.uint8)
    for code, letters in enumerate(("Aa", "Cc", "Gg", "TtUu")):
        for letter in letters:
            codes[ord(letter)] = code
    return codes


#: In a marked reference: a methylated base, and one opposite to it.
METHYLATED, OPPOSITE = ord("M"), ord("m")


class StrandCodes(NamedTuple):
    """Codes of reference letters in a pore model's alphabet, on either strand."""

    forward: NDArray[np.uint8]  # shape (256,)
    reverse: NDArray[np.uint8]  # shape (256,): of the complements
    n_letters: int  # of the alphabet


def strand_codes(alphabet: str) -> StrandCodes:
    """Return the codes for ``ACGT``, or for ``ACGMT`` in a marked reference."""
    of_base = np.array([alphabet.index(base) for base in "ACGT"], np.uint8)
    plain = base_codes()
    forward, reverse = of_base[plain], of_base[3 - plain]
    if "M" in alphabet:
        forward[METHYLATED] = reverse[OPPOSITE] = alphabet.index("M")
    return StrandCodes(forward, reverse, len(alphabet))


def kmer_digits(ranks: NDArray[np.integer], k: int, n_letters: int) -> NDArray[np.int8]:
    """Return the letter codes of k-mers by rank; int8, shape (n, k)."""
    return (ranks[:, np.newaxis] // n_letters ** np.arange(k - 1, -1, -1) % n_letters).astype(np.int8)


def trim_ranks(ranks: NDArray[np.int32], k: int, trim: int) -> NDArray[np.int32]:
    """Return the ranks of k-mers without `trim` bases at each end."""
    return ranks // 4**trim % np.int32(4 ** (k - 2 * trim))


def kmer_letters(ranks: NDArray[np.int32], k: int) -> NDArray[np.uint8]:
    """Return the letters of k-mers over ACGT by rank; uint8, shape (n, k). Negative ranks give N."""
    bits = np.arange(2 * (k - 1), -1, -2, dtype=ranks.dtype)
    letters = np.frombuffer(b"ACGT", np.uint8)[ranks[:, np.newaxis] >> bits & 3]
    letters[ranks < 0] = ord("N")
    return letters


def kmer_texts(ranks: NDArray[np.int32], k: int) -> list[str]:
    """Return k-mers over ACGT by rank as strings; negative ranks give N."""
    return kmer_letters(ranks, k).view(f"S{k}")[:, 0].astype(str).tolist()


def trimmed(k: int, view: int | None) -> int:
    """Return the hidden bases at each end of a k-mer's shown middle; raise `UsageError` for none."""
    if view is None:
        return 0
    if view > k or (k - view) % 2:
        sizes = ", ".join(str(size) for size in range(k - 2, 0, -2))
        raise UsageError(f"--kmer-view {view}: the pore model's k-mers have {k} bases; choose one of {sizes}")
    return (k - view) // 2
