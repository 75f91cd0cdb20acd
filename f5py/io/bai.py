"""The index of a BAM file, checked before htslib reads it: a damaged one makes it loop, crash or lose records."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from f5py.errors import InputFileError
from f5py.io.bgzf_blocks import BLOCK_MAGIC

#: At so many places it is looked whether a block begins there.
_PLACES = 2048


@dataclass(frozen=True)
class BamIndex:
    """What a ``.bai`` says.

    Attributes
    ----------
    path : str
    n_contigs : int
    n_mapped : int or None
        Mapped records, if the index counts them.
    last : int
        Virtual offset of the end of the last record that lies on the reference; 0 without any.
    """

    path: str
    n_contigs: int
    n_mapped: int | None
    last: int


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

    damaged = InputFileError(f"{path}: is damaged or not the index of {bam_path}; run: samtools index {bam_path}")
    try:
        with open(path, "rb") as file:
            data = np.frombuffer(bytearray(file.read()), np.uint8)
        starts = np.empty(len(data) // 8 + 2, np.int64)
        size = os.path.getsize(bam_path)
        is_sound, n_contigs, n_mapped, last, n_starts = scan_bai(data, size, starts)
        if not is_sound:
            raise damaged
        places = np.unique(starts[:n_starts])
        chosen = places[np.unique(np.linspace(0, len(places) - 1, min(_PLACES, len(places))).astype(np.int64))]
        with open(bam_path, "rb", buffering=0) as bam:
            for place in chosen.tolist():
                if place < size and os.pread(bam.fileno(), len(BLOCK_MAGIC), place) != BLOCK_MAGIC:
                    raise damaged
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read ({problem.strerror}); run: samtools index {bam_path}") from None
    return BamIndex(path, int(n_contigs), int(n_mapped) if n_mapped >= 0 else None, int(last))
