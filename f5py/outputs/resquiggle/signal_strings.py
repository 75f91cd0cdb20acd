"""ss strings: assignment of samples to k-mers along the signal.

A string is a sequence of tokens: ``n,`` assigns the next n samples to the next k-mer, ``nD`` skips n k-mers and
``nI`` n samples. PAF and SAM of event alignment and the PAF of resquiggle have them (format of f5c).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.jit.kernel import inner, kernel
from f5py.text._format_numba import COMMA, append_int

_SKIPPED_KMERS = np.uint8(ord("D"))
_SKIPPED_SAMPLES = np.uint8(ord("I"))

#: Bytes that the tokens of one k-mer need at most: three numbers of int32's size and their letters.
MAX_TOKENS = 36

#: Columns of the figures that the kernels fill.
RAW_START, RAW_END, KMER_START, KMER_END, MATCHES = range(5)
N_FIGURES = 5


@inner
def kmer_interval(first_event, last_event, event_start, event_length, rna):
    """Find the samples [start, end) of a k-mer's events; in RNA the first event is the last in time."""
    if rna:
        first_event, last_event = last_event, first_event
    return np.int64(event_start[first_event]), np.int64(event_start[last_event]) + event_length[last_event]


@inner
def _append_tokens(out, at, skipped_kmers, skipped_samples, samples):
    """Write the skips before a k-mer and the k-mer's samples; return the end."""
    if skipped_kmers > 0:
        at = append_int(out, at, skipped_kmers)
        out[at] = _SKIPPED_KMERS
        at += 1
    if skipped_samples > 0:
        at = append_int(out, at, skipped_samples)
        out[at] = _SKIPPED_SAMPLES
        at += 1
    at = append_int(out, at, samples)
    out[at] = COMMA
    return at + 1


@kernel
def write_row_strings(out, offsets, figures, rows, events, reverse, rna):
    """Write the ss string of every read's rows, with their offsets and figures.

    Rows ascend along the reference. They are visited along the signal, which is backward for reverse DNA and for
    forward RNA.

    Parameters
    ----------
    out : uint8
        Filled; of `MAX_TOKENS` bytes for each row.
    offsets : int64, shape (n + 1,)
        Filled.
    figures : int64, shape (n, N_FIGURES)
        Zero; filled with samples and 0-based k-mers, columns `RAW_START` to `MATCHES`.
    rows : f5py.core.batch.Rows
        With `n` of these reads.
    events : f5py.core.batch.Events
        With `offsets` of these reads.
    reverse : bool, shape (n,)
    """
    n_rows, row_event, row_position = rows.n, rows.event, rows.position
    event_offsets, event_start, event_length = events.offsets, events.start, events.length
    at = 0
    offsets[0] = 0
    for read in range(n_rows.shape[0]):
        n = n_rows[read]
        if n > 0:
            event_first = event_offsets[read]
            backwards = reverse[read] != rna
            row, step = event_first, 1
            if backwards:
                row, step = event_first + n - 1, -1
            position = np.int64(row_position[row])
            expected = position
            lowest = highest = position
            matches = 0
            cursor = np.int64(-1)
            left = n
            while left > 0:
                position = np.int64(row_position[row])
                event = event_first + row_event[row]
                start = np.int64(event_start[event])
                end = start + event_length[event]
                row += step
                left -= 1
                while left > 0 and row_position[row] == position:
                    event = event_first + row_event[row]
                    row += step
                    left -= 1
                # the events between the first and the last of a k-mer lie between the two
                start = min(start, np.int64(event_start[event]))
                end = max(end, np.int64(event_start[event]) + event_length[event])
                if matches == 0:
                    figures[read, RAW_START] = start
                    cursor = start
                at = _append_tokens(out, at, abs(position - expected), start - cursor, end - start)
                matches += 1
                cursor = end
                expected = position + step
                lowest = min(lowest, position)
                highest = max(highest, position)
            figures[read, RAW_END] = cursor
            figures[read, KMER_START] = lowest
            figures[read, KMER_END] = highest + 1
            if rna:
                figures[read, KMER_START], figures[read, KMER_END] = highest + 1, lowest
            figures[read, MATCHES] = matches
        offsets[read + 1] = at


@kernel
def write_kmer_strings(out, offsets, figures, n_kmers, base_map, events, rna):
    """Write the ss strings over each read's k-mers, with their offsets and figures.

    Parameters
    ----------
    n_kmers : int64, shape (n,)
    base_map : f5py.core.batch.BaseMap
        With `offsets` of these reads.
    """
    base_offsets, first_event, last_event = base_map.offsets, base_map.first_event, base_map.last_event
    event_offsets, event_start, event_length = events.offsets, events.start, events.length
    at = 0
    offsets[0] = 0
    for read in range(n_kmers.shape[0]):
        n = n_kmers[read]
        event_first = event_offsets[read]
        matches = 0
        cursor = np.int64(-1)
        first_walked = last_walked = 0
        for walked in range(n):
            kmer = base_offsets[read] + (n - 1 - walked if rna else walked)
            if first_event[kmer] < 0:
                continue
            start, end = kmer_interval(
                event_first + first_event[kmer], event_first + last_event[kmer], event_start, event_length, rna
            )
            if matches == 0:
                first_walked = walked
                last_walked = walked - 1
                cursor = start
                figures[read, RAW_START] = start
            at = _append_tokens(out, at, walked - last_walked - 1, start - cursor, end - start)
            matches += 1
            last_walked = walked
            cursor = end
        if matches > 0:
            figures[read, RAW_END] = cursor
            figures[read, KMER_START] = first_walked
            figures[read, KMER_END] = last_walked + 1
            if rna:
                figures[read, KMER_START], figures[read, KMER_END] = n - first_walked, n - 1 - last_walked
        figures[read, MATCHES] = matches
        offsets[read + 1] = at


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
    n_rows = batch.rows.n[first:end]
    text, offsets, figures = _room(end - first, int(n_rows.sum()))
    write_row_strings(
        text, offsets, figures, batch.rows._replace(n=n_rows),
        batch.events._replace(offsets=batch.events.offsets[first:end]), batch.reverse[first:end], rna,
    )  # fmt: skip
    return SignalStrings(text[: offsets[-1]], offsets, *figures.T)


def strings_of_kmers(batch: ReadBatch, first: int, end: int, k: int, rna: bool) -> SignalStrings:
    """Make the strings of the base-to-event maps of reads `first` to `end` - 1, over their own k-mers."""
    n_kmers = mapped_kmers(batch, first, end, k)
    text, offsets, figures = _room(end - first, int(n_kmers.sum()))
    write_kmer_strings(
        text, offsets, figures, n_kmers, batch.base_map._replace(offsets=batch.base_offsets[first:end]),
        batch.events._replace(offsets=batch.events.offsets[first:end]), rna,
    )  # fmt: skip
    return SignalStrings(text[: offsets[-1]], offsets, *figures.T)


def mapped_kmers(batch: ReadBatch, first: int, end: int, k: int) -> NDArray[np.int64]:
    """Count the k-mers of each read, 0 for failed ones; int64."""
    n_kmers = np.maximum(batch.read_length[first:end] - k + 1, 0)
    return np.where(batch.status[first:end] == ReadStatus.OK, n_kmers, 0)


def _room(n_reads: int, n_kmers: int) -> tuple[NDArray, NDArray, NDArray]:
    """Allocate text, offsets and figures; untouched pages use no memory."""
    text = np.empty(n_kmers * MAX_TOKENS, np.uint8)
    return text, np.empty(n_reads + 1, np.int64), np.zeros((n_reads, N_FIGURES), np.int64)
