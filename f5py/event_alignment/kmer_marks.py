"""Marks of the reference's k-mers that the bases of a read differ from, by its alignment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.text.complements import COMPLEMENTS
from f5py.threads.pool import WorkerPool


def compare_kmers(batch: ReadBatch, k: int, pool: WorkerPool, trim: int = 0) -> None:
    """Fill `kmer_marks` of a batch that still has its bases: how each k-mer of the reference is found in the read.

    The marks are operations of CIGARs: ``D`` if a base of the k-mer is in a deletion, else ``I`` if the read has bases
    inserted between two of the k-mer, else ``X`` if a base differs, else ``=``; but ``.`` if the k-mer reaches beyond
    the alignment or into a skipped stretch (N).

    Parameters
    ----------
    k : int
        Bases of a k-mer.
    pool : WorkerPool
    trim : int, optional
        How many of them are hidden at each end, where differences do not count.
    """
    from f5py.event_alignment._kmer_marks_numba import fill_marks

    batch.kmer_marks = np.empty(int(batch.reference_offsets[-1]), np.uint8)
    pool.run(
        fill_marks, np.arange(len(batch)), batch.alignments, batch.bases, batch.base_offsets, _letters(), (k, trim),
        batch.kmer_marks, order=batch.number,
    )  # fmt: skip


def _letters() -> NDArray[np.uint8]:
    """Upper-case letters of DNA for those of reads, and for their complements; shape (2, 256)."""
    letters = np.arange(256, dtype=np.uint8)
    lower = np.arange(ord("a"), ord("z") + 1)
    letters[lower] = lower - 32
    letters[list(b"Uu")] = ord("T")
    return np.stack([letters, COMPLEMENTS[letters]])
