"""Held-out bases of reads: a model is tested on them, and never trained.

In pile-ups, other reads share the sites and k-mers of a held-out read, so that whole stretches of the reference are
held out there, in all reads; elsewhere whole reads are.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.core.windows import Windows
from f5py.jit.kernel import kernel

#: Bases of a stretch. A group of sites hardly ever lies in more than two.
BLOCK = 500
#: Alignments over a stretch from which reads count as piled up.
PILE = 5
#: What a base is used for.
LEARNT, TESTED, UNUSED = 0, 1, 2
#: Stretches are chosen by the fractions of multiples of the golden ratio, which are spread evenly from the first on.
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)
#: A letter of a site of unknown state; masks bases of other uses.
UNKNOWN = ord("a")


@kernel
def held_out(text, offsets, share, chosen):
    """Mark the held-out fraction of names in `chosen`, reproducibly by a hash.

    Parameters
    ----------
    text, offsets : uint8, int64, shape (offsets[-1],), (n + 1,)
        Names.
    """
    limit = np.uint64(share * 2.0**32)
    for i in range(chosen.shape[0]):
        value = np.uint32(2166136261)
        for at in range(offsets[i], offsets[i + 1]):
            value = np.uint32((np.uint32(value ^ np.uint32(text[at]))) * np.uint32(16777619))
        # the last bits of similar names are mixed into the first ones
        value = np.uint32(value ^ (value >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
        value = np.uint32(value) ^ (np.uint32(value) >> np.uint32(12))
        chosen[i] = np.uint64(np.uint32(value)) < limit


class HeldOut:
    """Held-out bases of several alignment files."""

    def __init__(self, share: float, contigs: Sequence[str], lengths: Sequence[int]) -> None:
        self.share = share
        self._number = {name: i for i, name in enumerate(contigs)}
        self._first = offsets_of(-(-np.array(lengths, np.int64) // BLOCK))
        self._changes = np.zeros(self._first[-1] + 1, np.int64)
        self._is_pile = np.zeros(self._first[-1], np.bool_)
        self._is_tested = np.zeros(self._first[-1], np.bool_)

    @property
    def n_stretches(self) -> int:
        """Number of stretches with pile-ups."""
        return int(self._is_pile.sum())

    def numbers_of(self, contigs: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of a file's contigs, -1 for unknown ones."""
        return np.array([self._number.get(name, -1) for name in contigs], np.int64)

    def count(self, contig: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Add alignments by contig number (-1: skipped), start and end, 0-based, half-open."""
        is_here = (contig >= 0) & (start >= 0) & (end > start)
        contig, start, end = contig[is_here], start[is_here], end[is_here]
        last = self._first[contig + 1] - 1
        np.add.at(self._changes, np.minimum(self._first[contig] + start // BLOCK, last), 1)
        np.add.at(self._changes, np.minimum(self._first[contig] + (end - 1) // BLOCK, last) + 1, -1)

    def choose(self) -> None:
        """Choose the stretches, once all alignments are counted."""
        self._is_pile = np.cumsum(self._changes[:-1]) >= PILE
        piles = np.flatnonzero(self._is_pile)
        chosen = (np.arange(len(piles)) * _GOLDEN + 0.5) % 1.0 < self.share
        if self.share > 0 and len(piles) > 1 and not chosen.any():
            chosen[len(piles) // 2] = True
        self._is_tested[:] = False
        self._is_tested[piles[chosen]] = True

    def uses(self, batch: ReadBatch, numbers: NDArray[np.int64], windows: Windows | None) -> NDArray[np.uint8]:
        """Return the use of each base of a batch's reference segments: `LEARNT`, `TESTED` or `UNUSED`, uint8."""
        alignments = batch.alignments
        sizes = np.diff(alignments.reference_offsets)
        read = np.repeat(np.arange(len(sizes)), sizes)
        position = np.arange(len(read)) - (alignments.reference_offsets[:-1] - alignments.start)[read]
        uses = names_in_share(batch.names, self.share)[read].astype(np.uint8)
        number = np.append(numbers, -1)[alignments.contig][read]
        block = self._first[number] + position // BLOCK
        inside = np.flatnonzero((number >= 0) & (block < self._first[number + 1]))
        piled = inside[self._is_pile[block[inside]]]
        uses[piled] = self._is_tested[block[piled]]
        if windows is not None:
            uses[~windows.contain(alignments.contig[read], position, position)] = UNUSED
        return uses


def reads_with(batch: ReadBatch, uses: NDArray[np.uint8], use: int) -> NDArray[np.bool_]:
    """Return which reads have a base of this use, such as training; bool, shape (n,)."""
    before = np.concatenate([[0], np.cumsum(uses == use)])
    offsets = batch.alignments.reference_offsets
    return before[offsets[1:]] > before[offsets[:-1]]


def names_in_share(names: Names, share: float) -> NDArray[np.bool_]:
    """Return the mask of a fraction of names, reproducibly."""
    chosen = np.zeros(len(names), np.bool_)
    held_out(names.text, names.offsets, share, chosen)
    return chosen
