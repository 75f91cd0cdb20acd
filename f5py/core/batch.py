"""Batches of reads as flat arrays, from the loader to the writer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.large_arrays import recycled_array
from f5py.core.names import Names


class ReadStatus(IntEnum):
    """Fates of reads. Rejected reads keep their place in the batch."""

    OK = 0
    BAD_READ = 1  # no usable signal, or other bases than its alignment
    NO_ALIGNMENT = 2  # the aligner found no acceptable path
    NOT_CALIBRATED = 3  # too few events to recalibrate with, or too noisy
    QC_FAIL = 4  # too many events per base


class Cause(IntEnum):
    """Causes of rejection; the first ones are verdicts of the alignment of events to bases."""

    NONE = 0
    LOW_EMISSION = 1
    NOT_SPANNING = 2
    LONG_GAP = 3
    MANY_EVENTS = 4
    TOO_SHORT = 5
    FEW_EVENTS = 6
    NOISY = 7
    MANY_ALIGNED_EVENTS = 8
    NO_SIGNAL = 9
    OTHER_BASES = 10  # the alignment is of other bases


#: Reads from which a run's quality is judged.
FIRST_READS = 50


class RowState(IntFlag):
    """Properties of an event's row in an alignment to the reference."""

    BAD = 1  # the event fits no k-mer
    NEW_SEGMENT = 2  # first row after a skipped stretch of the reference (N in the CIGAR, or between windows)
    SKIPPED = 4  # no event: a k-mer skipped between events
    DELETED = 8  # no event: a k-mer with a deleted base


def empty(dtype) -> NDArray:
    """Make an empty array, for a field that no stage has filled."""
    return np.empty(0, dtype)


class StoredSamples(NamedTuple):
    """Samples of n reads in m pieces, perhaps compressed."""

    values: NDArray[np.int16]
    pieces: NDArray[np.int64]  # shape (n + 1,): offsets of the reads' pieces
    places: NDArray[np.int64]  # shape (m,): offsets in `values`
    n_samples: NDArray[np.int64]  # shape (m,)
    is_packed: NDArray[np.bool_]  # shape (m,): svb-zd bytes of SLOW5, with a byte offset as place

    def expand(
        self, reads: NDArray[np.int64], places: NDArray[np.int64], samples: NDArray[np.int16], pool: Any
    ) -> None:
        """Write the samples of ``reads[i]`` to an array from ``places[i]`` on, with the threads of a pool."""
        from f5py.core._stored_samples_numba import copy_samples

        pool.run(copy_samples, reads, self, places, samples)


class Alignments(NamedTuple):
    """Alignment arrays of a `ReadBatch`."""

    contig: NDArray[np.int32]
    start: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    cigar: NDArray[np.uint32]
    cigar_offsets: NDArray[np.int64]
    reference: NDArray[np.uint8]
    reference_offsets: NDArray[np.int64]


class Signals(NamedTuple):
    """Signal arrays of a `ReadBatch`."""

    samples: NDArray[np.int16]
    offsets: NDArray[np.int64]
    offset: NDArray[np.float32]
    unit: NDArray[np.float32]
    sampling_rate: NDArray[np.float32]


class Events(NamedTuple):
    """Events of a `ReadBatch`; read i has ``offsets[i]`` to ``offsets[i + 1]``."""

    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    start: NDArray[np.int32]  # shape (n_events,): in samples
    length: NDArray[np.int32]
    mean: NDArray[np.float32]  # shape (n_events,): in pA
    stdv: NDArray[np.float32]

    @classmethod
    def none(cls) -> Events:
        return cls(empty(np.int64), empty(np.int32), empty(np.int32), empty(np.float32), empty(np.float32))


class BaseMap(NamedTuple):
    """Events of each k-mer of the reads; read i begins at ``offsets[i]``."""

    offsets: NDArray[np.int64]  # shape (n_reads + 1,): of the bases; a read's last k - 1 elements are unused
    first_event: NDArray[np.int32]  # shape (n_bases,): index in the read; -1 for none
    last_event: NDArray[np.int32]

    @classmethod
    def none(cls) -> BaseMap:
        return cls(empty(np.int64), empty(np.int32), empty(np.int32))


class Scaling(NamedTuple):
    """Scaling arrays of a `ReadBatch`."""

    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    var: NDArray[np.float32]


class Rows(NamedTuple):
    """Event alignments to the reference; read i has ``n[i]`` rows from ``offsets[i]`` on."""

    offsets: NDArray[np.int64]  # shape (n_reads + 1,): of the events, unless k-mers without one are marked
    n: NDArray[np.int64]  # shape (n_reads,)
    event: NDArray[np.int32]  # shape (n_slots,): index in the read
    position: NDArray[np.int32]  # shape (n_slots,): 0-based reference position of the k-mer's first base
    state: NDArray[np.uint8]  # shape (n_slots,): bits of `RowState`

    @classmethod
    def none(cls) -> Rows:
        return cls(empty(np.int64), empty(np.int64), empty(np.int32), empty(np.int32), empty(np.uint8))


class Calls(NamedTuple):
    """Methylation calls; read i has ``n[i]`` from ``offsets[i]`` on."""

    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    n: NDArray[np.int64]  # shape (n_reads,)
    first: NDArray[np.int64]  # shape (n_slots,): reference position of a group's first site
    last: NDArray[np.int64]
    sites: NDArray[np.int32]  # shape (n_slots,): number of sites
    methylated: NDArray[np.float32]  # shape (n_slots,): log-likelihood, natural logarithm
    unmethylated: NDArray[np.float32]

    @classmethod
    def none(cls) -> Calls:
        return cls.of(empty(np.int64), empty(np.int64))

    @classmethod
    def of(cls, offsets: NDArray[np.int64], n: NDArray[np.int64]) -> Calls:
        """Allocate calls for `offsets`."""
        slots = int(offsets[-1]) if len(offsets) else 0
        return cls(
            offsets, n, np.empty(slots, np.int64), np.empty(slots, np.int64), np.empty(slots, np.int32),
            np.empty(slots, np.float32), np.empty(slots, np.float32),
        )  # fmt: skip


class BatchView(NamedTuple):
    """Arrays of a `ReadBatch` for kernels that follow alignments."""

    alignments: Alignments
    events: Events
    base_map: BaseMap
    scaling: Scaling
    events_per_base: NDArray[np.float64]  # shape (n_reads,)


@dataclass
class ReadBatch:
    """Batch of n reads.

    Per-read fields have shape (n,). Others are concatenated, with n + 1 offsets. Per-base and per-k-mer arrays share
    `base_offsets`; a read's last k - 1 per-k-mer elements are unused.
    """

    # filled by the loader
    number: int  # 0-based index in the run
    names: Names  # converted from any sequence of str
    read_index: NDArray[np.int64]  # 0-based index among all records visited
    status: NDArray[np.uint8]  # `ReadStatus`
    contig: NDArray[np.int32]  # index into the BAM header's contigs
    # reference_start, reference_end: 0-based, half-open
    reference_start: NDArray[np.int64]
    reference_end: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    cigar: NDArray[np.uint32]  # length << 4 | operation
    cigar_offsets: NDArray[np.int64]
    reference: NDArray[np.uint8]  # upper-case letters of the reference segment and one base beyond
    reference_offsets: NDArray[np.int64]
    bases: NDArray[np.uint8]  # letters of the read as sequenced
    base_offsets: NDArray[np.int64]
    samples: NDArray[np.int16]  # filled by `expand_samples` if `packed`
    sample_offsets: NDArray[np.int64]
    # offset, unit, sampling_rate: ``pA = (sample + offset) * unit``; Hz
    offset: NDArray[np.float32]
    unit: NDArray[np.float32]
    sampling_rate: NDArray[np.float32]

    # groups, each filled and freed as a whole
    events: Events = field(default_factory=Events.none)  # by event detection
    base_map: BaseMap = field(default_factory=BaseMap.none)  # ranks by scaling, events by the alignment
    calls: Calls = field(default_factory=Calls.none)  # by methylation calling
    rows: Rows = field(default_factory=Rows.none)  # by event alignment to the reference

    # filled by scaling, alignment and recalibration
    shift: NDArray[np.float32] = field(default_factory=lambda: empty(np.float32))
    scale: NDArray[np.float32] = field(default_factory=lambda: empty(np.float32))
    var: NDArray[np.float32] = field(default_factory=lambda: empty(np.float32))
    # aligned_pairs: shape (m, 2), offsets `pair_offsets`: (k-mer, event); optional
    aligned_pairs: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 2), np.int32))
    pair_offsets: NDArray[np.int64] = field(default_factory=lambda: empty(np.int64))
    n_pairs: NDArray[np.int64] = field(default_factory=lambda: empty(np.int64))
    events_per_base: NDArray[np.float64] = field(default_factory=lambda: empty(np.float64))
    # verdict: `Cause` of a failed alignment, for reads that were tried
    verdict: NDArray[np.uint8] = field(default_factory=lambda: empty(np.uint8))
    # n_calibration: events usable for recalibration
    n_calibration: NDArray[np.int64] = field(default_factory=lambda: empty(np.int64))

    # filled by methylation calling with several motifs
    # call_motif: motif index of each call, by which a read's calls are sorted
    call_motif: NDArray[np.int8] = field(default_factory=lambda: empty(np.int8))
    by_motif: list[Calls] = field(default_factory=list)

    # filled by the loader
    cause: NDArray[np.uint8] = field(default_factory=lambda: empty(np.uint8))  # `Cause` of a rejected read
    # problems: one line for each read without a usable signal
    problems: dict[int, str] = field(default_factory=dict)
    # is_compared: bases have been compared with the alignment's
    is_compared: NDArray[np.bool_] = field(default_factory=lambda: empty(np.bool_))
    # columns: shape (up to `FIRST_READS`, 2): alignment columns of the first reads, and those with equal bases
    columns: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    packed: StoredSamples | None = None  # source for `expand_samples`
    records: Any = None  # optional `f5py.io.bam.bam_records.RawRecords` in input order, rejected ones included
    ultra: NDArray[np.uint8] | None = None  # bytes of the records of very long reads, which are left out
    # partition: optional index of the partitioning tag's value, -1 for none
    partition: NDArray[np.int32] = field(default_factory=lambda: empty(np.int32))
    # start_time: seconds after the start of the run, NaN if unknown
    start_time: NDArray[np.float32] = field(default_factory=lambda: empty(np.float32))
    share_of_input: float | None = None
    part: int = -1  # of the run; -1 without parts
    is_earlier: bool = False  # alignments of earlier parts, computed for their overlaps and not written
    covered_sites: int = 0  # sites skipped because an earlier alignment of the same read covers them
    # kmer_marks: offsets `reference_offsets`: optional, see `f5py.event_alignment.kmer_marks.compare_kmers`
    kmer_marks: NDArray[np.uint8] = field(default_factory=lambda: empty(np.uint8))

    def __post_init__(self) -> None:
        self.names = Names.of(self.names)
        self.base_map = self.base_map._replace(offsets=self.base_offsets)
        if not len(self.cause):
            self.cause = np.where(self.status == ReadStatus.BAD_READ, np.uint8(Cause.NO_SIGNAL), np.uint8(Cause.NONE))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def read_length(self) -> NDArray[np.int64]:
        return np.diff(self.base_offsets)

    @property
    def n_samples(self) -> NDArray[np.int64]:
        return np.diff(self.sample_offsets)

    @property
    def n_events(self) -> NDArray[np.int64]:
        return np.diff(self.events.offsets)

    @property
    def alignments(self) -> Alignments:
        return Alignments(
            self.contig, self.reference_start, self.reverse, self.cigar, self.cigar_offsets, self.reference,
            self.reference_offsets,
        )  # fmt: skip

    @property
    def signals(self) -> Signals:
        return Signals(self.samples, self.sample_offsets, self.offset, self.unit, self.sampling_rate)

    @property
    def scaling(self) -> Scaling:
        return Scaling(self.shift, self.scale, self.var)

    @property
    def view(self) -> BatchView:
        return BatchView(self.alignments, self.events, self.base_map, self.scaling, self.events_per_base)

    def release(self, *names: str) -> None:
        """Empty arrays and groups that no later stage reads; groups keep `offsets` and `n`."""
        if "samples" in names:
            self.packed = None
        for name in names:
            value: Any = getattr(self, name)
            if isinstance(value, Events | BaseMap | Calls | Rows):
                kept = {field: getattr(value, field) for field in ("offsets", "n") if hasattr(value, field)}
                setattr(self, name, type(value).none()._replace(**kept))
            else:
                setattr(self, name, value[:0].copy())

    @property
    def stored_samples(self) -> StoredSamples:
        """Samples of the reads, packed or not."""
        if self.packed is not None:
            return self.packed
        each, none = np.arange(len(self) + 1), np.zeros(len(self), np.bool_)
        return StoredSamples(self.samples, each, self.sample_offsets[:-1], self.n_samples, none)

    def expand_samples(self, pool: Any) -> None:
        """Fill in packed samples."""
        packed, self.packed = self.packed, None
        if packed is not None:
            reads = np.flatnonzero(self.n_samples)
            self.samples = recycled_array(len(self.samples), np.int16)
            packed.expand(reads, self.sample_offsets[reads], self.samples, pool)

    def drop(self, reads: NDArray[np.bool_], status: ReadStatus, cause: Cause | NDArray[np.uint8]) -> None:
        """Reject `reads` (a mask) with a status and cause, unless they are already rejected."""
        now = reads & (self.status == ReadStatus.OK)
        self.status[now] = status
        self.cause[now] = cause if isinstance(cause, Cause) else cause[now]
