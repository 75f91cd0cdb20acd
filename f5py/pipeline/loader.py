"""First stage: alignment records, reads, reference segments and signals become batches."""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.core.names import Names
from f5py.core.windows import Windows
from f5py.errors import InputFileError, SignalError
from f5py.io.bam._bam_numba import DUPLICATE, KEPT
from f5py.io.bam.alignments import AlignmentFile, RecordCounts
from f5py.io.bam.bam_records import RawRecords, RecordColumns, chosen_records, record_name
from f5py.io.bam.record_ranges import RecordRange
from f5py.io.bam.record_reads import RecordReads
from f5py.io.reads.read_index import ReadIndex
from f5py.io.reads.reference import Reference
from f5py.io.signals import SignalBlock, SignalSource
from f5py.io.signals.split_reads import fetch_split
from f5py.messages.progress import is_watched
from f5py.methylation.overlapping_calls import AlignmentSpans, Places
from f5py.pipeline.batch_records import (
    BatchRecords,
    Part,
    RecordSlice,
    bases_of,
    check_ends,
    columns_of,
    prepare_cigars,
)
from f5py.pipeline.record_filter import BatchLimits, SeenRecords, classified, cut
from f5py.threads.ordered import prefetch_ordered
from f5py.threads.pipeline import THREAD_PREFIX
from f5py.threads.pool import WorkerPool

#: Reads of a batch from which on the first batches are smaller, so that computing begins sooner.
_LARGE_BATCH = 512

#: Kind of a record that `Loader.chooses` leaves out; those of `f5py.io.bam._bam_numba` are smaller.
_NOT_CHOSEN = 255


def _part_of_first(number: int) -> int:
    """Return the divisor of the size of a batch: 4, 4, 2, 2, 1 and so on."""
    return max(4 >> number // 2, 1)


@dataclass
class Loader:
    """Make batches from the records of an alignment file."""

    # alignments, reads, reference, signals: where records, base-called reads, the reference and signals come from;
    # `reads_path` is for messages
    alignments: AlignmentFile
    reads_path: str
    reads: ReadIndex | RecordReads
    reference: Reference
    signals: SignalSource
    windows: Windows | None  # regions to restrict the records to
    # batch_size, max_bases: a batch is closed when it has that many reads or at least that many bases
    batch_size: int
    max_bases: int
    # of reads with more bases, if it is not negative, only the records are there, in `ReadBatch.ultra`
    ultra_threshold: int = -1
    skip_unreadable: bool = True  # leave reads without a usable signal out with a warning instead of ending the run
    hard_clips: bool = True  # count hard-clipped bases in read coordinates
    spliced: bool = False  # accept spliced alignments
    keep_records: bool = False  # fill `ReadBatch.records`
    # have the records that the filters leave out there too. A batch is also closed when it has as many of these as
    # reads may be in it, so that it may have no reads at all.
    keep_passed_over: bool = False
    n_ahead: int = 1  # batches that are loaded at the same time, or have been and are not taken yet
    # tag of the alignment records by which reads are told apart, such as HP; its values are in `Loader.partitions`
    partition_tag: str | None = None
    # of a run in parts: also load alignments before a part that overlap others of the same reads in it; see
    # `PrecedingRecords`
    with_preceding: bool = False
    chooses: Callable[[Names], NDArray[np.bool_]] | None = None  # marks the reads that are used, by their names
    # read only one thing at a time: what is fetched for one may take the place of what was fetched for another
    one_at_a_time: bool = False
    # threads that help; others than those that compute, so that loading never waits for these
    pool: WorkerPool | None = None
    partitions: list[str] = field(default_factory=list)  # values of the partition tag that have been met
    seen: SeenRecords | None = None  # what finds duplicates, if these are left out
    n_ultra: int = 0
    _any_known: bool = False
    _estimates_total: bool = field(default_factory=is_watched)
    _name: str = ""  # of a read
    # seconds spent on alignments, reads and signals, divided by the number of batches loaded in parallel
    times: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _signals_lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        """Cancel loading."""
        if self.pool is not None:
            self.pool.stop()

    def batches(
        self, parts: list[Part] | Iterator[Part] | None = None, estimates_total: bool = False
    ) -> Generator[Any, None, None]:
        """Yield the batches in file order, or those of the parts, each with its part's number.

        An iterator of parts is asked for the next one when that can be loaded. With `estimates_total`, as with a
        progress bar, `ReadBatch.share_of_input` is filled where that takes a look at the alignments' index.
        """
        self._estimates_total = self._estimates_total or estimates_total
        with closing(prefetch_ordered(self._cuts(parts), self._load, self.n_ahead, f"{THREAD_PREFIX}load")) as loaded:
            for batch, times, share in loaded:
                self.times += times
                batch.share_of_input = share
                yield batch
                del batch  # it may be through while the next one is waited for

    def segments(self) -> Generator[tuple[RecordColumns, NDArray[np.uint8], NDArray[np.int64]], None, None]:
        """Yield records batch by batch with their reference segments and offsets, without signals."""
        with closing(self._cuts(None)) as cuts:
            for cut in cuts:
                columns = RecordColumns.joined([one.columns() for one in cut.stretches])
                yield columns, *self.reference.segments(columns.contig, columns.start, columns.end + 1, self.pool)

    def _cuts(self, parts: list[Part] | Iterator[Part] | None) -> Generator[BatchRecords, None, None]:
        """Yield the records of each batch."""
        with closing(self._all_cuts(parts)) as cuts:
            while True:
                with self._alone():
                    cut = next(cuts, None)
                if cut is None:
                    return
                yield cut
                del cut

    def _alone(self) -> AbstractContextManager[Any]:
        return self._lock if self.one_at_a_time else nullcontext()

    def _all_cuts(self, parts: list[Part] | Iterator[Part] | None) -> Generator[BatchRecords, None, None]:
        if parts is None:
            yield from self._cut(0)
            self.check_any_known(self._any_known, self.alignments.counts)
            if self.alignments.chosen is not None:
                self.alignments.chosen.warn_of_missing("the alignments" + (" of the region" if self.windows else ""))
            return
        number = 0
        known = parts if isinstance(parts, list) else []
        earlier = PrecedingRecords(self, known)
        for done, part in enumerate(parts):
            for stretches in earlier.before(part):
                yield BatchRecords(number, stretches, self._partition([]), 0.0, part=part.number, is_earlier=True)
                number += 1
            self._any_known = False
            before, n_ultra = replace(self.alignments.counts), self.n_ultra
            for found in self._cut(number, part.records):
                yield replace(found, part=part.number, share=(done + 0.5) / len(known) if known else None)
                number += 1
            part.skipped = self.alignments.counts.plus(before, -1)
            part.n_ultra, part.has_known = self.n_ultra - n_ultra, self._any_known

    def _cut(self, number: int, within: RecordRange | None = None) -> Iterator[BatchRecords]:
        """Yield the records of each batch, from batch `number` on."""
        n_before = 0 if within is None else within.first_record
        stretches: list[RecordSlice] = []
        state = np.zeros(4, np.int64)
        started = time.perf_counter()
        with closing(self.alignments.chunks(self.windows, self.batch_size, within)) as chunks:
            for data, starts, n in chunks:
                counts = self.alignments.counts
                kinds, rows, lengths = classified(self.alignments, self.reads, self.seen, data, starts, n, counts)
                self._any_known = self._any_known or bool(lengths.any())
                if self.chooses is not None:
                    columns = RecordColumns.of(data, starts, kept := np.flatnonzero(kinds == KEPT))
                    kinds[kept[~self.chooses(Names(columns.names, columns.name_offsets))]] = _NOT_CHOSEN
                if (kept := np.flatnonzero(kinds == KEPT)).size:
                    self._name = record_name(data, int(starts[kept[-1]]))
                first = 0
                while first < n:
                    threshold = self.ultra_threshold
                    part = _part_of_first(number) if self.batch_size >= _LARGE_BATCH else 1
                    counts_left_out = self.keep_passed_over or self.chooses is not None or threshold >= 0
                    limits = BatchLimits(self.batch_size // part, self.max_bases // part, threshold, counts_left_out)
                    end = cut(kinds, lengths, first, n, limits, state)
                    stretches.append(RecordSlice.of(data, starts, kinds, rows, first, end, n_before))
                    self.n_ultra += len(stretches[-1].ultra)
                    first = end
                    if state[3]:
                        yield self._cut_of(number, stretches, n_before + first, time.perf_counter() - started)
                        number += 1
                        stretches = []
                        state[:] = 0
                        started = time.perf_counter()
                n_before += n
        if state[:2].any():
            yield self._cut_of(number, stretches, n_before, time.perf_counter() - started)

    def _cut_of(self, number: int, stretches: list[RecordSlice], n_visited: int, seconds: float) -> BatchRecords:
        """Complete the batch of some records with fields that depend on previous batches."""
        tag = self.partition_tag
        values = [] if tag is None else [value for one in stretches for value in one.tags(tag)]
        is_whole = self.windows is None and self.alignments.chosen is None
        n_expected = self._n_expected if self._estimates_total and is_whole else None
        return BatchRecords(
            number,
            stretches,
            self._partition(values),
            seconds,
            share=min(n_visited / n_expected, 1.0) if n_expected else None,
        )

    def check_any_known(self, any_known: bool, counts: RecordCounts) -> None:
        """Raise `InputFileError` if no read has bases; `counts` are those of all records."""
        if any_known or not counts.kept + counts.no_bases:
            return
        if isinstance(self.reads, RecordReads):
            raise InputFileError(
                f"{self.alignments.name}: none of the {counts.no_bases} aligned records has the bases of its whole "
                "read; give the basecalled reads with -r"
            )
        raise InputFileError(
            f"{self.reads_path}: none of the {counts.kept} aligned reads, such as {self._name}, is among the reads; "
            "give the reads that were mapped"
        )

    def _load(self, cut: BatchRecords) -> tuple[ReadBatch, NDArray[np.float64], float | None]:
        """Load a batch; called in several threads."""
        with self._alone():
            return self._read(cut)

    def _read(self, cut: BatchRecords) -> tuple[ReadBatch, NDArray[np.float64], float | None]:
        started = time.perf_counter()
        stretches = cut.stretches
        columns = RecordColumns.joined([one.columns() for one in stretches])
        names = Names(columns.names, columns.name_offsets)
        check_ends(self.alignments, names, columns.contig, columns.end)
        prepare_cigars(names, columns, self.hard_clips, self.spliced)
        reference, reference_offsets = self.reference.segments(
            columns.contig, columns.start, columns.end + 1, self.pool
        )
        records = None
        if self.keep_records:
            records = RawRecords.joined([one.raw(self.keep_passed_over) for one in stretches])
        ultra = [one.ultra_records() for one in stretches if len(one.ultra)]
        had_records = time.perf_counter()
        bases, base_offsets, is_other, is_compared = bases_of(stretches, self.reads, self.pool)
        had_bases = time.perf_counter()
        parents = Names(columns.parents, columns.parent_offsets)
        signals = self._signals(names, parents, columns)
        status = np.zeros(len(names), np.uint8)
        for read, problem in sorted(signals.problems.items()):
            if not self.skip_unreadable:
                raise SignalError(f"{problem} (--skip-unreadable=no)")
            status[read] = ReadStatus.BAD_READ
        digitisation, offset, range_, sampling_rate, start_time = signals.calibration
        batch = ReadBatch(
            number=cut.number,
            part=cut.part,
            is_earlier=cut.is_earlier,
            names=names,
            records=records,
            ultra=np.concatenate(ultra) if ultra else None,
            partition=cut.partition,
            read_index=np.concatenate([one.read_index for one in stretches]),
            status=status,
            contig=columns.contig,
            reference_start=columns.start,
            reference_end=columns.end,
            reverse=columns.reverse,
            cigar=columns.cigar,
            cigar_offsets=columns.cigar_offsets,
            reference=reference,
            reference_offsets=reference_offsets,
            bases=bases,
            base_offsets=base_offsets,
            samples=signals.samples,
            sample_offsets=signals.offsets,
            offset=offset,
            unit=range_ / digitisation,
            sampling_rate=sampling_rate,
            start_time=start_time,
            problems=signals.problems,
            packed=signals.packed,
            is_compared=is_compared,
        )
        batch.drop(is_other, ReadStatus.BAD_READ, Cause.OTHER_BASES)
        batch.columns = columns_of(batch)
        seconds = np.diff([started, had_records, had_bases, time.perf_counter()])
        times = seconds / self.n_ahead
        times[0] += cut.seconds
        return batch, times, self._share(cut, columns)

    def _signals(self, names: Names, parents: Names, columns: RecordColumns) -> SignalBlock:
        """Read the signals of a batch's reads, under a lock for single-threaded sources."""
        with nullcontext() if self.signals.is_concurrent else self._signals_lock:
            return fetch_split(self.signals, names, parents, columns.split_start, columns.split_length)

    def _share(self, cut: BatchRecords, columns: RecordColumns) -> float | None:
        """Return the fraction of the alignments up to the end of these, if known."""
        if self.windows is None or cut.part >= 0:
            return cut.share
        if not len(columns.contig):
            return None
        place = int(columns.contig[-1]), int(columns.start[-1])
        return self.windows.share_passed(*place, self.alignments.contig_lengths)

    @cached_property
    def _n_expected(self) -> int | None:
        return self.alignments.expected_records()

    def _partition(self, values: list[str | None]) -> NDArray[np.int32]:
        """Return the numbers of the records' values of the partition tag; -1 without it."""
        numbers: dict[str | None, int] = {value: i for i, value in enumerate(self.partitions)}
        for value in dict.fromkeys(values):
            if value is not None and value not in numbers:
                numbers[value] = len(numbers)
                self.partitions.append(value)
        return np.array([numbers.get(value, -1) for value in values], np.int32)


class PrecedingRecords:
    """Visit the records between parts, so that each part equals that of one run over everything.

    For duplicate filtering, all preceding records are marked as seen. Where calls count once per read, alignments
    before a part are loaded if a later part of this process has an overlapping one of the same read: their effect
    depends on whether they can be called.
    """

    def __init__(self, loader: Loader, parts: Sequence[Part]) -> None:
        self._loader = loader
        self._parts = parts

    def before(self, part: Part) -> Iterator[list[RecordSlice]]:
        """Yield the records of each batch that a part needs before it."""
        loader = self._loader
        if part.before is None or not (loader.with_preceding or loader.seen is not None):
            return
        limits = BatchLimits(loader.batch_size, loader.max_bases, loader.ultra_threshold, False)
        stretches: list[RecordSlice] = []
        state = np.zeros(4, np.int64)
        later = self._later if loader.with_preceding else None
        for data, starts, kinds, rows, lengths in self._visited(part.before, loader.seen):
            if later is None:
                continue
            kept = np.flatnonzero(kinds == KEPT)
            names, places = _spans_of(data, starts, kept)
            kinds[kept[~later.touched(names, places)]] = DUPLICATE
            first = 0
            while first < len(kinds):
                end = cut(kinds, lengths, first, len(kinds), limits, state)
                chosen = first + np.flatnonzero(kinds[first:end] == KEPT)
                if len(chosen):  # without the others, of which there may be many chunks
                    few, offsets = chosen_records(data, starts, chosen)
                    kinds_of_few = np.full(len(chosen), KEPT, np.uint8)
                    stretches.append(RecordSlice.of(few, offsets, kinds_of_few, rows[chosen], 0, len(chosen), 0))
                first = end
                if state[3]:
                    yield stretches
                    stretches = []
                    state[:] = 0
        if stretches:
            yield stretches

    @cached_property
    def _later(self) -> AlignmentSpans:
        """Alignments of the parts after the first skipped records."""
        spans = AlignmentSpans()
        first = next(i for i, part in enumerate(self._parts) if part.before is not None)
        for part in self._parts[first:]:
            for data, starts, kinds, _, _ in self._visited(part.records, None):
                spans.add(*_spans_of(data, starts, np.flatnonzero(kinds == KEPT)))
        return spans

    def _visited(
        self, within: RecordRange | None, seen: SeenRecords | None
    ) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]]:
        """Yield records with their `classified` kinds, without counting them."""
        loader = self._loader
        alignments = loader.alignments
        with closing(alignments.chunks(loader.windows, loader.batch_size, within)) as chunks:
            for data, starts, n in chunks:
                yield data, starts, *classified(alignments, loader.reads, seen, data, starts, n, RecordCounts())


def _spans_of(data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> tuple[Names, Places]:
    columns = RecordColumns.of(data, starts, chosen)
    return Names(columns.names, columns.name_offsets), (columns.contig, columns.start, columns.end)
