"""The index of a BAM file: checked, because a damaged one makes htslib loop, crash or lose records, and looked up here.

Of an index only the beginnings count: where in the file the first record is that reaches into a stretch of 16,384
bases. From there on the file, which is sorted, is read until the records begin after the window. Bins and ends of
chunks, which only save reading, are not used; so no flipped bit in them can hide a record. The beginning itself is
taken from the stretch before, whose value is not larger, or from that of the window if it is smaller: a single value
that is too large hides nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError
from f5py.io.bgzf_blocks import BLOCK_MAGIC

_MAGIC = b"BAI\x01"
#: At so many places it is looked whether a block begins there.
_PLACES = 2048
#: A stretch of the linear index is two to the power of this long.
_STRETCH = 14
#: Where there is no record.
NOWHERE = np.uint64(2**64 - 1)


class Scan(NamedTuple):
    """What `f5py.io._bai_numba.scan_bai` finds; of n contigs.

    Attributes
    ----------
    n_mapped : int64, shape (n,)
        Mapped records; -1 if the index does not count them.
    first, last : uint64, shape (n,)
        Virtual offsets at which the first chunk begins and the last one ends.
    linear_begin, linear_size : int64, shape (n,)
        Where in the index the stretches are, and how many.
    starts, n_starts : int64
        Places in the file where chunks begin and end, and how many there are.
    """

    n_mapped: NDArray[np.int64]
    first: NDArray[np.uint64]
    last: NDArray[np.uint64]
    linear_begin: NDArray[np.int64]
    linear_size: NDArray[np.int64]
    starts: NDArray[np.int64]
    n_starts: NDArray[np.int64]

    @classmethod
    def empty(cls, n_contigs: int, n_bytes: int) -> Scan:
        """Arrays for an index of that size."""
        n_mapped, begin, size = np.zeros((3, n_contigs), np.int64)
        first, last = np.full(n_contigs, NOWHERE), np.zeros(n_contigs, np.uint64)
        return cls(n_mapped, first, last, begin, size, np.empty(n_bytes // 8 + 2, np.int64), np.zeros(1, np.int64))


@dataclass(frozen=True)
class BamIndex:
    """A sound index.

    Attributes
    ----------
    path : str
    data : uint8
    scan : Scan
    """

    path: str
    data: NDArray[np.uint8]
    scan: Scan

    @property
    def n_contigs(self) -> int:
        """Contigs that it is of."""
        return len(self.scan.first)

    @property
    def n_mapped(self) -> int | None:
        """Mapped records, if the index counts them."""
        counts = self.scan.n_mapped
        return None if (counts < 0).any() else int(counts.sum())

    @property
    def last(self) -> int:
        """Virtual offset of the end of the last record that lies on the reference; 0 without any."""
        return int(self.scan.last.max(initial=np.uint64(0)))

    def beginning(self, contig: int, start: int) -> int | None:
        """Virtual offset of a record before which none reaches `start` or beyond; None if none does at all."""
        at, n = int(self.scan.linear_begin[contig]), int(self.scan.linear_size[contig])
        stretch = start >> _STRETCH
        if stretch >= n:
            return None
        offsets = np.frombuffer(self.data, "<u8", n, at)
        before = np.flatnonzero(offsets[:stretch])  # 0 is that of a stretch without records
        known = [int(offsets[before[-1]]) if before.size else int(self.scan.first[contig])]
        if offsets[stretch]:
            known.append(int(offsets[stretch]))
        return min(known) if min(known) < NOWHERE else None


def find_bai(bam_path: str) -> str | None:
    """The ``.bai`` of a BAM file, where htslib looks for it, unless there is a ``.csi``, which it prefers."""
    if os.path.exists(f"{bam_path}.csi"):
        return None
    for path in (f"{bam_path}.bai", f"{os.path.splitext(bam_path)[0]}.bai"):
        if os.path.exists(path):
            return path
    return None


def read_bai(path: str, bam_path: str) -> BamIndex:
    """Read and check an index.

    Raises
    ------
    InputFileError
        It is damaged, or that of another file: a place that it names is not the beginning of a block.
    """
    from f5py.io._bai_numba import scan_bai

    damaged = not_its_index(path, bam_path)
    try:
        with open(path, "rb") as file:
            data = np.frombuffer(bytearray(file.read()), np.uint8)
        n_contigs = int.from_bytes(data[4:8].tobytes(), "little")
        if data[:4].tobytes() != _MAGIC or n_contigs > len(data) // 8:
            raise damaged
        scan = Scan.empty(n_contigs, len(data))
        size = os.path.getsize(bam_path)
        if not scan_bai(data, size, scan):
            raise damaged
        places = np.unique(scan.starts[: scan.n_starts[0]])
        chosen = places[np.unique(np.linspace(0, len(places) - 1, min(_PLACES, len(places))).astype(np.int64))]
        with open(bam_path, "rb", buffering=0) as bam:
            for place in chosen.tolist():
                if place < size and not is_block_start(bam.fileno(), place):
                    raise damaged
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read ({problem.strerror}); run: samtools index {bam_path}") from None
    return BamIndex(path, data, scan)


def is_block_start(descriptor: int, place: int) -> bool:
    """Whether a block of an open BAM file begins at `place`."""
    return os.pread(descriptor, len(BLOCK_MAGIC), place) == BLOCK_MAGIC


def not_its_index(path: str, bam_path: str) -> InputFileError:
    """The error for an index that cannot be used."""
    return InputFileError(f"{path}: is damaged or not the index of {bam_path}; run: samtools index {bam_path}")
