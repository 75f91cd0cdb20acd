"""The index of a reference: its bases, and where each seed is.

Seeds are sorted bucket by bucket, so that building needs little more memory than the index has: a quarter of a byte a
base, and 8 bytes for each seed and each distinct one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError
from f5py.mapping.index.contigs import Contigs
from f5py.mapping.index.packed_bases import PackedBases
from f5py.mapping.settings import MapSettings
from f5py.threads.pool import WorkerPool, longest_first

#: Bases that a thread looks for seeds in at a time, at most and at least.
_MOST_BASES, _FEWEST_BASES = 1 << 20, 1 << 14
#: Bits of where the places of a key begin, and of the rest of it.
_START_BITS = 32
#: Entries of a bucket of the directory, about, as a power of two.
_ENTRIES = 4


class ReferenceIndex(NamedTuple):
    """An index."""

    names: list[str]  # contigs
    bases: PackedBases
    offsets: NDArray[np.int64]  # shape (n_contigs + 1,)
    # directory: shape (2 ** bits + 1,): first entry of each bucket: its index is made of the lowest bits of keys, the
    # lowest 12 of these before the others
    directory: NDArray[np.uint32]
    # entries: shape (n_keys + 1,): other bits of the key << 32 | first place, ascending in a bucket; the last one has
    # the number of places
    entries: NDArray[np.uint64]
    places: NDArray[np.int64]  # contig << 32 | last base << 1 | strand, ascending for each key
    counts: NDArray[np.int64]  # shape (n, 2): numbers of places, ascending, and how many keys have each
    k: int
    w: int
    hpc: bool
    # base << 2 | code of unknown bases that may be C or G but not A, the first of these
    ambiguous: NDArray[np.int64]

    @property
    def n_bases(self) -> int:
        """Number of bases of all contigs."""
        return int(self.offsets[-1])

    @property
    def n_keys(self) -> int:
        """Number of distinct keys."""
        return len(self.entries) - 1

    @property
    def bits(self) -> int:
        """Bits of an index into the directory."""
        return (len(self.directory) - 1).bit_length() - 1

    @property
    def seeds(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int64], int]:
        """What `f5py.mapping.index._reference_index_numba.SeedIndex` takes."""
        return self.directory, self.entries, self.places, self.bits

    def mid_occ(self, settings: MapSettings) -> int:
        """Largest number of places of a minimizer that is always used."""
        fraction = settings.mid_occ_frac
        if fraction >= 1:
            return int(fraction)
        n = self.n_keys
        if fraction <= 0 or n == 0:
            chosen = 2**31 - 1
        else:
            rank = min(int((1.0 - float(np.float32(fraction))) * n), n - 1)  # n for the smallest fractions
            chosen = int(self.counts[np.searchsorted(np.cumsum(self.counts[:, 1]), rank, "right"), 0]) + 1
        chosen = max(chosen, settings.min_mid_occ)
        if settings.max_mid_occ > settings.min_mid_occ:
            chosen = min(chosen, settings.max_mid_occ)
        return chosen


def build_index(contigs: Contigs, settings: MapSettings, pool: WorkerPool, piece: int = _MOST_BASES) -> ReferenceIndex:
    """Index the minimizers of contigs. Raises `InputFileError` if there are too many.

    Parameters
    ----------
    piece : int
        Bases that a thread takes at a time, a multiple of 64; the index does not depend on it.
    """
    from f5py.mapping.index._reference_index_numba import mark_minimizers
    from f5py.mapping.index._sketch_numba import Scheme

    names, bases, offsets, ambiguous = contigs
    k, w, hpc = settings.k, settings.w, bool(settings.hpc)
    marks = _Marks(bases, offsets, k, pool, piece)
    marks.run(mark_minimizers, Scheme(k, w, int(hpc)))
    seeds = marks.seeds(int(hpc), 1)
    del marks
    return ReferenceIndex(names, bases, offsets, *seeds.indexed(offsets, pool), k, w, hpc, ambiguous)


def index_kmers(contigs: Contigs, k: int, pool: WorkerPool) -> ReferenceIndex:
    """Index all k-mers; a place is the index of a k-mer's first base in all bases, and a key two bits for each base."""
    from f5py.mapping.index._reference_index_numba import KeyLayout, mark_kmers

    names, bases, offsets, ambiguous = contigs
    marks = _Marks(bases, offsets, k, pool, _MOST_BASES)
    marks.run(mark_kmers, KeyLayout(k, 0, 0, 0, 0))
    return ReferenceIndex(names, bases, offsets, *marks.seeds(0, 0).indexed(offsets, pool), k, 1, False, ambiguous)


class _Marks:
    """Marks of the bases that seeds end with, and the numbers of these by piece and bucket."""

    def __init__(
        self, bases: PackedBases, offsets: NDArray[np.int64], k: int, pool: WorkerPool, most_bases: int
    ) -> None:
        n = int(offsets[-1])
        self._bases, self._offsets, self._k, self._pool = bases, offsets, k, pool
        self._piece = min(most_bases, max(_FEWEST_BASES, -(-n // (4 * pool.n_threads) // 64) * 64))
        self._pieces = np.arange(-(-n // self._piece))
        self._marks = np.zeros(n // 64 + 1, np.uint64)
        self._counts = new_counts(len(self._pieces), k)

    def run(self, kernel: Callable[..., Any], scheme: Any) -> None:
        """Fill both."""
        self._pool.run(kernel, self._pieces, self._piece, self._bases, self._offsets, scheme, self._marks, self._counts)

    def seeds(self, hpc: int, is_hashed: int) -> SeedBuckets:
        """Write the seeds to their buckets."""
        from f5py.mapping.index._reference_index_numba import scatter_seeds

        seeds = SeedBuckets(self._counts, self._k, hpc, is_hashed)
        self._pool.run(
            scatter_seeds, self._pieces, self._piece, self._bases, self._marks, seeds.layout, seeds.begins,
            seeds.buckets,
        )  # fmt: skip
        return seeds


def new_counts(n_pieces: int, k: int) -> NDArray[np.uint32]:
    """Return zeros to count seeds with, by piece and bucket."""
    from f5py.mapping.index._reference_index_numba import BUCKET_BITS

    return np.zeros((n_pieces, 1 << min(BUCKET_BITS, 2 * k)), np.uint32)


class SeedBuckets:
    """Seeds by bucket, to be filled.

    Parameters
    ----------
    counts : uint32, shape (n_pieces, n_buckets)
        Of seeds; those of each piece come in their order.

    Attributes
    ----------
    layout : f5py.mapping.index._reference_index_numba.KeyLayout
    begins : int64, shape (n_pieces, n_buckets)
        Where the seeds of each piece begin.
    buckets : f5py.mapping.index._reference_index_numba.Buckets

    Raises
    ------
    InputFileError
        There are too many seeds.
    """

    def __init__(self, counts: NDArray[np.uint32], k: int, hpc: int, is_hashed: int) -> None:
        from f5py.mapping.index._reference_index_numba import PLACE_BITS, Buckets, KeyLayout

        sizes = counts.sum(axis=0, dtype=np.int64)
        begins = offsets_of(sizes)
        n = int(begins[-1])
        if n >= 1 << _START_BITS:
            raise InputFileError(f"the reference has {n} minimizers, of which {1 << _START_BITS} fit; give a larger -w")
        bucket_bits = counts.shape[1].bit_length() - 1
        bits = min(2 * k, max(bucket_bits, 2 * k - _START_BITS, n.bit_length() - _ENTRIES))
        self.layout = KeyLayout(k, hpc, is_hashed, bits, bucket_bits)
        self.begins = np.cumsum(counts, axis=0, dtype=np.int64)
        self.begins += begins[:-1] - counts
        is_wide = 2 * k - bucket_bits + PLACE_BITS > 64
        self.buckets = Buckets(begins, np.empty(n, np.uint64), np.empty(n * is_wide, np.uint64))

    def indexed(
        self, offsets: NDArray[np.int64], pool: WorkerPool
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """Make directory, entries, places and counts of the seeds; see `ReferenceIndex`."""
        from f5py.mapping.index._reference_index_numba import fill_entries, sort_buckets

        sizes = np.diff(self.buckets.begins)
        order = longest_first(sizes, np.ones(len(sizes), np.bool_))
        n_keys = np.zeros(len(sizes), np.int64)
        results: list[Any] = []
        pool.run(lambda *given: results.append(sort_buckets(*given)), order, self.buckets, self.layout, n_keys)
        first_keys = offsets_of(n_keys)
        directory = np.empty((1 << self.layout.bits) + 1, np.uint32)
        entries = np.empty(first_keys[-1] + 1, np.uint64)
        directory[-1], entries[-1] = first_keys[-1], len(self.buckets.words)
        pool.run(fill_entries, order, self.buckets, first_keys, self.layout, offsets, directory, entries)
        few = sum(one for one, _ in results)
        many, how_many = np.unique(np.concatenate([more for _, more in results]), return_counts=True)
        numbers = np.flatnonzero(few)
        counts = np.concatenate([np.stack([numbers, few[numbers]], axis=1), np.stack([many, how_many], axis=1)])
        return directory, entries, self.buckets.words.view(np.int64), counts.astype(np.int64)


def codes_of(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes of letters: A, C, G, T or U in either case are 0 to 3, others 4."""
    from f5py.mapping.index._sketch_numba import fill_codes

    codes = np.empty(len(letters), np.uint8)
    fill_codes(np.require(letters, np.uint8, ["C", "W"]), codes)
    return codes
