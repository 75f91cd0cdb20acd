"""The first stage: alignment records, reads, reference segments and signals become batches."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.core.cigar import HARD_CLIP, OF_READ, REFERENCE_SKIP
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.core.windows import Windows
from f5py.errors import InputFileError, SignalError, UnsupportedDataError
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_output import RecordOutput
from f5py.io.bam.bam_records import RawRecords, RecordColumns, record_name, tag_values
from f5py.io.bam.record_ranges import RecordRange
from f5py.io.bam.record_reads import RecordReads
from f5py.io.files.complete_file import complete_output
from f5py.io.reads.read_index import ReadIndex
from f5py.io.reads.reference import Reference
from f5py.io.signals import SignalSource
from f5py.io.signals.split_reads import fetch_split
from f5py.messages.progress import is_watched
from f5py.messages.strict import input_warning
from f5py.pipeline.parts import Part
from f5py.threads.pool import WorkerPool


@dataclass
class LoadTimes:
    """Seconds spent on each kind of input."""

    alignments: float = 0.0
    reads: float = 0.0
    signals: float = 0.0

    @property
    def total(self) -> float:
        """Seconds in all."""
        return self.alignments + self.reads + self.signals


@dataclass
class Loader:
    """Makes batches of the records of an alignment file.

    Attributes
    ----------
    alignments, reads, reference, signals
        Where records, base-called reads, the reference and signals come from; `reads_path` is for messages.
    windows : Windows or None
        Regions to restrict the records to.
    batch_size, max_bases : int
        A batch is closed when it has that many reads or at least that many bases.
    ultra_path : str or None
        BAM file for reads longer than `ultra_threshold`, which are then left out. It appears when all records have
        been read.
    skip_unreadable : bool
        Leave reads without a usable signal out with a warning instead of ending the run.
    hard_clips : bool
        Count hard-clipped bases in read coordinates.
    spliced : bool
        Accept spliced alignments.
    keep_records : bool
        Fill `ReadBatch.records`.
    keep_passed_over : bool
        Have the records that the filters leave out there too. A batch is also closed when it has as many of these as
        reads may be in it, so that it may have no reads at all.
    pool : WorkerPool or None
        Threads that help.
    partition_tag : str or None
        Tag of the alignment records by which reads are told apart, such as HP; its values are in `partitions`.
    parts : list of Part or None
        Load these instead of the whole file.
    tells_share : bool
        Fill `ReadBatch.share_of_input` where that takes a look at the alignments' index.
    """

    alignments: AlignmentFile
    reads_path: str
    reads: ReadIndex | RecordReads
    reference: Reference
    signals: SignalSource
    windows: Windows | None
    batch_size: int
    max_bases: int
    ultra_path: str | None
    ultra_threshold: int
    skip_unreadable: bool
    hard_clips: bool
    spliced: bool = False
    keep_records: bool = False
    keep_passed_over: bool = False
    pool: WorkerPool | None = None
    partition_tag: str | None = None
    partitions: list[str] = field(default_factory=list)
    parts: list[Part] | None = None
    n_ultra: int = 0
    warned_of_lengths: bool = False
    _any_known: bool = False
    tells_share: bool = field(default_factory=is_watched)
    _name: str = ""  # of a read
    times: LoadTimes = field(default_factory=LoadTimes)

    def use_pool(self, pool: WorkerPool) -> None:
        """Let these threads help."""
        self.pool = pool
        use_pool = getattr(self.signals, "use_pool", None)
        if use_pool is not None:
            use_pool(pool)

    def batches(self) -> Generator[ReadBatch, None, None]:
        """Yield the batches in the file's order, or those of the parts, each with its part's number."""
        if self.parts is None:
            with self._ultra_output(self.ultra_path) as ultra:
                yield from self._batches(ultra)
                self.check_any_known(self._any_known)
            return
        number = 0
        for done, part in enumerate(self.parts):
            self._any_known = False
            before, n_ultra = replace(self.alignments.counts), self.n_ultra
            with self._ultra_output(part.ultra_path) as ultra:
                for batch in self._batches(ultra, part.records):
                    batch.number, batch.part = number, part.number
                    batch.share_of_input = (done + 0.5) / len(self.parts)
                    number += 1
                    yield batch
            part.skipped = self.alignments.counts.plus(before, -1)
            part.n_ultra, part.has_known = self.n_ultra - n_ultra, self._any_known

    @contextmanager
    def _ultra_output(self, path: str | None) -> Iterator[RecordOutput | None]:
        if path is None:
            yield None
            return
        with complete_output(path) as file, RecordOutput(file, path, self.alignments.header) as ultra:
            yield ultra

    def _batches(self, ultra: RecordOutput | None, within: RecordRange | None = None) -> Iterator[ReadBatch]:
        from f5py.io.bam._bam_numba import KEPT
        from f5py.pipeline._batch_limits_numba import cut

        number = 0
        read_index = 0 if within is None else within.first_record
        parts: list[_Part] = []
        state = np.zeros(4, np.int64)
        started = time.perf_counter()
        with closing(self.alignments.chunks(self.windows, self.batch_size, within)) as chunks:
            for data, starts, n in chunks:
                kinds, rows, lengths = self._classify(data, starts, n)
                self._any_known = self._any_known or bool(lengths.any())
                if (kept := np.flatnonzero(kinds == KEPT)).size:
                    self._name = record_name(data, int(starts[kept[-1]]))
                first = 0
                while first < n:
                    threshold = self.ultra_threshold if ultra is not None else -1
                    limits = self.batch_size, self.max_bases, threshold
                    end = cut(kinds, lengths, first, n, *limits, self.keep_passed_over, state)
                    if ultra is not None:
                        self._write_ultra(ultra, data, starts, kinds, first, end)
                    parts.append(_Part.of(self, data, starts, kinds, rows, first, end, read_index))
                    first = end
                    if state[3]:
                        self.times.alignments += time.perf_counter() - started
                        yield self._load(number, parts, read_index + first)
                        number += 1
                        parts = []
                        state[:] = 0
                        started = time.perf_counter()
                read_index += n
        self.times.alignments += time.perf_counter() - started
        if state[:2].any():
            yield self._load(number, parts, read_index)

    def check_any_known(self, any_known: bool) -> None:
        """Raise `InputFileError` if not a single read has bases."""
        counts = self.alignments.counts
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

    def _classify(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], n: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """What becomes of each record, its row in the index of the reads and its read's number of bases."""
        from f5py.io.bam._bam_numba import KEPT, LOW_MAPQ, NO_BASES, SECONDARY, SUPPLEMENTARY, ULTRA, UNMAPPED, classify

        index = self.reads.held.index if isinstance(self.reads, RecordReads) else self.reads.index
        kinds, rows = np.empty(n, np.uint8), np.empty(n, np.int64)
        wanted = self.alignments.min_mapq, self.alignments.secondary, self.alignments.supplementary
        classify(data, starts, n, *wanted, index.name_table, kinds, rows)
        if isinstance(self.reads, RecordReads):
            lengths, rows = self.reads.look_up(data, starts, n, kinds == KEPT)
            kinds[(kinds == KEPT) & (lengths == 0)] = NO_BASES
        else:
            lengths = np.where(rows >= 0, index.length[rows], 0) if len(index) else np.zeros(n, np.int64)
        found = np.bincount(kinds, minlength=ULTRA)
        counts = self.alignments.counts
        counts.kept += int(found[KEPT])
        counts.unmapped += int(found[UNMAPPED])
        counts.low_mapq += int(found[LOW_MAPQ])
        counts.secondary += int(found[SECONDARY])
        counts.supplementary += int(found[SUPPLEMENTARY])
        counts.no_bases += int(found[NO_BASES])
        return kinds, rows, lengths

    def _write_ultra(
        self, ultra: RecordOutput, data: NDArray, starts: NDArray, kinds: NDArray, first: int, end: int
    ) -> None:
        from f5py.io.bam._bam_numba import ULTRA

        for i in (first + np.flatnonzero(kinds[first:end] == ULTRA)).tolist():
            ultra.write(data[starts[i] : starts[i + 1]])
            self.n_ultra += 1

    def _load(self, number: int, parts: list[_Part], n_visited: int) -> ReadBatch:
        started = time.perf_counter()
        columns = RecordColumns.joined([part.columns for part in parts])
        names = Names(columns.names, columns.name_offsets)
        self._check_ends(names, columns.contig, columns.end)
        read_bases = self._prepare_cigars(names, columns)
        reference, reference_offsets = self.reference.segments(
            columns.contig, columns.start, columns.end + 1, self.pool
        )
        now = time.perf_counter()
        self.times.alignments += now - started
        bases, base_offsets = self._bases(parts)
        self._compare_lengths(names, read_bases, np.diff(base_offsets))
        started = time.perf_counter()
        self.times.reads += started - now

        parents = Names(columns.parents, columns.parent_offsets)
        signals = fetch_split(self.signals, names, parents, columns.split_start, columns.split_length)
        status = np.zeros(len(names), np.uint8)
        for read, problem in sorted(signals.problems.items()):
            if not self.skip_unreadable:
                raise SignalError(f"{problem} (--skip-unreadable=no)")
            status[read] = ReadStatus.BAD_READ
        self.times.signals += time.perf_counter() - started
        return ReadBatch(
            number=number,
            names=names,
            records=RawRecords.joined([part.records for part in parts]) if self.keep_records else None,
            partition=self._partition([value for part in parts for value in part.tags]),
            read_index=np.concatenate([part.read_index for part in parts]),
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
            offset=signals.offset,
            unit=signals.range / signals.digitisation,
            sampling_rate=signals.sampling_rate,
            problems=signals.problems,
            share_of_input=self._share(n_visited, columns),
        )

    def _share(self, n_visited: int, columns: RecordColumns) -> float | None:
        """Which share of the alignments comes before the end of these, if that can be told."""
        if self.windows is not None:
            if not len(columns.contig):
                return None
            place = int(columns.contig[-1]), int(columns.start[-1])
            return self.windows.share_passed(*place, self.alignments.contig_lengths)
        n_expected = self._n_expected if self.tells_share else None
        return min(n_visited / n_expected, 1.0) if n_expected else None

    @cached_property
    def _n_expected(self) -> int | None:
        return self.alignments.expected_records()

    def _bases(self, parts: list[_Part]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The bases of the reads of a batch, and their offsets."""
        if not isinstance(self.reads, RecordReads):
            return self.reads.sequences_of(np.concatenate([part.rows for part in parts]), self.pool)
        sizes = np.concatenate([np.diff(part.base_offsets) for part in parts])
        return np.concatenate([part.bases for part in parts]), offsets_of(sizes)

    def _partition(self, values: list[str | None]) -> NDArray[np.int32]:
        """Number of each record's value of the partition tag; -1 without it."""
        numbers: dict[str | None, int] = {value: i for i, value in enumerate(self.partitions)}
        for value in dict.fromkeys(values):
            if value is not None and value not in numbers:
                numbers[value] = len(numbers)
                self.partitions.append(value)
        return np.array([numbers.get(value, -1) for value in values], np.int32)

    def _prepare_cigars(self, names: Names, columns: RecordColumns) -> NDArray[np.int64]:
        """Take hard clips out if they are not to count; return the bases of each whole read."""
        operations, lengths = columns.cigar & 15, columns.cigar >> 4
        of_read = (OF_READ >> operations & 1) * lengths
        read_bases = np.diff(np.concatenate([[0], np.cumsum(of_read, dtype=np.int64)])[columns.cigar_offsets])
        if not self.hard_clips:
            columns.cigar[operations == HARD_CLIP] = HARD_CLIP
        spliced = np.flatnonzero(operations == REFERENCE_SKIP)
        if len(spliced) and not self.spliced:
            read = int(np.searchsorted(columns.cigar_offsets, spliced[0], side="right")) - 1
            raise UnsupportedDataError(
                f"read {names[read]}: spliced alignment (N in the CIGAR); methylation calling needs reads "
                "mapped without splicing, e.g. minimap2 -ax map-ont"
            )
        return read_bases

    def _check_ends(self, names: Names, contigs: np.ndarray, ends: np.ndarray) -> None:
        beyond = np.flatnonzero(ends > np.array(self.alignments.contig_lengths, np.int64)[contigs])
        if len(beyond):
            read = int(beyond[0])
            raise InputFileError(
                f"{self.alignments.name}: the alignment of read {names[read]} extends past the end of contig "
                f"{self.alignments.contigs[contigs[read]]}; map the reads again"
            )

    def _compare_lengths(self, names: Names, aligned: np.ndarray, indexed: np.ndarray) -> None:
        """Warn, once, of reads that were changed between mapping and indexing: their positions do not fit."""
        differ = np.flatnonzero((aligned != indexed) & (aligned > 0) & (indexed > 0))
        if len(differ) and not self.warned_of_lengths:
            self.warned_of_lengths = True
            read = int(differ[0])
            input_warning(
                "load_reads",
                f"{self.reads_path}: read {names[read]} has {indexed[read]} bases, but {aligned[read]} in its "
                "alignment; were the reads trimmed or basecalled again? The calls of such reads are wrong",
            )


@dataclass
class _Part:
    """Consecutive records of one chunk that belong to a batch: those that are kept, as columns."""

    columns: RecordColumns
    rows: NDArray[np.int64]
    read_index: NDArray[np.int64]
    tags: list[str | None]
    records: RawRecords
    bases: NDArray[np.uint8]
    base_offsets: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        loader: Loader,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        kinds: NDArray[np.uint8],
        rows: NDArray[np.int64],
        first: int,
        end: int,
        read_index: int,
    ) -> _Part:
        from f5py.io.bam._bam_numba import KEPT

        kept = kinds[first:end] == KEPT
        chosen = first + np.flatnonzero(kept)
        records = RawRecords(np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty(0, np.int64))
        if loader.keep_records:
            read = np.where(kept, np.cumsum(kept) - 1, -1)
            whole = data[starts[first] : starts[end]].copy()
            records = RawRecords(whole, starts[first : end + 1] - starts[first], read)
            if not loader.keep_passed_over:
                records = records.of_reads(0, len(chosen))
        tags = [] if loader.partition_tag is None else tag_values(data, starts, chosen, loader.partition_tag)
        bases, base_offsets = np.empty(0, np.uint8), np.zeros(1, np.int64)
        if isinstance(loader.reads, RecordReads):
            bases, base_offsets = loader.reads.sequences(data, starts, chosen, rows[chosen])
        columns = RecordColumns.of(data, starts, chosen)
        return cls(columns, rows[chosen], read_index + chosen, tags, records, bases, base_offsets)
