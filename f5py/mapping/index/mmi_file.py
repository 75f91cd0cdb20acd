"""Indices of minimap2 2.x in files (``.mmi``), of one or several parts.

A part has the names and lengths of its contigs, its minimizers by bucket, each with a table of keys in any order, and
its bases. All numbers are little-endian, and nothing is aligned. There are no checksums.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import DamagedValueError, InputFileError
from f5py.io.files.mapped_file import MappedFile
from f5py.mapping.index.packed_bases import BasePacker
from f5py.mapping.index.reference_index import ReferenceIndex, SeedBuckets, new_counts
from f5py.threads.pool import WorkerPool

if TYPE_CHECKING:
    from f5py.mapping.index._mmi_numba import MmiBuckets

MAGIC = b"MMI"
_VERSION, _MOST_VERSION = 2, 32
_HEADER = struct.Struct("<5I")
_HPC, _NO_BASES, _NO_NAMES = 1, 2, 4
_MOST_BASES, _MOST_WINDOW, _MOST_BITS = 28, 255, 28
#: Buckets that a thread reads at a time, and bases that are expanded at a time.
_BUCKETS, _EXPANDED = 64, 1 << 22


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
        from f5py.mapping.index._mmi_numba import find_buckets

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
        from f5py.mapping.index._mmi_numba import MmiBuckets

        n = len(self._buckets[0])
        firsts, ends = np.repeat(np.array(self._contigs, np.int64), n, axis=0).T.copy()
        numbers = np.tile(np.arange(n), len(self._buckets))
        return MmiBuckets(self._text, np.concatenate(self._buckets), numbers, firsts, ends, self.scheme[2])


def is_mmi_file(path: str) -> bool:
    """Return whether a file is an index of minimap2."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        beginning = file.read(len(MAGIC) + 1)
    return beginning.startswith(MAGIC) and max(beginning[len(MAGIC) :], default=0) < _MOST_VERSION


def read_mmi(path: str, pool: WorkerPool) -> ReferenceIndex:
    """Read an index of minimap2; several parts become one.

    Raises `InputFileError` if it is damaged, of another version, or has no bases or names.
    """
    from f5py.mapping.index._mmi_numba import count_places, expand_bases, scatter_places

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
