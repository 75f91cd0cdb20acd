"""Indices of minimap2 2.x in files (``.mmi``), of one or several parts.

A part has the names and lengths of its contigs, its minimizers by bucket, and its bases. All numbers are little-endian,
and nothing is aligned. There are no checksums. Buckets are passed over: the same minimizers follow from the bases.
"""

import struct

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import DamagedValueError, InputFileError
from f5py.io.files.mapped_file import MappedFile
from f5py.mapping.index.contigs import Contigs
from f5py.mapping.index.packed_bases import BasePacker
from f5py.mapping.index.reference_index import ReferenceIndex, build_index
from f5py.mapping.settings import MapSettings
from f5py.threads.pool import WorkerPool

MAGIC = b"MMI"
_VERSION = 2
_HEADER = struct.Struct("<5I")
_HPC, _NO_BASES, _NO_NAMES = 1, 2, 4
_MOST_BASES, _MOST_WINDOW, _MOST_BITS = 28, 255, 28
#: Bytes of bases that are expanded at a time.
_EXPANDED = 1 << 21
_LETTERS = np.frombuffer(b"ACGTNNNNNNNNNNNN", np.uint8)
#: The two letters of each byte.
_PAIRS = np.stack([np.tile(_LETTERS, 16), np.repeat(_LETTERS, 16)], axis=1)


class _Parts:
    """Parts of a file: contigs, and where their bases begin."""

    def __init__(self, text: NDArray[np.uint8]) -> None:
        self._text = text.data
        self.names: list[str] = []
        self.lengths: list[int] = []
        self.scheme = (0, 0, 0, 0)  # w, k, bits of a bucket, 1 for homopolymer compression
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
        n_bases = 0
        for _ in range(n_contigs):
            size = self._bytes(at, 1)[0]
            self.names.append(self._bytes(at + 1, size).decode("utf-8", "surrogateescape"))
            self.lengths.append(self._number(at + 1 + size))
            n_bases += self.lengths[-1]
            at += 5 + size
        for _ in range(1 << bits):
            at += 4 + 8 * self._number(at)  # places of minimizers that have several
            at += 4 + 16 * self._number(at)  # minimizers
        end = at + (n_bases + 7) // 8 * 4
        if end > len(self._text):
            raise DamagedValueError("it is truncated")
        self.bases.append((at, n_bases))
        return end

    def _number(self, at: int) -> int:
        return int.from_bytes(self._bytes(at, 4), "little")

    def _bytes(self, at: int, n: int) -> bytes:
        if at + n > len(self._text):
            raise DamagedValueError("it is truncated")
        return bytes(self._text[at : at + n])


def read_mmi(path: str, pool: WorkerPool) -> ReferenceIndex:
    """Index the contigs of an index of minimap2 with its minimizers; several parts become one.

    Raises `InputFileError` if it is damaged, of another version, or has no bases or names.
    """
    try:
        text = MappedFile(path).text
        if text[:4].tobytes() != MAGIC + bytes([_VERSION]):
            raise InputFileError("is an index of another version of minimap2; give the FASTA file that it was made of")
        parts = _Parts(text)
        if not parts.names or "" in parts.names or len(set(parts.names)) < len(parts.names):
            raise InputFileError("has contigs without names of their own; give the FASTA file that it was made of")
        packer = BasePacker(pool)
        for begin, n_bases in parts.bases:
            end = begin + (n_bases + 1) // 2
            for at in range(begin, end, _EXPANDED):
                letters = _PAIRS[text[at : min(at + _EXPANDED, end)]].ravel()
                packer.add(letters[: n_bases - 2 * (at - begin)])
        bases, _ = packer.packed()
        w, k, _, hpc = parts.scheme
        contigs = Contigs(parts.names, bases, offsets_of(np.array(parts.lengths, np.int64)), np.empty(0, np.int64))
        return build_index(contigs, MapSettings(k=k, w=w, hpc=bool(hpc)), pool)
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read: {problem.strerror}") from None
    except DamagedValueError as problem:
        raise InputFileError(f"{path}: is damaged ({problem}); make it again with minimap2 -d") from None
    except InputFileError as problem:
        raise InputFileError(f"{path}: {problem}") from None
