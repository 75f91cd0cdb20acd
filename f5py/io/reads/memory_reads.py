"""Basecalled reads in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.io.reads.indexed_fasta import FastaIndex, IndexedFasta, MemoryText
from f5py.io.reads.read_index import ReadIndex


def reads_in_memory(names: Names, bases: NDArray[np.uint8], offsets: NDArray[np.int64], path: str) -> ReadIndex:
    """Make a `ReadIndex` of reads in memory; of equal names the first one counts."""
    return ReadIndex(IndexedFasta(FastaIndex.of_sequences(names, offsets), MemoryText(bases)), path)
