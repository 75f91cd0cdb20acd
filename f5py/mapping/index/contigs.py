"""Contigs of a reference in a FASTA file."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError
from f5py.io.reads.indexed_fasta import IndexedFasta, MappedText, is_large, scan_fasta
from f5py.io.reads.reference import Reference, index_fasta
from f5py.io.sequences.read_records import sequence_batches
from f5py.mapping.index.packed_bases import BasePacker, PackedBases, pack
from f5py.threads.pool import WorkerPool

#: Bases that are read at a time, and by a thread; and of contigs that are parsed one after the other.
_BASES, _STRETCH, _PARSED = 1 << 24, 1 << 18, 1 << 23
#: Bases that places have bits for.
_MOST_IN_ALL, _MOST_IN_CONTIG = (1 << 33) - 1, (1 << 31) - 1


class Contigs(NamedTuple):
    """Contigs."""

    names: list[str]
    bases: PackedBases
    offsets: NDArray[np.int64]  # shape (n + 1,)
    ambiguous: NDArray[np.int64]  # see `f5py.mapping.index.reference_index.ReferenceIndex`

    @classmethod
    def of_codes(cls, names: list[str], codes: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Contigs:
        """Pack codes: 0 to 3, 4 for unknown bases."""
        return cls(names, pack(codes), offsets, np.empty(0, np.int64))


def read_contigs(path: str, k: int, pool: WorkerPool, is_indexed: bool = False) -> Contigs:
    """Read a FASTA file; also index it, if wanted.

    Raises `InputFileError` if it has no contigs, one of them twice, none of `k` bases, or too many bases, or if it
    cannot be indexed.
    """
    contigs = _gathered(path, pool, is_indexed) or _parsed(path, pool)
    names = contigs.names
    if not names:
        raise InputFileError(f"{path}: holds no sequences; give the reference as FASTA")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputFileError(f"{path}: has contig {twice} twice; give each contig its own name")
    lengths = np.diff(contigs.offsets)
    if lengths.sum() > _MOST_IN_ALL or lengths.max() > _MOST_IN_CONTIG:
        raise InputFileError(
            f"{path}: has {lengths.sum()} bases, and {lengths.max()} in a contig; at most {_MOST_IN_ALL} and "
            f"{_MOST_IN_CONTIG} can be indexed; divide it"
        )
    if not (lengths >= k).any():
        raise InputFileError(f"{path}: no contig has {k} bases or more, the length of a minimizer; give a smaller -k")
    if is_indexed:
        Reference(path, names, lengths.tolist()).close()
    return contigs


def _parsed(path: str, pool: WorkerPool) -> Contigs:
    """Parse a file of any kind, record by record."""
    names: list[str] = []
    packer = BasePacker(pool)
    lengths = [np.empty(0, np.int64)]
    for batch in sequence_batches(path, _PARSED):
        names += batch.names
        packer.add(batch.bases)
        lengths.append(np.diff(batch.offsets))
    bases, ambiguous = packer.packed()
    return Contigs(names, bases, offsets_of(np.concatenate(lengths)), ambiguous)


def _gathered(path: str, pool: WorkerPool, is_indexed: bool) -> Contigs | None:
    """Read a large plain file in parallel; None if its lines differ in length, or are not of bases."""
    if not is_large(path):
        return None
    letters = np.arange(256, dtype=np.uint8)
    letters[: ord(" ") + 1] = letters[list(b">@+")] = 0
    with closing(MappedText(path)) as file:
        index = scan_fasta(file, pool)
        if index is None:
            return None
        fasta, packer, offsets = IndexedFasta(index, file, letters), BasePacker(pool), offsets_of(index.length)
        for begin in range(0, int(offsets[-1]), _BASES):
            end = min(begin + _BASES, int(offsets[-1]))
            inside = offsets[np.searchsorted(offsets, begin, "right") : np.searchsorted(offsets, end)]
            cuts = np.union1d(np.arange(begin, end, _STRETCH), inside)
            rows = np.searchsorted(offsets, cuts, "right") - 1
            stops = np.append(cuts[1:], end)
            some, _, wrong = fasta.fetch(rows, cuts - offsets[rows], stops - offsets[rows], pool)
            if wrong.any():
                return None
            packer.add(some)
        names = [index.name(row) for row in range(len(index))]
        if is_indexed and len(set(names)) == len(names):
            index_fasta(path, index)
        bases, ambiguous = packer.packed()
        return Contigs(names, bases, offsets, ambiguous)
