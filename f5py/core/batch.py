"""The one structure that goes through the whole pipeline: many reads as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.large_arrays import recycled_array
from f5py.core.names import Names


class ReadStatus(IntEnum):
    """Fates of reads. Reads that drop out keep their place in the batch."""

    OK = 0
    BAD_READ = 1  # no usable signal, or other bases than its alignment
    NO_ALIGNMENT = 2  # the aligner found no acceptable path
    NOT_CALIBRATED = 3  # too few events to recalibrate with, or too noisy
    QC_FAIL = 4  # too many events per base


class Cause(IntEnum):
    """Causes for which reads drop out. The first ones are the verdicts of the alignment of events to bases."""

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
    OTHER_BASES = 10  # than those that its alignment is of


#: By so many of its first reads a run is judged, whatever the size of its batches.
FIRST_READS = 50


class RowState(IntFlag):
    """Special properties of an event's row in an alignment to the reference."""

    BAD = 1  # the event fits no k-mer
    NEW_SEGMENT = 2  # the first row after a skipped stretch of the reference (N in the CIGAR, or between windows)
    SKIPPED = 4  # no event: a k-mer that the events beside it leave out
    DELETED = 8  # no event: a k-mer with a base that the read's alignment has deleted


def empty(dtype) -> NDArray:
    """Make an array without elements: the value of a field that no stage has filled yet."""
    return np.empty(0, dtype)


class StoredSamples(NamedTuple):
    """Samples of n reads where compiled code finds them, in m pieces."""

    values: NDArray[np.int16]
    pieces: NDArray[np.int64]  # shape (n + 1,): read i has those from ``pieces[i]`` up to ``pieces[i + 1]``
    # places, n_samples: shape (m,): where in `values` each piece begins, and how many samples it has
    places: NDArray[np.int64]
    n_samples: NDArray[np.int64]
    # shape (m,): there are the bytes of the method svb-zd of SLOW5, and the place is that of the first
    is_packed: NDArray[np.bool_]


class PackedSamples(Protocol):
    """Interface of samples that are still compressed, for those who need them in other places than a batch's array."""

    @property
    def stored(self) -> StoredSamples:
        """Where they are."""
        ...

    def expand(
        self, reads: NDArray[np.int64], places: NDArray[np.int64], samples: NDArray[np.int16], pool: Any
    ) -> object:
        """Write the samples of ``reads[i]`` to those of an array from ``places[i]`` on, by the threads of a pool."""
        ...


class Alignments(NamedTuple):
    """The arrays of a `ReadBatch` that say where its reads lie on the reference."""

    contig: NDArray[np.int32]
    start: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    cigar: NDArray[np.uint32]
    cigar_offsets: NDArray[np.int64]
    reference: NDArray[np.uint8]
    reference_offsets: NDArray[np.int64]


class Signals(NamedTuple):
    """The arrays of a `ReadBatch` with the raw signals."""

    samples: NDArray[np.int16]
    offsets: NDArray[np.int64]
    offset: NDArray[np.float32]
    unit: NDArray[np.float32]
    sampling_rate: NDArray[np.float32]


class Events(NamedTuple):
    """The events of a `ReadBatch`: read i has those from ``offsets[i]`` up to ``offsets[i + 1]``."""

    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    # start, length: shape (n_events,): in samples
    start: NDArray[np.int32]
    length: NDArray[np.int32]
    # mean, stdv: shape (n_events,): in pA
    mean: NDArray[np.float32]
    stdv: NDArray[np.float32]

    @classmethod
    def none(cls) -> Events:
        """No events, before there are any."""
        return cls(empty(np.int64), empty(np.int32), empty(np.int32), empty(np.float32), empty(np.float32))


class BaseMap(NamedTuple):
    """The events of each k-mer of the reads' bases; read i has those from ``offsets[i]`` on."""

    offsets: NDArray[np.int64]  # shape (n_reads + 1,): those of the bases: a read's last k - 1 elements are unused
    # first_event, last_event: shape (n_bases,): numbers in the read; -1 for none
    first_event: NDArray[np.int32]
    last_event: NDArray[np.int32]

    @classmethod
    def none(cls) -> BaseMap:
        """No map, before there is one."""
        return cls(empty(np.int64), empty(np.int32), empty(np.int32))


class Scaling(NamedTuple):
    """The arrays of a `ReadBatch` that relate its events to the pore model."""

    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    var: NDArray[np.float32]


class Rows(NamedTuple):
    """The alignment of events to the reference: read i has the first ``n[i]`` rows from ``offsets[i]`` on."""

    offsets: NDArray[np.int64]  # shape (n_reads + 1,): those of the events, unless k-mers without one are marked
    n: NDArray[np.int64]  # shape (n_reads,)
    event: NDArray[np.int32]  # shape (n_slots,): number in the read
    position: NDArray[np.int32]  # shape (n_slots,): 0-based reference position of the k-mer's first base
    state: NDArray[np.uint8]  # shape (n_slots,): bits of `RowState`

    @classmethod
    def none(cls) -> Rows:
        """No rows, before there are any."""
        return cls(empty(np.int64), empty(np.int64), empty(np.int32), empty(np.int32), empty(np.uint8))


class Calls(NamedTuple):
    """Methylation calls: read i has the first ``n[i]`` from ``offsets[i]`` on."""

    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    n: NDArray[np.int64]  # shape (n_reads,)
    # first, last: shape (n_slots,): reference positions of the first and last site of a group
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    sites: NDArray[np.int32]  # shape (n_slots,): their number
    # methylated, unmethylated: shape (n_slots,): log-likelihoods, natural logarithms
    methylated: NDArray[np.float32]
    unmethylated: NDArray[np.float32]

    @classmethod
    def none(cls) -> Calls:
        """No calls, before there are any."""
        return cls.of(empty(np.int64), empty(np.int64))

    @classmethod
    def of(cls, offsets: NDArray[np.int64], n: NDArray[np.int64]) -> Calls:
        """Room for calls between `offsets`."""
        slots = int(offsets[-1]) if len(offsets) else 0
        return cls(
            offsets, n, np.empty(slots, np.int64), np.empty(slots, np.int64), np.empty(slots, np.int32),
            np.empty(slots, np.float32), np.empty(slots, np.float32),
        )  # fmt: skip


class BatchView(NamedTuple):
    """The arrays of a `ReadBatch` for kernels that follow reads along their alignments."""

    alignments: Alignments
    events: Events
    base_map: BaseMap
    scaling: Scaling
    events_per_base: NDArray[np.float64]  # shape (n_reads,)


@dataclass
class ReadBatch:
    """Reads from the loader to the writer.

    Things that a read has one of are arrays of shape (n,). Things that it has many of are one concatenated array
    with an array of n + 1 offsets: read i owns the elements from ``offsets[i]`` up to ``offsets[i + 1]``. Per-base
    and per-k-mer arrays share `base_offsets`; a read's last k - 1 per-k-mer elements are unused.
    """

    # filled by the loader
    number: int  # 0-based number of the batch in the run
    names: Names  # any sequence of text becomes one
    read_index: NDArray[np.int64]  # 0-based number of the record among all records visited
    status: NDArray[np.uint8]  # `ReadStatus`
    contig: NDArray[np.int32]  # index into the BAM header's contigs
    # reference_start, reference_end: 0-based, half-open
    reference_start: NDArray[np.int64]
    reference_end: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    cigar: NDArray[np.uint32]  # length times 16 plus operation, as BAM stores it
    cigar_offsets: NDArray[np.int64]
    reference: NDArray[np.uint8]  # upper-case letters of the alignment's reference segment and one base beyond it
    reference_offsets: NDArray[np.int64]
    bases: NDArray[np.uint8]  # letters of the read as sequenced
    base_offsets: NDArray[np.int64]
    samples: NDArray[np.int16]  # filled by `expand_samples` where they are still `packed`
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
    # aligned_pairs: shape (m, 2), offsets `pair_offsets`: (k-mer, event); only if asked for
    aligned_pairs: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 2), np.int32))
    pair_offsets: NDArray[np.int64] = field(default_factory=lambda: empty(np.int64))
    n_pairs: NDArray[np.int64] = field(default_factory=lambda: empty(np.int64))
    events_per_base: NDArray[np.float64] = field(default_factory=lambda: empty(np.float64))
    # verdict: `Cause` of an alignment given up, for reads that were tried
    verdict: NDArray[np.uint8] = field(default_factory=lambda: empty(np.uint8))
    # n_calibration: events that the read could be recalibrated with
    n_calibration: NDArray[np.int64] = field(default_factory=lambda: empty(np.int64))

    # filled by methylation calling, and empty unless there are several motifs
    # call_motif: index of each call's motif, by which a read's calls are ordered
    call_motif: NDArray[np.int8] = field(default_factory=lambda: empty(np.int8))
    by_motif: list[Calls] = field(default_factory=list)  # the calls of each motif alone

    # filled by the loader, too
    cause: NDArray[np.uint8] = field(default_factory=lambda: empty(np.uint8))  # `Cause` of a read that is not OK
    # problems: one line for each read without a usable signal, which says what is wrong and where
    problems: dict[int, str] = field(default_factory=dict)
    # is_compared: shape (n,): the bases have been compared with those that the alignment is of
    is_compared: NDArray[np.bool_] = field(default_factory=lambda: empty(np.bool_))
    # columns: shape (up to `FIRST_READS`, 2): columns of the alignments of the first reads, and those with equal bases
    columns: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    packed: PackedSamples | None = None  # what `samples` are to be filled with, see `expand_samples`
    # records: `f5py.io.bam.bam_records.RawRecords`: the alignments as bytes, those that the filters have left out too,
    # in the order of the input; only if asked for
    records: Any = None
    # partition: number of the read's value of the tag that reads are told apart by, -1 for none; only if asked for
    partition: NDArray[np.int32] = field(default_factory=lambda: empty(np.int32))
    # start_time: seconds after the begin of the run, NaN if unknown
    start_time: NDArray[np.float32] = field(default_factory=lambda: empty(np.float32))
    share_of_input: float | None = None
    part: int = -1  # number of the part of the run; -1 if it has no parts
    # is_earlier: these alignments belong to earlier parts; they are computed for what they take from those of the part,
    # and not written
    is_earlier: bool = False
    covered_sites: int = 0  # sites of calls that an earlier alignment of the same read covers, and so were skipped
    # kmer_marks: offsets `reference_offsets`: how the k-mer that begins at each base of the reference is found in the
    # read, as `f5py.event_alignment.kmer_marks.compare_kmers` says; only if asked for
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
        """Bases of each read."""
        return np.diff(self.base_offsets)

    @property
    def n_samples(self) -> NDArray[np.int64]:
        """Samples of each read."""
        return np.diff(self.sample_offsets)

    @property
    def n_events(self) -> NDArray[np.int64]:
        """Events of each read."""
        return np.diff(self.events.offsets)

    @property
    def alignments(self) -> Alignments:
        """Where the reads lie on the reference, as kernels take it."""
        return Alignments(
            self.contig, self.reference_start, self.reverse, self.cigar, self.cigar_offsets, self.reference,
            self.reference_offsets,
        )  # fmt: skip

    @property
    def signals(self) -> Signals:
        """Samples and calibration, as kernels take them."""
        return Signals(self.samples, self.sample_offsets, self.offset, self.unit, self.sampling_rate)

    @property
    def scaling(self) -> Scaling:
        """How the events relate to the pore model, as kernels take it."""
        return Scaling(self.shift, self.scale, self.var)

    @property
    def view(self) -> BatchView:
        """Alignments, events, their map to bases and their scaling together."""
        return BatchView(self.alignments, self.events, self.base_map, self.scaling, self.events_per_base)

    def release(self, *names: str) -> None:
        """Empty arrays and groups that no later stage reads, so that a batch on its way out holds little memory.

        Of groups the numbers of reads' elements are kept: `offsets` and `n`.
        """
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
        """The samples, packed or not."""
        if self.packed is not None:
            return self.packed.stored
        each, none = np.arange(len(self) + 1), np.zeros(len(self), np.bool_)
        return StoredSamples(self.samples, each, self.sample_offsets[:-1], self.n_samples, none)

    def expand_samples(self, pool: Any) -> None:
        """Fill in the samples of all reads, if they have been left packed."""
        packed, self.packed = self.packed, None
        if packed is not None:
            reads = np.flatnonzero(self.n_samples)
            self.samples = recycled_array(len(self.samples), np.int16)
            packed.expand(reads, self.sample_offsets[reads], self.samples, pool)

    def drop(self, reads: NDArray[np.bool_], status: ReadStatus, cause: Cause | NDArray[np.uint8]) -> None:
        """Give `reads` (a mask) that status and cause, unless they have dropped out before."""
        now = reads & (self.status == ReadStatus.OK)
        self.status[now] = status
        self.cause[now] = cause if isinstance(cause, Cause) else cause[now]
