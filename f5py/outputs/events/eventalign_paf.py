"""Event alignment as PAF: a line per read with the samples of every reference k-mer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.outputs.resquiggle.signal_strings import strings_of_rows
from f5py.text.encoding import encoded


class EventalignPaf:
    """Format a line per read with rows; thread-safe.

    Parameters
    ----------
    k : int
        k-mer size: positions are of k-mers, of which a contig has k - 1 fewer than bases.
    rna : bool
        Direct RNA: the read starts at the larger reference position.
    """

    def __init__(self, contigs: Sequence[str], contig_lengths: Sequence[int], k: int, rna: bool) -> None:
        self._contigs = [f"{name}\t{length - k + 1}" for name, length in zip(contigs, contig_lengths, strict=True)]
        self._rna = rna

    def header(self) -> bytes:
        """Return the empty header of PAF."""
        return b""

    def format(self, batch: ReadBatch, first: int, end: int) -> bytes:
        """Format the lines of the reads from `first` up to `end`."""
        strings = strings_of_rows(batch, first, end, self._rna)
        n_samples = batch.n_samples.tolist()
        pieces = []
        for i in np.flatnonzero(strings.matches).tolist():
            read = first + i
            kmer_start, kmer_end = strings.kmer_start[i], strings.kmer_end[i]
            line = (
                f"{batch.names[read]}\t{n_samples[read]}\t{strings.raw_start[i]}\t{strings.raw_end[i]}\t"
                f"{'-' if batch.reverse[read] else '+'}\t{self._contigs[batch.contig[read]]}\t"
                f"{kmer_start}\t{kmer_end}\t{strings.matches[i]}\t{abs(kmer_end - kmer_start)}\t255\t"
                f"sc:f:{float(batch.scale[read]):.2f}\tsh:f:{float(batch.shift[read]):.2f}\tss:Z:"
            )
            pieces += [encoded(line), strings[i], b"\n"]
        return b"".join(pieces)

    def notes(self, batch: ReadBatch) -> list[str]:
        """Format a message for each successful read without rows."""
        empty = (batch.status == ReadStatus.OK) & (batch.rows.n == 0)
        return [f"INFO: No align {number}" for number in batch.read_index[empty].tolist()]
