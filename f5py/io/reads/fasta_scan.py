"""Indexing of plain FASTA files in parallel."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.io.files.mapped_file import MappedFile
from f5py.io.reads.indexed_fasta import FastaIndex
from f5py.threads.pool import CallingThread, WorkerPool

#: Smaller files are indexed by htslib, and parsed record by record: more threads do not pay.
LARGE_FILE = 64 << 20
#: Bytes and lines that a thread takes at a time.
_BYTES, _LINES = 1 << 22, 1 << 16


def is_large(path: str) -> bool:
    """Return whether the size of a file pays for `scan_fasta`."""
    return os.path.isfile(path) and os.path.getsize(path) >= LARGE_FILE


def scan_fasta(file: MappedFile, pool: WorkerPool | CallingThread) -> FastaIndex | None:
    """Index a FASTA file with lines of one length in each sequence, else return None."""
    from f5py.io.reads._fai_numba import check_line_ends, find_headers, list_sequences

    text = file.text
    if text[:1].tobytes() != b">":
        return None
    results: list[tuple[NDArray[np.int64], int]] = []
    pieces = np.arange(-(-len(text) // _BYTES))
    pool.run(lambda *given: results.append(find_headers(*given)), pieces, _BYTES, text)
    headers = np.sort(np.concatenate([np.empty(0, np.int64), *(found for found, _ in results)]))
    n = len(headers)
    name_begin, name_end, columns = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((4, n), np.int64)
    n_spaces = list_sequences(text, headers, name_begin, name_end, columns)
    if n_spaces != sum(found for _, found in results):
        return None
    first_lines = offsets_of(-(-columns[0] // columns[2]))
    is_other = np.zeros(1, np.bool_)
    pieces = np.arange(-(-int(first_lines[-1]) // _LINES))
    pool.run(check_line_ends, pieces, _LINES, text, columns, first_lines, is_other)
    file.check()
    return None if is_other[0] else FastaIndex(text, name_begin, name_end, columns)


def fai_of(index: FastaIndex) -> bytes | None:
    """Return the text of the ``.fai``; None if sequences have the same name, which htslib warns of."""
    names = [index.name(row) for row in range(len(index))]
    if len(set(names)) < len(names):
        return None
    numbers = np.stack([index.length, index.offset, index.line_bases, index.line_width], axis=1).tolist()
    lines = ("\t".join((name, *map(str, row))) + "\n" for name, row in zip(names, numbers, strict=True))
    return "".join(lines).encode("utf-8", "surrogateescape")
