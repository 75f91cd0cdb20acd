"""ss strings: assignment of samples to k-mers along the signal.

A string is a sequence of tokens: ``n,`` assigns the next n samples to the next k-mer, ``nD`` skips n k-mers and
``nI`` n samples. PAF and SAM of event alignment and the PAF of resquiggle have them (format of f5c).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Events, ReadBatch, ReadStatus, Rows
from f5py.core.offsets import elements_of, offsets_of
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
    figures : int64, shape (n, N_FIGURES)
        Zero; filled with samples and 0-based k-mers, columns `RAW_START` to `MATCHES`.
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
            row, step = rows.offsets[read], 1
            if backwards:
                row, step = row + n - 1, -1
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


@dataclass(frozen=True)
class SignalStrings:
    """ss strings of consecutive reads with their ranges, an element for each."""

    text: NDArray[np.uint8]  # offsets `offsets`; empty for a read without k-mers
    offsets: NDArray[np.int64]
    raw_start: NDArray[np.int64]  # samples covered, half-open
    raw_end: NDArray[np.int64]
    kmer_start: NDArray[np.int64]  # k-mers covered, half-open; in RNA, which passes the pore backwards, the larger end
    kmer_end: NDArray[np.int64]
    matches: NDArray[np.int64]  # k-mers with samples; 0 for a read without string, whose other numbers mean nothing

    def __getitem__(self, read: int) -> bytes:
        return self.text[self.offsets[read] : self.offsets[read + 1]].tobytes()


def strings_of_rows(batch: ReadBatch, first: int, end: int, rna: bool) -> SignalStrings:
    """Make the strings of the rows of reads `first` to `end` - 1, over reference k-mers."""
    rows = batch.rows._replace(offsets=batch.rows.offsets[first:end], n=batch.rows.n[first:end])
    return _strings(rows, batch.events, batch.reverse, first, end, rna)


def strings_of_kmers(batch: ReadBatch, first: int, end: int, k: int, rna: bool) -> SignalStrings:
    """Make the strings of the base-to-event maps of reads `first` to `end` - 1, over their own k-mers."""
    n_kmers = mapped_kmers(batch, first, end, k)
    kmer = elements_of(batch.base_offsets[first:end], n_kmers)
    position = kmer - np.repeat(batch.base_offsets[first:end], n_kmers)
    events = batch.base_map.first_event[kmer], batch.base_map.last_event[kmer]
    mapped = np.flatnonzero(events[0] >= 0)
    # two rows for each k-mer
    n = 2 * np.bincount(np.repeat(np.arange(end - first), n_kmers)[mapped], minlength=end - first)
    event = np.stack([one[mapped] for one in events], axis=1).ravel()
    rows = Rows(
        offsets_of(n)[:-1], n, event, np.repeat(position[mapped], 2).astype(np.int32), np.empty(0, np.uint8)
    )  # fmt: skip
    return _strings(rows, batch.events, np.zeros(len(batch), np.bool_), first, end, rna)


def _strings(rows: Rows, events: Events, reverse: NDArray[np.bool_], first: int, end: int, rna: bool) -> SignalStrings:
    text = np.empty(int(rows.n.sum()) * MAX_TOKENS, np.uint8)  # untouched pages take no memory
    offsets, figures = np.empty(end - first + 1, np.int64), np.zeros((end - first, N_FIGURES), np.int64)
    events = events._replace(offsets=events.offsets[first:end])
    write_row_strings(text, offsets, figures, rows, events, reverse[first:end], rna)
    return SignalStrings(text[: offsets[-1]], offsets, *figures.T)


def mapped_kmers(batch: ReadBatch, first: int, end: int, k: int) -> NDArray[np.int64]:
    """Count the k-mers of each read, 0 for failed ones; int64."""
    n_kmers = np.maximum(batch.read_length[first:end] - k + 1, 0)
    return np.where(batch.status[first:end] == ReadStatus.OK, n_kmers, 0)
