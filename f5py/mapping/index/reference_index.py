"""The index of a reference: its bases, and where each seed is.

Seeds are sorted bucket by bucket, so that building needs little more memory than the index has: a quarter of a byte a
base, and 8 bytes for each seed and each distinct one.
"""

# mypy: disable-error-code="assignment,arg-type"
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError
from f5py.jit.instructions import lowest_bit
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import appended
from f5py.mapping.index._sketch_numba import NONE, Minimizers, Scheme, fill_codes, hash_bits, sketch
from f5py.mapping.index.contigs import Contigs
from f5py.mapping.index.packed_bases import PackedBases, base_at, unpack
from f5py.mapping.settings import MapSettings
from f5py.threads.pool import WorkerPool, longest_first

#: Bases that a thread looks for seeds in at a time, at most and at least.
_MOST_BASES, _FEWEST_BASES = 1 << 20, 1 << 14
#: Bits of where the places of a key begin, and of the rest of it.
_START_BITS = 32
#: Entries of a bucket of the directory, about, as a power of two.
_ENTRIES = 4
#: Bits of the number of places in what `look_up` returns; the others say where they begin.
COUNT_BITS = 28
#: Lowest bits of a key that choose its bucket, at most.
BUCKET_BITS = 12
#: Bits of a base's index and its strand in a word of a bucket; the others are those of the key.
PLACE_BITS = 34
_MOST_PLACES = np.uint64((1 << COUNT_BITS) - 1)
_START = np.uint64(0xFFFFFFFF)
_PLACE = np.uint64((1 << PLACE_BITS) - 1)
#: Bits that are sorted by at a time.
_DIGIT = 11
#: Numbers of places below this are counted in an array.
_FEW_PLACES = 1 << 12
_1 = np.uint64(1)


class KeyLayout(NamedTuple):
    """How the bits of a key are divided."""

    k: int  # bases of a seed
    hpc: int  # 1 if runs of a base count as one
    is_hashed: int  # 1 for minimizers, 0 for all k-mers
    bits: int  # of an index into the directory
    bucket_bits: int


class Buckets(NamedTuple):
    """Seeds by bucket."""

    begins: NDArray[np.int64]  # shape (n_buckets + 1,)
    # words: shape (begins[-1],): other bits of the key << PLACE_BITS | base << 1 | strand; without the key if `keys`
    # has its bits
    words: NDArray[np.uint64]
    keys: NDArray[np.uint64]  # empty if they fit into the words


class SeedIndex(NamedTuple):
    """Where seeds are; see `ReferenceIndex`."""

    directory: NDArray[np.uint32]
    entries: NDArray[np.uint64]
    places: NDArray[np.int64]
    bits: int  # of an index into the directory


@exact_inner
def _slots(bases, first, begin, limit, k, hpc, wanted):
    """Read bases from `first` on to fill `wanted` window slots; return their end and number.

    The first `k` bases may be taken for others than they are.
    """
    mask = np.uint64((1 << (2 * k)) - 1)
    shift = np.uint64(2 * (k - 1))
    forward = np.uint64(0)
    backward = np.uint64(0)
    i = first
    n = 0
    while i < limit and n < wanted:
        c = base_at(bases, i)
        if c < 4:
            if hpc:
                while i + 1 < limit and base_at(bases, i + 1) == c:
                    i += 1
            forward = ((forward << np.uint64(2)) | np.uint64(c)) & mask
            backward = (backward >> np.uint64(2)) | (np.uint64(3 - c) << shift)
            if forward == backward:
                i += 1
                continue
        if i >= begin:
            n += 1
        i += 1
    return i, n


@exact_inner
def _begins_known(bases, first, limit, k, hpc):
    """Return whether `k` bases from `first` on, or runs of bases, are known."""
    i = first
    for _ in range(k):
        if i >= limit:
            return False
        c = base_at(bases, i)
        if c > 3:
            return False
        i += 1
        while hpc and i < limit and base_at(bases, i) == c:
            i += 1
    return True


@exact_inner
def _warm_begin(bases, contig_begin, begin, scheme):
    """Find where to begin so that minimizers from `begin` on are those of the whole contig.

    The window, the number of bases since an unknown one and the last k bases are then the same.
    """
    k, w, hpc = scheme
    wanted = w + 3 * k + 8
    step = wanted
    while True:
        first = begin - step
        if first <= contig_begin:
            return contig_begin
        if hpc:
            c = base_at(bases, first)
            while first > contig_begin and c < 4 and base_at(bases, first - 1) == c:
                first -= 1
        # only a k-mer of an even length can be its own reverse complement
        is_known = k % 2 == 1 or _begins_known(bases, first, begin, k, hpc)
        if is_known and _slots(bases, first, first, begin, k, hpc, wanted)[1] >= wanted:
            return first
        step *= 2


@exact_inner
def contig_at(offsets, place):
    """Find the contig of a base by its index among all bases."""
    low = 0
    high = offsets.shape[0] - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if offsets[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@exact_kernel
def mark_minimizers(queue, pieces, size, bases, offsets, scheme, marks, counts):
    """Mark the last bases of minimizers in pieces of `size` bases, and count them by bucket.

    Parameters
    ----------
    marks : uint64, shape (n_bases // 64 + 1,)
        Zero; a bit is set for each minimizer.
    counts : uint32, shape (n_pieces, n_buckets)
        Zero; filled.
    """
    k, w, _ = scheme
    ring = np.empty(2 * w + k, np.uint64)
    codes = np.empty(0, np.uint8)
    key = np.empty(0, np.uint64)
    place = np.empty(0, np.int64)
    mask = np.uint64(counts.shape[1] - 1)
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        begin = pieces[t] * size
        piece_end = min(begin + size, offsets[offsets.shape[0] - 1])
        contig = contig_at(offsets, begin)
        while begin < piece_end:
            while offsets[contig + 1] <= begin:
                contig += 1
            end = min(piece_end, offsets[contig + 1])
            first = _warm_begin(bases, offsets[contig], begin, scheme)
            last = end
            if end < offsets[contig + 1]:
                warm = _warm_begin(bases, offsets[contig], end, scheme)
                last = _slots(bases, warm, end, offsets[contig + 1], k, scheme.hpc, w + 1)[0]
            n = last - first
            if n > codes.shape[0]:
                codes = np.empty(n + (n >> 3), np.uint8)
                key = np.empty(codes.shape[0], np.uint64)
                place = np.empty(codes.shape[0], np.int64)
            unpack(bases, first, last, codes, 0)
            m = sketch(codes, 0, n, scheme, 0, ring, Minimizers(key, place), 0)
            for j in range(m):
                at = first + (place[j] >> 1)
                if at >= begin and at < end:
                    mark = _1 << np.uint64(at & 63)
                    if not marks[at >> 6] & mark:
                        marks[at >> 6] |= mark
                        counts[pieces[t], np.int64((key[j] >> np.uint64(8)) & mask)] += np.uint32(1)
            begin = end


@exact_kernel
def mark_kmers(queue, pieces, size, bases, offsets, layout, marks, counts):
    """Mark the last bases of all k-mers without unknown bases, and count them by bucket.

    Parameters
    ----------
    layout : KeyLayout
        Its `k` is read.
    """
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        begin = pieces[t] * size
        end = min(begin + size, offsets[offsets.shape[0] - 1])
        contig = contig_at(offsets, begin)
        first = max(begin - layout.k + 1, offsets[contig])
        length = 0
        for i in range(first, end):
            while offsets[contig + 1] <= i:
                contig += 1
                length = 0
            length = length + 1 if base_at(bases, i) < 4 else 0
            if length >= layout.k and i >= begin:
                marks[i >> 6] |= _1 << np.uint64(i & 63)
                key, _ = _seed_at(bases, i, layout)
                counts[pieces[t], np.int64(key) & (counts.shape[1] - 1)] += np.uint32(1)


@exact_inner
def _reversed_bases(word):
    """Reverse the order of the 32 bases of a word."""
    for shift, mask in (
        (np.uint64(2), np.uint64(0x3333333333333333)),
        (np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F)),
        (np.uint64(8), np.uint64(0x00FF00FF00FF00FF)),
        (np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
    ):
        word = ((word >> shift) & mask) | ((word & mask) << shift)
    return (word >> np.uint64(32)) | (word << np.uint64(32))


@exact_inner
def _seed_at(bases, i, layout):
    """Return key and strand of the seed of known bases that ends at `i`."""
    k = layout.k
    mask = np.uint64((1 << (2 * k)) - 1)
    if layout.hpc:
        forward = np.uint64(0)
        complement = np.uint64(0)
        for t in range(k):
            c = base_at(bases, i)
            forward |= np.uint64(c) << np.uint64(2 * t)
            complement |= np.uint64(3 - c) << np.uint64(2 * (k - 1 - t))
            if t + 1 < k:
                while base_at(bases, i) == c:
                    i -= 1
    else:
        begin = i - k + 1
        shift = np.uint64(2 * (begin & 31))
        found = bases.words[begin >> 5] >> shift
        if begin >> 5 != i >> 5:
            found |= bases.words[i >> 5] << (np.uint64(64) - shift)
        complement = ~found & mask
        forward = _reversed_bases(found) >> np.uint64(64 - 2 * k)
    if not layout.is_hashed:
        return forward, 0
    if forward < complement:
        return hash_bits(forward, mask), 0
    return hash_bits(complement, mask), 1


@exact_kernel
def scatter_seeds(queue, pieces, size, bases, marks, layout, begins, buckets):
    """Write the seeds that are marked to their buckets, ascending for each piece.

    Parameters
    ----------
    begins : int64, shape (n_pieces, n_buckets)
        Where those of each piece begin; overwritten.
    buckets : Buckets
        Filled.
    """
    words, keys = buckets.words, buckets.keys
    bucket_bits = np.uint64(layout.bucket_bits)
    mask = (1 << layout.bucket_bits) - 1
    is_wide = keys.shape[0] > 0
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        p = pieces[t]
        first = p * size >> 6
        for group in range(first, min(first + (size >> 6), marks.shape[0])):
            left = marks[group]
            while left:
                i = (group << 6) + lowest_bit(left)
                left &= left - _1
                key, strand = _seed_at(bases, i, layout)
                bucket = np.int64(key) & mask
                at = begins[p, bucket]
                begins[p, bucket] = at + 1
                place = np.uint64((i << 1) | strand)
                if not layout.is_hashed:
                    place -= np.uint64((layout.k - 1) << 1)
                if is_wide:
                    keys[at] = key >> bucket_bits
                    words[at] = place
                else:
                    words[at] = (key >> bucket_bits) << np.uint64(PLACE_BITS) | place


@exact_inner
def _sort_by_digit(values, carried, other_values, other_carried, low, n_bits, counts):
    """Sort stably by some bits of the values; other values may be carried."""
    shift = np.uint64(low)
    mask = np.uint64((1 << n_bits) - 1)
    for b in range((1 << n_bits) + 1):
        counts[b] = 0
    for i in range(values.shape[0]):
        counts[np.int64((values[i] >> shift) & mask) + 1] += 1
    for b in range(1, 1 << n_bits):
        counts[b] += counts[b - 1]
    for i in range(values.shape[0]):
        b = np.int64((values[i] >> shift) & mask)
        at = counts[b]
        counts[b] = at + 1
        other_values[at] = values[i]
        if carried.shape[0]:
            other_carried[at] = carried[i]
    for i in range(values.shape[0]):
        values[i] = other_values[i]
    for i in range(carried.shape[0]):
        carried[i] = other_carried[i]


@exact_kernel
def sort_buckets(queue, chosen, buckets, layout, n_keys):
    """Sort the seeds of buckets by key, those of a key in their order.

    Return how many keys have each number of places below `_FEW_PLACES`, and the numbers of the others.

    Parameters
    ----------
    n_keys : int64, shape (n_buckets,)
        Filled with the number of distinct keys.
    """
    few = np.zeros(_FEW_PLACES, np.int64)
    many = np.empty(16, np.int64)
    n_many = 0
    counts = np.empty((1 << _DIGIT) + 1, np.int64)
    is_wide = buckets.keys.shape[0] > 0
    other_values = np.empty(0, np.uint64)
    other_carried = np.empty(0, np.uint64)
    spread = layout.bits - layout.bucket_bits  # bits that come first in the order
    low = 0 if is_wide else PLACE_BITS
    for t in claimed_indices(work_counter(queue), chosen.shape[0]):
        b = chosen[t]
        begin, end = buckets.begins[b], buckets.begins[b + 1]
        if is_wide:
            values = buckets.keys[begin:end]
            carried = buckets.words[begin:end]
        else:
            values = buckets.words[begin:end]
            carried = buckets.keys
        if other_values.shape[0] < end - begin:
            other_values = np.empty(end - begin, np.uint64)
            other_carried = np.empty(end - begin if is_wide else 0, np.uint64)
        for from_bit, to_bit in ((spread, 2 * layout.k - layout.bucket_bits), (0, spread)):
            while from_bit < to_bit:
                n_bits = min(_DIGIT, to_bit - from_bit)
                _sort_by_digit(values, carried, other_values, other_carried, low + from_bit, n_bits, counts)
                from_bit += n_bits
        n = 0
        i = 0
        while i < values.shape[0]:
            key = values[i] >> np.uint64(low)
            j = i + 1
            while j < values.shape[0] and values[j] >> np.uint64(low) == key:
                j += 1
            if j - i < _FEW_PLACES:
                few[j - i] += 1
            else:
                many, n_many = appended(many, n_many, j - i)
            n += 1
            i = j
        n_keys[b] = n
    return few, many[:n_many]


@exact_kernel
def fill_entries(queue, chosen, buckets, first_keys, layout, offsets, directory, entries):
    """Write directory and entries of buckets, and turn their words into places.

    Parameters
    ----------
    buckets : Buckets
        Sorted.
    first_keys : int64, shape (n_buckets,)
        Keys of the buckets before.
    directory, entries : uint32, uint64
        Filled; see `ReferenceIndex`.
    """
    words, keys = buckets.words, buckets.keys
    is_wide = keys.shape[0] > 0
    spread = layout.bits - layout.bucket_bits
    mask = np.uint64((1 << spread) - 1)
    for t in claimed_indices(work_counter(queue), chosen.shape[0]):
        b = chosen[t]
        n = first_keys[b]
        slot = b << spread
        before = NONE
        begin = np.int64(0)  # of the contig
        end = np.int64(0)
        contig = np.int64(0)
        for i in range(buckets.begins[b], buckets.begins[b + 1]):
            key = keys[i] if is_wide else words[i] >> np.uint64(PLACE_BITS)
            if key != before:
                this = (b << spread) + np.int64(key & mask)
                while slot <= this:
                    directory[slot] = n
                    slot += 1
                entries[n] = (key >> np.uint64(spread)) << np.uint64(32) | np.uint64(i)
                n += 1
                before = key
            place = np.int64(words[i] & _PLACE)
            base = place >> 1
            if not layout.is_hashed:
                words[i] = np.uint64(base)
                continue
            if base < begin or base >= end:
                contig = contig_at(offsets, base)
                begin = offsets[contig]
                end = offsets[contig + 1]
            words[i] = np.uint64((contig << 32) | ((base - begin) << 1) | (place & 1))
        while slot < (b + 1) << spread:
            directory[slot] = n
            slot += 1


@exact_inner
def look_up(index, key):
    """Find the places of a key: first place << COUNT_BITS | number of places, or 0."""
    first = min(index.bits, BUCKET_BITS)
    spread = index.bits - first
    bucket = np.int64(key) & ((1 << first) - 1)
    slot = (bucket << spread) + (np.int64(key >> np.uint64(first)) & ((1 << spread) - 1))
    rest = key >> np.uint64(index.bits)
    for e in range(np.int64(index.directory[slot]), np.int64(index.directory[slot + 1])):
        entry = index.entries[e]
        if entry >> np.uint64(32) == rest:
            start = entry & _START
            n = min((index.entries[e + 1] & _START) - start, _MOST_PLACES)
            return np.int64(start << np.uint64(COUNT_BITS) | n)
    return np.int64(0)


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
    def seeds(self) -> SeedIndex:
        """Arrays for kernels."""
        return SeedIndex(self.directory, self.entries, self.places, self.bits)

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
    return _indexed(contigs, settings.k, settings.w, bool(settings.hpc), True, pool, piece)


def index_kmers(contigs: Contigs, k: int, pool: WorkerPool) -> ReferenceIndex:
    """Index all k-mers by two bits a base; a place is the offset of a k-mer's first base."""
    return _indexed(contigs, k, 1, False, False, pool)


def _indexed(
    contigs: Contigs, k: int, w: int, hpc: bool, is_hashed: bool, pool: WorkerPool, most_bases: int = _MOST_BASES
) -> ReferenceIndex:
    """Mark the last bases of seeds, sort the seeds by bucket, and make the index of them."""
    names, bases, offsets, ambiguous = contigs
    piece = min(most_bases, max(_FEWEST_BASES, -(-int(offsets[-1]) // (4 * pool.n_threads) // 64) * 64))
    pieces = np.arange(-(-int(offsets[-1]) // piece))
    marks = np.zeros(int(offsets[-1]) // 64 + 1, np.uint64)
    bucket_bits = min(BUCKET_BITS, 2 * k)
    counts = np.zeros((len(pieces), 1 << bucket_bits), np.uint32)
    kernel, scheme = (mark_minimizers, Scheme(k, w, int(hpc))) if is_hashed else (mark_kmers, KeyLayout(k, 0, 0, 0, 0))
    pool.run(kernel, pieces, piece, bases, offsets, scheme, marks, counts)
    begins = offsets_of(counts.sum(axis=0, dtype=np.int64))
    n = int(begins[-1])
    if n >= 1 << _START_BITS:
        raise InputFileError(f"the reference has {n} minimizers, of which {1 << _START_BITS} fit; give a larger -w")
    bits = min(2 * k, max(bucket_bits, 2 * k - _START_BITS, n.bit_length() - _ENTRIES))
    layout = KeyLayout(k, int(hpc), int(is_hashed), bits, bucket_bits)
    is_wide = 2 * k - bucket_bits + PLACE_BITS > 64
    buckets = Buckets(begins, np.empty(n, np.uint64), np.empty(n * is_wide, np.uint64))
    of_pieces = np.cumsum(counts, axis=0, dtype=np.int64)
    of_pieces += begins[:-1] - counts
    pool.run(scatter_seeds, pieces, piece, bases, marks, layout, of_pieces, buckets)
    del marks, counts, of_pieces  # large ones
    sizes = np.diff(begins)
    order = longest_first(sizes, np.ones(len(sizes), np.bool_))
    n_keys = np.zeros(len(sizes), np.int64)
    results: list[Any] = []
    pool.run(lambda *given: results.append(sort_buckets(*given)), order, buckets, layout, n_keys)
    first_keys = offsets_of(n_keys)
    directory, entries = np.empty((1 << bits) + 1, np.uint32), np.empty(first_keys[-1] + 1, np.uint64)
    directory[-1], entries[-1] = first_keys[-1], n
    pool.run(fill_entries, order, buckets, first_keys, layout, offsets, directory, entries)
    few = sum(one for one, _ in results)
    many, how_many = np.unique(np.concatenate([more for _, more in results]), return_counts=True)
    numbers = np.flatnonzero(few)
    of_places = np.concatenate([np.stack([numbers, few[numbers]], axis=1), np.stack([many, how_many], axis=1)])
    places = buckets.words.view(np.int64)
    return ReferenceIndex(
        names, bases, offsets, directory, entries, places, of_places.astype(np.int64), k, w, hpc, ambiguous
    )


def codes_of(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes of letters: A, C, G, T or U in either case are 0 to 3, others 4."""
    codes = np.empty(len(letters), np.uint8)
    fill_codes(np.require(letters, np.uint8, ["C", "W"]), codes)
    return codes
