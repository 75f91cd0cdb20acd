"""Indices of minimap2 2.x in files (``.mmi``), of one or several parts.

A part has the names and lengths of its contigs, its minimizers by bucket, each with a table of keys in any order, and
its bases. All numbers are little-endian, and nothing is aligned. There are no checksums.
"""

# mypy: disable-error-code="assignment,arg-type"
from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import DamagedValueError, InputFileError
from f5py.io.files.mapped_file import MappedFile
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.index.packed_bases import BasePacker
from f5py.mapping.index.reference_index import PLACE_BITS, ReferenceIndex, SeedBuckets, new_counts
from f5py.threads.pool import WorkerPool

MAGIC = b"MMI"
_VERSION = 2
_HEADER = struct.Struct("<5I")
_HPC, _NO_BASES, _NO_NAMES = 1, 2, 4
_MOST_BASES, _MOST_WINDOW, _MOST_BITS = 28, 255, 28
#: Buckets that a thread reads at a time, and bases that are expanded at a time.
_BUCKETS, _EXPANDED = 64, 1 << 22


_LETTERS = np.frombuffer(b"ACGTNNNNNNNNNNNN", np.uint8).copy()
_LOW = np.uint64(0xFFFFFFFF)
_1 = np.uint64(1)


class MmiBuckets(NamedTuple):
    """Buckets of all parts of a file."""

    text: NDArray[np.uint8]  # the file
    # begins, numbers, first_contigs, end_contigs: shape (n_buckets,): where a bucket begins, its number in its part,
    # and the contigs of that part
    begins: NDArray[np.int64]
    numbers: NDArray[np.int64]
    first_contigs: NDArray[np.int64]
    end_contigs: NDArray[np.int64]
    bits: int  # of a bucket's number


@exact_inner
def _number(text, at, n_bytes):
    """Read a little-endian number."""
    value = np.uint64(0)
    for i in range(n_bytes):
        value |= np.uint64(text[at + i]) << np.uint64(8 * i)
    return value


@exact_kernel
def find_buckets(text, at, begins):
    """Fill the offsets of a part's buckets; return the end of the last one, or -1 if beyond the file's.

    Parameters
    ----------
    text : uint8
        The file.
    at : int
        Where the first one begins.
    begins : int64, shape (n_buckets,)
        Filled.
    """
    size = text.shape[0]
    for b in range(begins.shape[0]):
        begins[b] = at
        if at + 4 > size:
            return -1
        at += 4 + 8 * np.int64(_number(text, at, 4))
        if at + 4 > size:
            return -1
        at += 4 + 16 * np.int64(_number(text, at, 4))
        if at > size:
            return -1
    return at


@exact_kernel
def count_places(queue, pieces, size, buckets, counts, is_damaged):
    """Count the places in pieces of `size` buckets by the index's own buckets.

    Parameters
    ----------
    buckets : MmiBuckets
    counts : uint32, shape (n_pieces, n_own_buckets)
        Zero; filled.
    is_damaged : bool, shape (1,)
        Set if there are places that are not in the file.
    """
    text = buckets.text
    mask = counts.shape[1] - 1
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        first = pieces[t] * size
        for b in range(first, min(first + size, buckets.begins.shape[0])):
            at = buckets.begins[b]
            n_places = np.int64(_number(text, at, 4))
            at += 4 + 8 * n_places
            n_keys = np.int64(_number(text, at, 4))
            at += 4
            n = 0
            for _ in range(n_keys):
                key = _number(text, at, 8)
                value = _number(text, at + 8, 8)
                at += 16
                count = np.int64(1)
                if not key & _1:
                    count = np.int64(value & _LOW)
                    n += count
                    if np.int64(value >> np.uint64(32)) + count > n_places:
                        is_damaged[0] = True
                own = np.int64(((key >> _1) << np.uint64(buckets.bits)) & np.uint64(mask))
                own |= buckets.numbers[b] & mask
                counts[pieces[t], own] += np.uint32(count)
            if n != n_places:
                is_damaged[0] = True


@exact_kernel
def scatter_places(queue, pieces, size, buckets, offsets, layout, begins, seeds, is_damaged):
    """Write the places of pieces of `size` buckets to the index's own buckets.

    Parameters
    ----------
    offsets : int64, shape (n_contigs + 1,)
    layout : f5py.mapping.index.reference_index.KeyLayout
    begins : int64, shape (n_pieces, n_own_buckets)
        Where those of each piece begin; overwritten.
    seeds : f5py.mapping.index.reference_index.Buckets
        Filled.
    """
    text = buckets.text
    mask = (1 << layout.bucket_bits) - 1
    most = np.uint64(1) << np.uint64(2 * layout.k)
    is_wide = seeds.keys.shape[0] > 0
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        p = pieces[t]
        for b in range(p * size, min((p + 1) * size, buckets.begins.shape[0])):
            places = buckets.begins[b] + 4
            at = places + 8 * np.int64(_number(text, places - 4, 4))
            n_keys = np.int64(_number(text, at, 4))
            at += 4
            for _ in range(n_keys):
                key = _number(text, at, 8)
                value = _number(text, at + 8, 8)
                at += 16
                hashed = ((key >> _1) << np.uint64(buckets.bits)) | np.uint64(buckets.numbers[b])
                if hashed >= most:
                    is_damaged[0] = True
                own = np.int64(hashed) & mask
                rest = hashed >> np.uint64(layout.bucket_bits)
                is_one = key & _1 != 0
                begin = places + 8 * np.int64(value >> np.uint64(32))
                for i in range(1 if is_one else np.int64(value & _LOW)):
                    place = value if is_one else _number(text, begin + 8 * i, 8)
                    contig = np.int64(place >> np.uint64(32)) + buckets.first_contigs[b]
                    last = np.int64(place & _LOW) >> 1
                    if contig < 0 or contig >= buckets.end_contigs[b]:
                        is_damaged[0] = True
                        contig = buckets.first_contigs[b]
                    if last < layout.k - 1 or last >= offsets[contig + 1] - offsets[contig]:
                        is_damaged[0] = True
                        last = 0
                    word = np.uint64((offsets[contig] + last) << 1) | (place & _1)
                    to = begins[p, own]
                    begins[p, own] = to + 1
                    if is_wide:
                        seeds.keys[to] = rest
                        seeds.words[to] = word
                    else:
                        seeds.words[to] = rest << np.uint64(PLACE_BITS) | word


@exact_kernel
def expand_bases(text, at, begin, letters):
    """Write the letters of bases from `begin` on.

    Parameters
    ----------
    text : uint8
        The file; the bases have four bits each from ``text[at]`` on.
    at, begin : int
    letters : uint8, shape (n,)
        Filled.
    """
    for i in range(letters.shape[0]):
        byte = text[at + ((begin + i) >> 1)]
        letters[i] = _LETTERS[(byte >> np.uint8(4 * ((begin + i) & 1))) & np.uint8(15)]


class _Parts:
    """Parts of a file: contigs, where buckets begin, and bases."""

    def __init__(self, text: NDArray[np.uint8]) -> None:
        self._text = text
        self.names: list[str] = []
        self.lengths: list[int] = []
        self.scheme = (0, 0, 0, 0)  # w, k, bits of a bucket, 1 for homopolymer compression
        self._buckets: list[NDArray[np.int64]] = []
        self._contigs: list[tuple[int, int]] = []
        self.bases: list[tuple[int, int]] = []  # where those of a part begin, and their number
        at = 0
        while at < len(text):
            at = self._add(at)

    def _add(self, at: int) -> int:
        if self._bytes(at, 4) != MAGIC + bytes([_VERSION]):
            raise DamagedValueError("a part does not begin as one")
        w, k, bits, n_contigs, flags = _HEADER.unpack(self._bytes(at + 4, _HEADER.size))
        at += 4 + _HEADER.size
        scheme = (w, k, bits, flags & _HPC)
        is_known = 0 < w <= _MOST_WINDOW and 0 < k <= _MOST_BASES and 0 < bits <= min(2 * k, _MOST_BITS)
        if not is_known or self.scheme not in (scheme, (0, 0, 0, 0)):
            raise DamagedValueError("its header is none of an index")
        if flags & _NO_BASES:
            raise InputFileError(
                "was written with --idx-no-seq, and alignment needs bases; write it without this option"
            )
        if flags & _NO_NAMES:
            raise InputFileError("has no names of contigs; give the FASTA file that it was made of")
        self.scheme = scheme
        first = len(self.names)
        for _ in range(n_contigs):
            size = self._bytes(at, 1)[0]
            name, length = self._bytes(at + 1, size), self._bytes(at + 1 + size, 4)
            self.names.append(name.decode("utf-8", "surrogateescape"))
            self.lengths.append(int.from_bytes(length, "little"))
            at += 5 + size
        begins = np.empty(1 << bits, np.int64)
        at = int(find_buckets(self._text, at, begins))
        n_bases = sum(self.lengths[first:])
        end = at + (n_bases + 7) // 8 * 4
        if at < 0 or end > len(self._text):
            raise DamagedValueError("it is truncated")
        self._buckets.append(begins)
        self._contigs.append((first, len(self.names)))
        self.bases.append((at, n_bases))
        return end

    def _bytes(self, at: int, n: int) -> bytes:
        if at + n > len(self._text):
            raise DamagedValueError("it is truncated")
        return self._text[at : at + n].tobytes()

    def buckets(self) -> MmiBuckets:
        """Return the buckets of all parts."""
        n = len(self._buckets[0])
        firsts, ends = np.repeat(np.array(self._contigs, np.int64), n, axis=0).T.copy()
        numbers = np.tile(np.arange(n), len(self._buckets))
        return MmiBuckets(self._text, np.concatenate(self._buckets), numbers, firsts, ends, self.scheme[2])


def read_mmi(path: str, pool: WorkerPool) -> ReferenceIndex:
    """Read an index of minimap2; several parts become one.

    Raises `InputFileError` if it is damaged, of another version, or has no bases or names.
    """
    try:
        text = MappedFile(path).text
        if text[:4].tobytes() != MAGIC + bytes([_VERSION]):
            raise InputFileError("is an index of another version of minimap2; give the FASTA file that it was made of")
        parts = _Parts(text)
        if not parts.names or "" in parts.names or len(set(parts.names)) < len(parts.names):
            raise InputFileError("has contigs without names of their own; give the FASTA file that it was made of")
        w, k, _, hpc = parts.scheme
        offsets = offsets_of(np.array(parts.lengths, np.int64))
        buckets = parts.buckets()
        pieces = np.arange(-(-len(buckets.begins) // _BUCKETS))
        counts, is_damaged = new_counts(len(pieces), k), np.zeros(1, np.bool_)
        pool.run(count_places, pieces, _BUCKETS, buckets, counts, is_damaged)
        if is_damaged[0]:
            raise DamagedValueError("its places are not in it")
        seeds = SeedBuckets(counts, k, hpc, 1)
        pool.run(
            scatter_places, pieces, _BUCKETS, buckets, offsets, seeds.layout, seeds.begins, seeds.buckets, is_damaged
        )
        if is_damaged[0]:
            raise DamagedValueError("its places are outside of the reference")
        packer = BasePacker(pool)
        for at, n_bases in parts.bases:
            for begin in range(0, n_bases, _EXPANDED):
                letters = np.empty(min(_EXPANDED, n_bases - begin), np.uint8)
                expand_bases(text, at, begin, letters)
                packer.add(letters)
        bases, _ = packer.packed()
        nothing = np.empty(0, np.int64)
        return ReferenceIndex(parts.names, bases, offsets, *seeds.indexed(offsets, pool), k, w, bool(hpc), nothing)
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read: {problem.strerror}") from None
    except DamagedValueError as problem:
        raise InputFileError(f"{path}: is damaged ({problem}); make it again with minimap2 -d") from None
    except InputFileError as problem:
        raise InputFileError(f"{path}: {problem}") from None
