"""The index of a reference: its bases, and where each minimizer is.

Memory: 16 bytes for every place of the hash table, of which there are 1.5 to 3 times as many as distinct minimizers,
8 bytes a minimizer and one a base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.mapping.settings import MapSettings
from f5py.threads.pool import WorkerPool, longest_first


class ReferenceIndex(NamedTuple):
    """An index."""

    names: list[str]  # contigs
    bases: NDArray[np.uint8]  # shape (offsets[-1],): 0 to 3 for A, C, G, T; 4 for others
    offsets: NDArray[np.int64]  # shape (n_contigs + 1,)
    # table: shape (2 * n_slots,): hash table with open addressing: key, then first place << 28 | number of places
    table: NDArray[np.uint64]
    places: NDArray[np.int64]  # contig << 32 | last base << 1 | strand, ascending for each key
    counts: NDArray[np.int32]  # shape (n_keys,): numbers of places of the keys, ascending
    k: int
    w: int
    hpc: bool

    def mid_occ(self, settings: MapSettings) -> int:
        """Largest number of places of a minimizer that is always used."""
        fraction = settings.mid_occ_frac
        if fraction >= 1:
            return int(fraction)
        n = len(self.counts)
        if fraction <= 0 or n == 0:
            chosen = 2**31 - 1
        else:
            place = int((1.0 - float(np.float32(fraction))) * n)  # n for the smallest fractions
            chosen = int(self.counts[min(place, n - 1)]) + 1
        chosen = max(chosen, settings.min_mid_occ)
        if settings.max_mid_occ > settings.min_mid_occ:
            chosen = min(chosen, settings.max_mid_occ)
        return chosen


def build_index(
    names: Sequence[str], bases: NDArray[np.uint8], offsets: NDArray[np.int64], settings: MapSettings, pool: WorkerPool
) -> ReferenceIndex:
    """Index contigs.

    Parameters
    ----------
    names : sequence of str
    bases : uint8, shape (offsets[-1],)
        Codes.
    offsets : int64, shape (n + 1,)
    settings : MapSettings
    pool : WorkerPool
    """
    from f5py.mapping.index._reference_index_numba import close_up, sketch_contigs
    from f5py.mapping.index._sketch_numba import Minimizers, Scheme

    lengths = np.diff(offsets)
    k, w, hpc = settings.k, settings.w, int(settings.hpc)
    keys = np.empty(len(bases), np.uint64)
    places = np.empty(len(bases), np.int64)
    n_found = np.zeros(len(lengths), np.int64)
    contigs = longest_first(lengths, np.ones(len(lengths), np.bool_))
    pool.run(sketch_contigs, contigs, bases, offsets, Scheme(k, w, hpc), Minimizers(keys, places), n_found)
    n = close_up(offsets, n_found, keys, places)
    found = [keys[:n].copy(), places[:n].copy()]
    del keys, places
    return indexed(names, bases, offsets, found, k, w, bool(hpc))


def indexed(
    names: Sequence[str], bases: NDArray[np.uint8], offsets: NDArray[np.int64], found: list[NDArray], k: int, w: int,
    hpc: bool,
) -> ReferenceIndex:  # fmt: skip
    """Make an index of seeds.

    Parameters
    ----------
    names, bases, offsets, k, w, hpc
        See `ReferenceIndex`.
    found : list of two arrays
        Keys of the seeds, uint64, in the order of the reference, and their places, int64. Emptied: nobody should keep
        these while the table is made.
    """
    from f5py.mapping.index._reference_index_numba import count_keys, fill_table, sort_by_key

    keys, places = found
    found.clear()
    n = len(keys)
    other_keys, other_places = np.empty_like(keys), np.empty_like(places)
    if sort_by_key(keys, places, other_keys, other_places, n, 2 * k):
        keys, places = other_keys, other_places
    del other_keys, other_places
    counts = np.empty(n, np.int32)
    n_keys = count_keys(keys, n, counts)
    counts = counts[:n_keys].copy()  # what is behind goes
    n_slots = 16
    while n_slots < 1.5 * n_keys:
        n_slots *= 2
    table = np.empty(2 * n_slots, np.uint64)
    fill_table(keys, places, counts, n_keys, table)
    counts.sort()
    return ReferenceIndex(list(names), bases, offsets, table, places, counts, k, w, hpc)


def codes_of(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes of letters: A, C, G, T or U in either case are 0 to 3, others 4."""
    from f5py.mapping.index._sketch_numba import fill_codes

    codes = np.empty(len(letters), np.uint8)
    fill_codes(np.require(letters, np.uint8, ["C", "W"]), codes)
    return codes


def contig_offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    """Offsets of contigs from their lengths."""
    return offsets_of(np.asarray(lengths, np.int64))
