"""Outputs of ``eventalign`` besides its table: PAF, BAM, summary of the reads."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pysam

from f5py.core.batch import ReadBatch, ReadStatus, RowState
from f5py.io.bam.indexed_output import indexed_output
from f5py.io.files.output import TextOutput
from f5py.jit.kernel import kernel
from f5py.messages import console
from f5py.outputs.events.eventalign_sam import SamToBam
from f5py.outputs.formatted_text import FormattedText
from f5py.outputs.resquiggle.signal_strings import strings_of_rows
from f5py.outputs.sink import TextSink
from f5py.text.encoding import encoded

#: Columns that the kernel fills.
STEPS, SKIPS, STAYS, SAMPLES, EVENTS = range(5)
N_COUNTS = 5
_WITHOUT_EVENT = np.uint8(RowState.SKIPPED | RowState.DELETED)


class EventalignPaf:
    """Format a line per read with rows; thread-safe.

    Positions are of k-mers, of which a contig has k - 1 fewer than bases. Direct RNA starts at the larger position.
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


@kernel
def count_movements(counts, rows, event_offsets, event_length):
    """Count each read's steps, skips and stays, and the samples and number of its events.

    Parameters
    ----------
    counts : int64, shape (n_reads, N_COUNTS)
        Zero; filled.
    """
    offsets, n_rows, row_event, row_position, row_state = rows
    for read in range(counts.shape[0]):
        first = offsets[read]
        last = row_position[first] if n_rows[read] else 0
        for row in range(first, first + n_rows[read]):
            if row_state[row] & _WITHOUT_EVENT:
                continue
            counts[read, SAMPLES] += event_length[event_offsets[read] + row_event[row]]
            counts[read, EVENTS] += 1
            if row == first:
                continue
            kmers = abs(row_position[row] - last)
            last = row_position[row]
            if kmers == 0:
                counts[read, STAYS] += 1
            elif kmers == 1:
                counts[read, STEPS] += 1
            else:
                counts[read, SKIPS] += 1


class EventalignSummary(TextSink):
    """Table of ``--summary``: a line per read with rows. `signal_path` is a constant, or a function of its name."""

    part_name = "summary.tsv"
    header = (
        b"read_index\tread_name\tfast5_path\tmodel_name\tstrand\tnum_events\tnum_steps\tnum_skips\tnum_stays\t"
        b"total_duration\tshift\tscale\tdrift\tvar\n"
    )

    def __init__(self, path: str, n_threads: int, rna: bool, signal_path: Callable[[str], str] | str) -> None:
        super().__init__(path, n_threads)
        self._model = "rna" if rna else "dna"
        self._signal_path = signal_path

    def format(self, batch: ReadBatch) -> bytes:
        counts = np.zeros((len(batch), N_COUNTS), np.int64)
        count_movements(counts, batch.rows, batch.events.offsets, batch.events.length)
        lines = []
        for read in np.flatnonzero(batch.rows.n).tolist():
            name = batch.names[read]
            path = self._signal_path if isinstance(self._signal_path, str) else self._signal_path(name)
            steps, skips, stays, samples, events = counts[read].tolist()
            lines.append(
                f"{batch.read_index[read]}\t{name}\t{path}\t{self._model}\ttemplate\t"
                f"{events}\t{steps}\t{skips}\t{stays}\t{samples / float(batch.sampling_rate[read]):.2f}\t"
                f"{float(batch.shift[read]):.3f}\t{float(batch.scale[read]):.3f}\t0.000\t{float(batch.var[read]):.3f}\n"
            )
        return encoded("".join(lines))


class EventPaf(FormattedText):
    """PAF output that reports oddities per read."""

    def write(self, batch: ReadBatch) -> None:
        super().write(batch)
        assert isinstance(self._text, EventalignPaf)
        for note in self._text.notes(batch):
            console.plain(note)


class EventBam(FormattedText):
    """BAM output of SAM records, indexed if sorted; parts store text."""

    can_be_renamed = False
    _has_header = False

    def __init__(self, header: pysam.AlignmentHeader, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._header = header

    def _open_text(self) -> TextOutput:
        file = self.files.enter_context(indexed_output(self.path, self._header, self._options.threads))
        return self.files.enter_context(SamToBam(file, self.path, self._header, self._options.threads))
