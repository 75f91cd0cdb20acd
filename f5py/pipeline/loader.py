"""The first stage: alignment records, reads, reference segments and signals become batches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from f5py import console
from f5py.core.batch import ReadBatch, ReadStatus, offsets_of
from f5py.core.windows import Windows
from f5py.errors import InputFileError, SignalError, UnsupportedDataError
from f5py.io.alignments import AlignmentFile, BamWriter
from f5py.io.complete_file import complete_output
from f5py.io.read_index import ReadIndex
from f5py.io.reference import Reference
from f5py.io.signals import SignalSource
from f5py.io.signals.split_reads import fetch_split, split_read_tags

if TYPE_CHECKING:
    import pysam

_CIGAR_SKIP = 3
_CIGAR_HARD_CLIP = 5
_CIGAR_OF_READ = (0, 1, 4, _CIGAR_HARD_CLIP, 7, 8)  # operations that take bases of the whole read


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
        Fill `ReadBatch.passed_over`. A batch is also closed when it has as many of these as reads may be in it, so that
        it may have no reads at all.
    partition_tag : str or None
        Tag of the alignment records by which reads are told apart, such as HP; its values are in `partitions`.
    """

    alignments: AlignmentFile
    reads_path: str
    reads: ReadIndex
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
    partition_tag: str | None = None
    partitions: list[str] = field(default_factory=list)
    n_ultra: int = 0
    warned_of_lengths: bool = False
    times: LoadTimes = field(default_factory=LoadTimes)

    def batches(self) -> Iterator[ReadBatch]:
        """Yield the batches in the file's order."""
        if self.ultra_path is None:
            yield from self._batches(None)
            return
        header = self.alignments.header
        with complete_output(self.ultra_path) as file, BamWriter(file, self.ultra_path, header) as ultra:
            yield from self._batches(ultra)

    def _batches(self, ultra: BamWriter | None) -> Iterator[ReadBatch]:
        number = 0
        records: list[tuple[int, pysam.AlignedSegment]] = []
        passed_over: list[tuple[int, pysam.AlignedSegment]] = []
        n_bases = 0
        any_known = False
        name = ""
        started = time.perf_counter()
        for read_index, record in self.alignments.records(self.windows, left_out=self.keep_passed_over):
            if read_index < 0:
                passed_over.append((len(records), record))
            else:
                name = record.query_name or "*"
                length = max(int(self.reads.lengths([name])[0]), 0)
                any_known = any_known or length > 0
                if ultra is not None and length > self.ultra_threshold:
                    ultra.write(record)
                    self.n_ultra += 1
                    if self.keep_passed_over:
                        passed_over.append((len(records), record))
                else:
                    records.append((read_index, record))
                    n_bases += length
            if max(len(records), len(passed_over)) >= self.batch_size or n_bases >= self.max_bases:
                self.times.alignments += time.perf_counter() - started
                yield self._load(number, records, passed_over)
                number += 1
                records, passed_over = [], []
                n_bases = 0
                started = time.perf_counter()
        self.times.alignments += time.perf_counter() - started
        if records or passed_over:
            yield self._load(number, records, passed_over)
        kept = self.alignments.counts.kept
        if kept and not any_known:
            raise InputFileError(
                f"{self.reads_path}: none of the {kept} aligned reads, such as {name}, is in the index of the "
                "reads; give the reads that were mapped, and index them with: f5py index"
            )

    def _load(self, number: int, records: list, passed_over: list) -> ReadBatch:
        started = time.perf_counter()
        names = [record.query_name or "*" for _, record in records]
        starts = np.array([record.reference_start for _, record in records], np.int64)
        # a record without a CIGAR has no end; it is taken as one without aligned bases
        ends = np.array([record.reference_end or record.reference_start for _, record in records], np.int64)
        contigs = np.array([record.reference_id for _, record in records], np.int32)
        self._check_ends(names, contigs, ends)
        cigar, cigar_offsets, read_bases = _cigars(records, self.hard_clips, self.spliced)
        segments = [
            self.reference.segment(contig, start, end + 1)
            for contig, start, end in zip(contigs.tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]
        now = time.perf_counter()
        self.times.alignments += now - started
        bases, base_offsets = self.reads.sequences(names)
        self._compare_lengths(names, read_bases, np.diff(base_offsets))
        started = time.perf_counter()
        self.times.reads += started - now

        signals = fetch_split(self.signals, names, *split_read_tags(record for _, record in records))
        status = np.zeros(len(names), np.uint8)
        for read, problem in sorted(signals.problems.items()):
            if not self.skip_unreadable:
                raise SignalError(f"{problem} (--skip-unreadable=no)")
            status[read] = ReadStatus.BAD_READ
            console.warning("read_signals", problem)
        self.times.signals += time.perf_counter() - started
        return ReadBatch(
            number=number,
            names=names,
            records=[record for _, record in records] if self.keep_records else [],
            passed_over=passed_over,
            partition=self._partition(records),
            read_index=np.array([read_index for read_index, _ in records], np.int64),
            status=status,
            contig=contigs,
            reference_start=starts,
            reference_end=ends,
            reverse=np.array([record.is_reverse for _, record in records], np.bool_),
            cigar=cigar,
            cigar_offsets=cigar_offsets,
            reference=self.reference.normalise(np.frombuffer(b"".join(segments), np.uint8)),
            reference_offsets=offsets_of(np.array([len(segment) for segment in segments], np.int64)),
            bases=bases,
            base_offsets=base_offsets,
            samples=signals.samples,
            sample_offsets=signals.offsets,
            offset=signals.offset,
            unit=signals.range / signals.digitisation,
            sampling_rate=signals.sampling_rate,
        )

    def _partition(self, records: list) -> np.ndarray:
        """Number of each record's value of the partition tag; -1 without it."""
        tag = self.partition_tag
        if tag is None:
            return np.empty(0, np.int32)
        values = [str(record.get_tag(tag)) if record.has_tag(tag) else None for _, record in records]
        numbers: dict[str | None, int] = {value: i for i, value in enumerate(self.partitions)}
        for value in values:
            if value is not None and value not in numbers:
                numbers[value] = len(numbers)
                self.partitions.append(value)
        return np.array([numbers.get(value, -1) for value in values], np.int32)

    def _check_ends(self, names: list[str], contigs: np.ndarray, ends: np.ndarray) -> None:
        beyond = np.flatnonzero(ends > np.array(self.alignments.contig_lengths, np.int64)[contigs])
        if len(beyond):
            read = int(beyond[0])
            raise InputFileError(
                f"{self.alignments.name}: the alignment of read {names[read]} goes on behind the end of contig "
                f"{self.alignments.contigs[contigs[read]]}; map the reads again"
            )

    def _compare_lengths(self, names: list[str], aligned: np.ndarray, indexed: np.ndarray) -> None:
        """Warn, once, of reads that were changed between mapping and indexing: their positions do not fit."""
        differ = np.flatnonzero((aligned != indexed) & (aligned > 0) & (indexed > 0))
        if len(differ) and not self.warned_of_lengths:
            self.warned_of_lengths = True
            read = int(differ[0])
            console.warning(
                "load_reads",
                f"{self.reads_path}: read {names[read]} has {indexed[read]} bases, but {aligned[read]} in its "
                "alignment; were the reads trimmed or basecalled again? The calls of such reads are wrong",
            )


def _cigars(records: list, hard_clips: bool, allow_spliced: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All records' CIGAR operations as BAM stores them, their offsets, and the bases of each whole read.

    Without `hard_clips` hard clips are given length zero.
    """
    operations = [record.cigartuples or [] for _, record in records]
    offsets = offsets_of(np.array([len(pieces) for pieces in operations], np.int64))
    flat = np.fromiter(chain.from_iterable(chain.from_iterable(operations)), np.uint32, 2 * offsets[-1])
    of_read = np.where(np.isin(flat[::2], _CIGAR_OF_READ), flat[1::2], 0)
    read_bases = np.diff(np.concatenate([[0], np.cumsum(of_read, dtype=np.int64)])[offsets])
    if not hard_clips:
        flat[1::2][flat[::2] == _CIGAR_HARD_CLIP] = 0
    cigar = flat[1::2] << np.uint32(4) | flat[::2]
    spliced = np.flatnonzero(flat[::2] == _CIGAR_SKIP)
    if len(spliced) and not allow_spliced:
        read = int(np.searchsorted(offsets, spliced[0], side="right")) - 1
        raise UnsupportedDataError(
            f"read {records[read][1].query_name}: spliced alignment (N in the CIGAR); methylation calling needs reads "
            "mapped without splicing, e.g. minimap2 -ax map-ont"
        )
    return cigar, offsets, read_bases
