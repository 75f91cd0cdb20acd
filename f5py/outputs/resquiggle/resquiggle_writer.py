"""Outputs of ``f5py resquiggle``: the samples of every k-mer of a read, as a table or as PAF."""

import numpy as np

from f5py.core.batch import ReadBatch
from f5py.core.offsets import offsets_of
from f5py.errors import UnsupportedDataError
from f5py.jit.kernel import kernel
from f5py.outputs.resquiggle.signal_strings import mapped_kmers, strings_of_kmers
from f5py.text._format_numba import NEWLINE, TAB, append_bytes, append_int
from f5py.text.encoding import PartialTextError, encoded

_NONE = np.frombuffer(b".\t.", np.uint8)

#: Bytes of a row besides the read's name: three numbers of int32's size, four separators.
MAX_ROW = 3 * 11 + 4


@kernel
def format_kmers(out, names, name_offsets, n_kmers, base_map, events, rna):
    """Write a row for every k-mer of every read, in the order of the signal.

    Stops before the first k-mer with an empty range of samples. Returns the bytes written, and the read and k-mer at
    which it stopped, -1 if none.

    Parameters
    ----------
    out : uint8
        Filled; of `MAX_ROW` bytes and the name for each k-mer.
    """
    base_offsets, first_event, last_event = base_map.offsets, base_map.first_event, base_map.last_event
    event_offsets, event_start, event_length = events.offsets, events.start, events.length
    at = 0
    for read in range(n_kmers.shape[0]):
        n = n_kmers[read]
        name = names[name_offsets[read] : name_offsets[read + 1]]
        event_first = event_offsets[read]
        for walked in range(n):
            index = n - 1 - walked if rna else walked
            kmer = base_offsets[read] + index
            row = at
            at = append_bytes(out, at, name)
            out[at] = TAB
            at = append_int(out, at + 1, index)
            out[at] = TAB
            at += 1
            if first_event[kmer] < 0:
                at = append_bytes(out, at, _NONE)
            else:
                first, last = event_first + first_event[kmer], event_first + last_event[kmer]
                if rna:  # the first event is the last in time
                    first, last = last, first
                start, end = np.int64(event_start[first]), np.int64(event_start[last]) + event_length[last]
                if start >= end:
                    return row, read, index
                at = append_int(out, at, start)
                out[at] = TAB
                at = append_int(out, at + 1, end)
            out[at] = NEWLINE
            at += 1
    return at, -1, -1


class _Layout:
    """Constants of the layouts."""

    def __init__(self, rna: bool, k: int) -> None:
        self._rna = rna
        self._k = k


class ResquiggleTable(_Layout):
    """Tab-separated row per k-mer, with ``.`` for a k-mer without samples; thread-safe.

    Rows follow the signal, so k-mer numbers descend in RNA.
    """

    def header(self) -> bytes:
        return b"read_id\tkmer_idx\tstart_raw_idx\tend_raw_idx\n"

    def format(self, batch: ReadBatch, first: int, end: int) -> memoryview:
        """Format the rows of the successful reads from `first` up to `end`.

        Raises `PartialTextError`, with the rows before it, for a k-mer with an empty range of samples.
        """
        names = [encoded(name) for name in batch.names[first:end]]
        name_lengths = np.array([len(name) for name in names], np.int64)
        n_kmers = mapped_kmers(batch, first, end, self._k)
        text = np.empty(int((n_kmers * (name_lengths + MAX_ROW)).sum()), np.uint8)
        size, bad_read, bad_kmer = format_kmers(
            text, np.frombuffer(b"".join(names), np.uint8), offsets_of(name_lengths), n_kmers,
            batch.base_map._replace(offsets=batch.base_offsets[first:end]),
            batch.events._replace(offsets=batch.events.offsets[first:end]), self._rna,
        )  # fmt: skip
        if bad_read >= 0:
            problem = UnsupportedDataError(
                f"read {batch.names[first + bad_read]}: the samples of k-mer {bad_kmer} end before they begin, so its "
                "signal is damaged; remove the read from the input"
            )
            raise PartialTextError(text[:size].data, problem)
        return text[:size].data


class ResquigglePaf(_Layout):
    """PAF line per read, aligned to its own signal, with an ss string; thread-safe.

    ``sc`` and ``sh`` are each read's own scale and shift; in f5c all lines have those of the batch's first read.
    """

    def header(self) -> bytes:
        """Return the empty header of PAF."""
        return b""

    def format(self, batch: ReadBatch, first: int, end: int) -> bytes:
        """Format the lines of the reads from `first` up to `end` with events."""
        strings = strings_of_kmers(batch, first, end, self._k, self._rna)
        n_kmers = (batch.read_length - self._k + 1).tolist()
        n_samples = batch.n_samples.tolist()
        pieces = []
        for i in np.flatnonzero(strings.matches).tolist():
            read = first + i
            name, n = batch.names[read], n_kmers[read]
            line = (
                f"{name}\t{n_samples[read]}\t{strings.raw_start[i]}\t{strings.raw_end[i]}\t+\t{name}\t{n}\t"
                f"{strings.kmer_start[i]}\t{strings.kmer_end[i]}\t{strings.matches[i]}\t{n}\t255\t"
                f"sc:f:{float(batch.scale[read]):f}\tsh:f:{float(batch.shift[read]):f}\tss:Z:"
            )
            pieces += [encoded(line), strings[i], b"\n"]
        return b"".join(pieces)
