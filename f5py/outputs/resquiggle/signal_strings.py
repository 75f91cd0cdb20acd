"""ss strings: assignment of samples to k-mers along the signal.

A string is a sequence of tokens: ``n,`` assigns the next n samples to the next k-mer, ``nD`` skips n k-mers and
``nI`` n samples. PAF and SAM of event alignment and the PAF of resquiggle have them (format of f5c).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus


@dataclass(frozen=True)
class SignalStrings:
    """ss strings of n consecutive reads with their ranges."""

    text: NDArray[np.uint8]  # shape (offsets[-1],)
    # shape (n + 1,): the string of read i is ``text[offsets[i]:offsets[i + 1]]``; reads without k-mers have an empty
    # one
    offsets: NDArray[np.int64]
    # raw_start, raw_end: shape (n,): samples covered, half-open
    raw_start: NDArray[np.int64]
    raw_end: NDArray[np.int64]
    # kmer_start, kmer_end: shape (n,): k-mers covered, half-open: of the reference or of the read. In RNA, which passes
    # the pore backwards, start is the larger.
    kmer_start: NDArray[np.int64]
    kmer_end: NDArray[np.int64]
    # shape (n,): k-mers with samples; 0 for a read that has no string, whose other numbers then mean nothing
    matches: NDArray[np.int64]

    def __getitem__(self, read: int) -> bytes:
        return self.text[self.offsets[read] : self.offsets[read + 1]].tobytes()


def strings_of_rows(batch: ReadBatch, first: int, end: int, rna: bool) -> SignalStrings:
    """Make the strings of the rows of reads `first` to `end` - 1, over reference k-mers."""
    from f5py.outputs.resquiggle import _signal_strings_numba as jitted

    n_rows = batch.rows.n[first:end]
    text, offsets, figures = _room(end - first, int(n_rows.sum()) * jitted.MAX_TOKENS, jitted.N_FIGURES)
    jitted.strings_of_rows(
        text, offsets, figures, batch.rows._replace(n=n_rows),
        batch.events._replace(offsets=batch.events.offsets[first:end]), batch.reverse[first:end], rna,
    )  # fmt: skip
    return SignalStrings(text[: offsets[-1]], offsets, *figures.T)


def strings_of_kmers(batch: ReadBatch, first: int, end: int, k: int, rna: bool) -> SignalStrings:
    """Make the strings of the base-to-event maps of reads `first` to `end` - 1, over their own k-mers."""
    from f5py.outputs.resquiggle import _signal_strings_numba as jitted

    n_kmers = mapped_kmers(batch, first, end, k)
    text, offsets, figures = _room(end - first, int(n_kmers.sum()) * jitted.MAX_TOKENS, jitted.N_FIGURES)
    jitted.strings_of_kmers(
        text, offsets, figures, n_kmers, batch.base_map._replace(offsets=batch.base_offsets[first:end]),
        batch.events._replace(offsets=batch.events.offsets[first:end]), rna,
    )  # fmt: skip
    return SignalStrings(text[: offsets[-1]], offsets, *figures.T)


def mapped_kmers(batch: ReadBatch, first: int, end: int, k: int) -> NDArray[np.int64]:
    """Count the k-mers of each read, 0 for failed ones; int64."""
    n_kmers = np.maximum(batch.read_length[first:end] - k + 1, 0)
    return np.where(batch.status[first:end] == ReadStatus.OK, n_kmers, 0)


def _room(n_reads: int, size: int, n_figures: int) -> tuple[NDArray, NDArray, NDArray]:
    """Allocate text of at most `size` bytes, offsets and figures; untouched pages take no memory."""
    return np.empty(size, np.uint8), np.empty(n_reads + 1, np.int64), np.zeros((n_reads, n_figures), np.int64)
