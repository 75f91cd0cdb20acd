"""Watched files that share reads with earlier files, called again as in one run over all files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.errors import InputFileError
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import bam_header, chosen_records, record_names
from f5py.io.bam.record_ranges import RecordRange, RecordRanges
from f5py.io.bytes.bgzf_blocks import END_BLOCK, MAX_BLOCK, bgzf_blocks
from f5py.io.files.complete_file import complete_output
from f5py.methylation.overlapping_calls import AlignmentSpans

_Chunks = Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], int]]


def files_with_earlier_reads(paths: Sequence[str], folder: str) -> Iterator[tuple[int, str, RecordRanges]]:
    """Find BAM files that share reads with earlier files and rewrite them with those earlier alignments.

    Yield the number of the file, the new BAM file, and its ranges: earlier alignments, and those of the file. Each may
    be removed before the next one is requested. Raises `InputFileError` if two files that share reads have other
    contigs.
    """
    seen = _NameSet()
    for at, path in enumerate(paths):
        shared, here = _NameSet(), []
        for data, starts, n in _chunks(path):
            names = record_names(data, starts, np.arange(n))
            is_shared = seen.has(names)
            if is_shared.any():
                shared.add(record_names(data, starts, np.flatnonzero(is_shared)))
            here.append(names)
        for names in here:
            seen.add(names)
        if shared.n:
            yield _write(at, paths, shared, os.path.join(folder, f"{at}.bam"))


def _write(at: int, paths: Sequence[str], shared: _NameSet, bam: str) -> tuple[int, str, RecordRanges]:
    with closing(AlignmentFile(paths[at], None, 0, True)) as file:
        header, contigs = file.header, (file.contigs, file.contig_lengths)
        begun = bam_header(header)
    with complete_output(bam) as out:
        out.write(_compress(begun))
        for path in paths[:at]:
            for data, starts, n in _chunks(path):
                chosen = np.flatnonzero(shared.has(record_names(data, starts, np.arange(n))))
                if len(chosen):
                    _check_contigs(path, paths[at], contigs)
                    out.write(_compress(chosen_records(data, starts, chosen)[0].tobytes()))
        begin = out.tell() << 16
        for data, starts, n in _chunks(paths[at]):
            out.write(_compress(data[: starts[n]].tobytes()))
        out.write(END_BLOCK)
    return (at, bam, RecordRanges.of([RecordRange(0, begin), RecordRange(begin, None)]))


def _check_contigs(path: str, other: str, contigs: tuple[list[str], list[int]]) -> None:
    with closing(AlignmentFile(path, None, 0, True)) as file:
        if (file.contigs, file.contig_lengths) != contigs:
            raise InputFileError(
                f"{other}: has reads of {path}, which was mapped to other contigs; map both to one reference"
            )


def _chunks(path: str) -> _Chunks:
    """Yield the records of a file with their offsets, the first at 0."""
    with closing(AlignmentFile(path, None, 0, True)) as file, closing(file.chunks()) as chunks:
        for data, starts, n in chunks:
            yield data[starts[0] :], starts - starts[0], n


def _compress(text: bytes) -> bytes:
    return b"".join(bgzf_blocks(text, MAX_BLOCK >> 1))


class _NameSet:
    """Set of read names as two hashes each; the chance of a false match is 2 ** -127."""

    def __init__(self) -> None:
        self.n = 0
        self._spans = AlignmentSpans()

    def add(self, names: Names) -> None:
        self.n += len(names)
        self._spans.add(names, _nowhere(names))

    def has(self, names: Names) -> NDArray[np.bool_]:
        return self._spans.touched(names, _nowhere(names))


def _nowhere(names: Names) -> Any:
    return np.zeros(len(names), np.int32), *np.zeros((2, len(names)), np.int64)
