"""Loader of unmapped reads from a sequence file."""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus, empty
from f5py.core.names import Names
from f5py.core.offsets import gather_slices
from f5py.io.reads.read_list import ReadList
from f5py.io.sequences.read_records import Sequences as ReadSequences
from f5py.io.sequences.read_records import sequence_batches
from f5py.io.signals import SignalBlock, SignalSource
from f5py.io.signals.split_reads import name_duplex_reads
from f5py.pipeline.batch_records import Part
from f5py.threads.ordered import prefetch_ordered
from f5py.threads.pipeline import THREAD_PREFIX

#: Names, letters and offsets of consecutive reads.
Sequences = tuple[list[str], NDArray[np.uint8], NDArray[np.int64]]


def unmapped_batch(
    number: int, names: list[str], bases: NDArray[np.uint8], base_offsets: NDArray[np.int64], signals: SignalBlock
) -> ReadBatch:
    """Make a batch of unmapped reads, with empty alignments and `contig` -1."""
    n = len(names)
    status = np.zeros(n, np.uint8)
    status[list(signals.problems)] = ReadStatus.BAD_READ
    digitisation, offset, range_, sampling_rate, _ = signals.calibration
    return ReadBatch(
        number=number,
        names=Names.of(names),
        read_index=np.arange(n),
        status=status,
        contig=np.full(n, -1, np.int32),
        reference_start=np.zeros(n, np.int64),
        reference_end=np.zeros(n, np.int64),
        reverse=np.zeros(n, np.bool_),
        cigar=empty(np.uint32),
        cigar_offsets=np.zeros(n + 1, np.int64),
        reference=empty(np.uint8),
        reference_offsets=np.zeros(n + 1, np.int64),
        bases=bases,
        base_offsets=base_offsets,
        samples=signals.samples,
        sample_offsets=signals.offsets,
        offset=offset,
        unit=range_ / digitisation,
        sampling_rate=sampling_rate,
        problems=signals.problems,
    )


class SequenceLoader:
    """Make batches of the reads of a FASTA or FASTQ file, unmapped."""

    def __init__(
        self,
        path: str,
        signals: SignalSource,
        batch_size: int,
        max_bases: int,
        n_ahead: int = 1,
        chosen: ReadList | None = None,
    ) -> None:
        self.batch_size = batch_size
        self.max_bases = max_bases
        self.sequence_seconds = 0.0
        self.signal_seconds = 0.0
        self.parts: deque[Part] = deque()
        self.n_parts = 0
        self._reads_per_part: int | None = None
        self._leave_out: Callable[[int], bool] = lambda part: False
        self._is_left_out = False  # the part that is being read
        self._signals = signals
        self._n_ahead = n_ahead
        self._stopped = False
        self._lock, self._times_lock = threading.Lock(), threading.Lock()
        self._chosen = chosen
        listed = map(self._listed, sequence_batches(path, max_bases, batch_size))
        self._sequences = (batch for batch in listed if batch[0])
        self._first = next(self._sequences, None)

    def _listed(self, batch: ReadSequences) -> Sequences:
        """Return names, bases and offsets of the chosen reads of a batch."""
        names, bases, offsets = list(batch.names), batch.bases, batch.offsets
        if self._chosen is not None:
            rows = np.flatnonzero(self._chosen.hold(names))
            bases, offsets = gather_slices(bases, offsets[rows], np.diff(offsets)[rows])
            names = [names[row] for row in rows]
        return names, bases, offsets

    def divide(self, reads_per_part: int, leave_out: Callable[[int], bool]) -> None:
        """Divide the reads into parts of this size, skipping those that `leave_out` returns true for."""
        self._reads_per_part = reads_per_part
        self._leave_out = leave_out

    def stop(self) -> None:
        """Cancel loading."""
        self._stopped = True

    def peek_names(self) -> list[str]:
        """Return the names of some of the first reads."""
        return [] if self._first is None else self._first[0][:16]

    def batches(self, parts: Any = None, estimates_total: bool = False) -> Generator[ReadBatch, None, None]:
        """Yield the batches in file order, of parts as `divide` says; the total is unknown before the end."""
        return prefetch_ordered(self._cuts(), self._load, self._n_ahead, f"{THREAD_PREFIX}load")

    def _cuts(self) -> Iterator[tuple[int, int, Sequences]]:
        """Yield number, part and reads of each batch."""
        number, n_reads = 0, 0
        sequences = self._first
        while sequences is not None and not self._stopped:
            for part, piece in self._of_parts(n_reads, sequences):
                yield number, part, piece
                number += 1
            n_reads += len(sequences[0])
            started = time.perf_counter()
            sequences = next(self._sequences, None)
            self.sequence_seconds += time.perf_counter() - started
        if self._chosen is not None and not self._stopped:
            self._chosen.warn_of_missing("the file of reads")

    def _of_parts(self, n_before: int, sequences: Sequences) -> Iterator[tuple[int, Sequences]]:
        """Yield the number and reads of each part in consecutive reads."""
        names, bases, offsets = sequences
        size = self._reads_per_part
        if size is None:
            yield 0, sequences
            return
        first = 0
        while first < len(names):
            part, within = divmod(n_before + first, size)
            end = min(first + size - within, len(names))
            if part >= self.n_parts:
                self.n_parts = part + 1
                self._is_left_out = self._leave_out(part)
                if not self._is_left_out:
                    self.parts.append(Part(part))
            if not self._is_left_out:
                at = offsets[first : end + 1]
                yield part, (names[first:end], bases[at[0] : at[-1]], at - at[0])
            first = end

    def _load(self, cut: tuple[int, int, Sequences]) -> ReadBatch:
        """Read the signals of a batch; called in several threads."""
        number, part, (names, bases, base_offsets) = cut
        started = time.perf_counter()
        with self._lock if not self._signals.is_concurrent else nullcontext():
            signals = name_duplex_reads(self._signals.fetch(names), names)
        batch = unmapped_batch(number, names, bases, base_offsets, signals)
        batch.part = part
        with self._times_lock:
            self.signal_seconds += (time.perf_counter() - started) / self._n_ahead
        return batch
