"""Basecalled reads in memory: files without an index, if they fit."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.io.reads.indexed_fasta import FastaIndex, IndexedFasta, MemoryText
from f5py.io.reads.read_index import ReadIndex
from f5py.io.reads.read_records import sequence_batches
from f5py.messages import console

#: Of reads that are parsed at a time.
_BASES = 1 << 23


def reads_in_memory(names: Names, bases: NDArray[np.uint8], offsets: NDArray[np.int64], path: str) -> ReadIndex:
    """Offer reads that are in memory as `ReadIndex` does those of a file.

    Parameters
    ----------
    names : Names
        Of n reads; of equal names the first one counts.
    bases : uint8, shape (offsets[-1],)
    offsets : int64, shape (n + 1,)
    """
    return ReadIndex(IndexedFasta(FastaIndex.of_sequences(names, offsets), MemoryText(bases)), path)


def load_reads(path: str) -> ReadIndex:
    """Read all basecalled reads of a file into memory.

    Raises `InputFileError` if the file is missing, damaged, truncated or in another format.

    Parameters
    ----------
    path : str
        FASTA, FASTQ or BAM, see `f5py.io.reads.read_records.sequence_batches`.
    """
    if os.path.exists(path):
        console.note("load_reads", f"{path} has no index; its reads are held in memory")
    batches = list(sequence_batches(path, _BASES))
    bases = np.concatenate([np.empty(0, np.uint8), *(batch.bases for batch in batches)])
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(batch.offsets) for batch in batches)])
    return reads_in_memory(Names.joined([batch.names for batch in batches]), bases, offsets_of(lengths), path)
