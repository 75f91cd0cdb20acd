"""Data of a plot of a read as plain arrays, made from a computed batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, RowState
from f5py.core.kmers import base_codes
from f5py.core.motifs import COMPLEMENTS
from f5py.errors import F5pyError
from f5py.plotting.site_calls import SiteCalls
from f5py.pore_model.model import PoreModel

#: Positions that are drawn if no region is given.
DEFAULT_POSITIONS = 100
#: More k-mers than these make a page that browsers are slow with.
MAX_KMERS = 50_000


class Source(NamedTuple):
    """Facts about a read besides its arrays, for the figure's words."""

    chemistry: str  # such as ``R9.4 DNA``
    rna: bool  # the signal runs from the 3' end to the 5' end
    contig: str | None  # None for an alignment to the read's own bases


@dataclass(frozen=True, eq=False)
class PlotData:
    """One read over a region, in the order of the signal."""

    name: str  # the read's
    strand: str | None  # "+" or "-": None for an alignment to the read's own bases
    source: Source
    model: str  # name of the pore model
    # shift, scale, var: the expected level is ``shift + scale * level`` and its standard deviation ``var * stdv``
    shift: float
    scale: float
    var: float
    sampling_rate: float  # Hz
    first_sample: int  # number in the read of the first element of `current`
    current: NDArray[np.float32]  # shape (s,): pA
    # shape (e,): numbers of the events in the read, as the tables of the other commands have them
    event_index: NDArray[np.int64]
    # event_start, event_length: shape (e,): in samples of the read. Starts ascend.
    event_start: NDArray[np.int64]
    event_length: NDArray[np.int64]
    # event_mean, event_stdv: shape (e,): pA
    event_mean: NDArray[np.float32]
    event_stdv: NDArray[np.float32]
    event_kmer: NDArray[np.int64]  # shape (e,): index into the k-mers below; -1 for an event that is aligned to none
    event_bad: NDArray[np.bool_]  # shape (e,): the alignment takes the event as one that fits no k-mer
    # shape (p,): 0-based position of each k-mer's first base on the reference or in the read. They descend if the
    # signal runs against them.
    position: NDArray[np.int64]
    # shape (p, k): letters of the k-mers as the pore sees them: of the opposite strand of the reference for a reverse
    # read
    kmers: NDArray[np.uint8]
    letter: NDArray[np.uint8]  # shape (p,): the base at `position`, on the strand of the read
    # kmer_start, kmer_end: shape (p,): half-open interval of samples; empty, and at the place where it is missing, for
    # a k-mer without events
    kmer_start: NDArray[np.int64]
    kmer_end: NDArray[np.int64]
    new_segment: NDArray[np.bool_]  # shape (p,): the positions before this k-mer are no part of the alignment
    # level, level_stdv: shape (p,): what the model expects, in pA on the read's scale
    level: NDArray[np.float32]
    level_stdv: NDArray[np.float32]
    calls: SiteCalls | None = None  # None if methylation was not called

    @property
    def skipped(self) -> NDArray[np.bool_]:
        """K-mers without events."""
        return self.kmer_start == self.kmer_end

    @property
    def descending(self) -> bool:
        """The signal runs against the positions."""
        return (self.strand == "-") != self.source.rna

    @property
    def region(self) -> str:
        """The positions drawn, 1-based with both ends included."""
        first, last = int(self.position.min()) + 1, int(self.position.max()) + 1
        return f"{self.source.contig}:{first}-{last}" if self.source.contig is not None else f"{first}-{last}"

    @property
    def title(self) -> str:
        """The read's name and the region."""
        where = f"{self.region} ({self.strand})" if self.strand else f"bases {self.region} of the read"
        # a name may have characters that neither fonts nor XML know
        return "".join(c if c.isprintable() else "?" for c in f"{self.name}  {where}")

    @property
    def subtitle(self) -> str:
        """The chemistry and the read's scaling."""
        return (
            f"{self.source.chemistry}, model {self.model.rpartition('/')[2]}, shift {self.shift:.2f}, "
            f"scale {self.scale:.3f}, var {self.var:.3f}"
        )

    @property
    def position_words(self) -> str:
        """What the positions and letters above the signal are."""
        where = "in the read" if self.source.contig is None else f"on {self.source.contig}"
        which, base = ("leftmost", "its complement") if self.strand == "-" else ("first", "that base")
        return f"position {where} of each k-mer's {which} base{', descending' if self.descending else ''}, and {base}"

    def signal_words(self, seconds: bool) -> str:
        """Label the axis below the signal."""
        direction = "3' to 5'" if self.source.rna else "5' to 3'"
        return f"{'time (s)' if seconds else 'sample'}: the signal's order, {direction} of the read"

    def current_limits(self) -> tuple[float, float]:
        """Limits that have all events and levels inside; a sample far off may be cut, as it would flatten them."""
        low = float(min(self.event_mean.min(), (self.level - self.level_stdv).min()))
        high = float(max(self.event_mean.max(), (self.level + self.level_stdv).max()))
        room = high - low
        low = min(low, max(float(self.current.min()), low - 0.25 * room))
        high = max(high, min(float(self.current.max()), high + 0.25 * room))
        return low - 0.04 * room, high + 0.04 * room


class _Rows(NamedTuple):
    """Events and the positions that they are aligned to, ascending in position; shape (r,) each."""

    event: NDArray[np.int64]
    position: NDArray[np.int64]
    bad: NDArray[np.bool_]
    segment: NDArray[np.int64]


class _Against(NamedTuple):
    """Sequence that events are aligned to: a strand of the reference, or the read's bases, which have none."""

    strand: str | None
    kmers: NDArray[np.uint8]
    origin: int  # position of the first k-mer


def reference_data(
    batch: ReadBatch, read: int, model: PoreModel, source: Source, region: tuple[int, int] | None
) -> PlotData:
    """Take what a plot of a read aligned to the reference shows.

    Raises `F5pyError` if no event is aligned in the region, or the region is too large.

    Parameters
    ----------
    batch : ReadBatch
        With the rows of an event alignment, events, reference segments and samples.
    region : (int, int) or None
        0-based, half-open interval of the reference that the k-mers' first bases lie in. By default the first
        `DEFAULT_POSITIONS` positions in the order of the signal.
    """
    begin = batch.events.offsets[read]
    mine = slice(begin, begin + batch.rows.n[read])
    state = batch.rows.state[mine]
    rows = _Rows(
        batch.rows.event[mine].astype(np.int64),
        batch.rows.position[mine].astype(np.int64),
        state & RowState.BAD != 0,
        np.cumsum(state & RowState.NEW_SEGMENT != 0),
    )
    letters = batch.reference[batch.reference_offsets[read] : batch.reference_offsets[read + 1]]
    kmers = np.lib.stride_tricks.sliding_window_view(letters, model.k)
    reverse = bool(batch.reverse[read])
    if reverse:
        kmers = COMPLEMENTS[kmers[:, ::-1]]
    against = _Against("-" if reverse else "+", kmers, int(batch.reference_start[read]))
    return _collect(batch, read, model, source, against, rows, region)


def read_data(
    batch: ReadBatch, read: int, model: PoreModel, source: Source, region: tuple[int, int] | None
) -> PlotData:
    """Take what a plot of a read aligned to its own bases shows; see `reference_data`. Raises `F5pyError`.

    Parameters
    ----------
    batch : ReadBatch
        With alignment, events, bases and samples.
    region : (int, int) or None
        0-based, half-open interval of the read's k-mers.
    """
    bases = batch.bases[batch.base_offsets[read] : batch.base_offsets[read + 1]]
    kmers = np.lib.stride_tricks.sliding_window_view(bases, model.k)
    of_kmers = slice(batch.base_offsets[read], batch.base_offsets[read] + len(kmers))
    first, last = (
        batch.base_map.first_event[of_kmers].astype(np.int64),
        batch.base_map.last_event[of_kmers].astype(np.int64),
    )
    mapped = np.flatnonzero(first >= 0)
    position, step = _repeated_with_steps(mapped, last[mapped] - first[mapped] + 1)
    rows = _Rows(first[position] + step, position, np.zeros(len(position), np.bool_), np.zeros(len(position), np.int64))
    return _collect(batch, read, model, source, _Against(None, kmers, 0), rows, region)


def _collect(
    batch: ReadBatch,
    read: int,
    model: PoreModel,
    source: Source,
    against: _Against,
    rows: _Rows,
    region: tuple[int, int] | None,
) -> PlotData:
    """Restrict to the region and put everything into the order of the signal."""
    name = batch.names[read]
    if not len(rows.event):
        raise F5pyError(f"read {name}: no event is aligned to the reference; is the alignment long enough?")
    descending = (against.strand == "-") != source.rna
    rows = _in_region(name, rows, region, descending)

    position, step = _all_positions(rows)
    if len(position) > MAX_KMERS:
        raise F5pyError(
            f"-w: the region has {len(position)} k-mers of read {name}, too many to be drawn; choose one of at most "
            f"{MAX_KMERS}"
        )
    first_row = np.searchsorted(rows.position, position - step)
    segment = rows.segment[first_row]
    skipped = step > 0
    if descending:
        position, segment, skipped = position[::-1], segment[::-1], skipped[::-1]

    # All events between the outermost ones, in the order of the signal.
    low, high = int(rows.event.min()), int(rows.event.max()) + 1
    begin = batch.events.offsets[read]
    index = np.arange(low, high)
    row_of_event = np.full(high - low, -1, np.int64)
    row_of_event[rows.event - low] = np.arange(len(rows.event))
    if source.rna:  # whose events are numbered against the signal
        index, row_of_event = index[::-1], row_of_event[::-1]
    start = batch.events.start[begin + index].astype(np.int64)
    length = batch.events.length[begin + index].astype(np.int64)
    aligned = row_of_event >= 0
    position_of_event = rows.position[row_of_event[aligned]]
    event_kmer = np.full(len(index), -1, np.int64)
    if descending:
        event_kmer[aligned] = len(position) - 1 - np.searchsorted(position[::-1], position_of_event)
    else:
        event_kmer[aligned] = np.searchsorted(position, position_of_event)
    event_bad = np.zeros(len(index), np.bool_)
    event_bad[aligned] = rows.bad[row_of_event[aligned]]

    kmer_start, kmer_end = _intervals(event_kmer[aligned], start[aligned], length[aligned], skipped)
    first_sample, end_sample = int(start[0]), int(start[-1] + length[-1])
    samples = batch.samples[batch.sample_offsets[read] + first_sample : batch.sample_offsets[read] + end_sample]
    shown = against.kmers[position - against.origin]
    rank = base_codes()[shown] @ (4 ** np.arange(model.k - 1, -1, -1))
    shift, scale, var = batch.shift[read], batch.scale[read], batch.var[read]
    return PlotData(
        name=name,
        strand=against.strand,
        source=source,
        model=model.name,
        shift=float(shift),
        scale=float(scale),
        var=float(var),
        sampling_rate=float(batch.sampling_rate[read]),
        first_sample=first_sample,
        current=(samples.astype(np.float32) + batch.offset[read]) * batch.unit[read],
        event_index=index,
        event_start=start,
        event_length=length,
        event_mean=batch.events.mean[begin + index],
        event_stdv=batch.events.stdv[begin + index],
        event_kmer=event_kmer,
        event_bad=event_bad,
        position=position,
        kmers=shown,
        letter=shown[:, -1] if against.strand == "-" else shown[:, 0],
        kmer_start=kmer_start,
        kmer_end=kmer_end,
        new_segment=np.append(False, segment[1:] != segment[:-1]),
        level=scale * model.level_mean[rank] + shift,
        level_stdv=model.level_stdv[rank] * var,
    )


def _in_region(name: str, rows: _Rows, region: tuple[int, int] | None, descending: bool) -> _Rows:
    """Select the rows in the region, or in the default one."""
    low, high = int(rows.position.min()), int(rows.position.max()) + 1
    if region is None:
        region = (high - DEFAULT_POSITIONS, high) if descending else (low, low + DEFAULT_POSITIONS)
    inside = (rows.position >= region[0]) & (rows.position < region[1])
    if not inside.any():
        raise F5pyError(
            f"-w: no event of read {name} is aligned in the region; its events are aligned to positions "
            f"{low + 1}-{high}, choose a region there"
        )
    return _Rows(rows.event[inside], rows.position[inside], rows.bad[inside], rows.segment[inside])


def _all_positions(rows: _Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions with events and those skipped between them, ascending, and how far each is after one with events."""
    position, first = np.unique(rows.position, return_index=True)
    same_segment = np.diff(rows.segment[first]) == 0
    n = np.append(np.where(same_segment, np.diff(position), 1), 1)
    # A leap without a new segment cannot be longer than a block of the alignment, so this stays small.
    repeated, step = _repeated_with_steps(position, n)
    return repeated + step, step


def _repeated_with_steps(values: NDArray[np.int64], n: NDArray[np.int64]) -> tuple[NDArray, NDArray]:
    """Each value n times, and for each repeat how many were before it."""
    first = np.cumsum(n) - n
    return np.repeat(values, n), np.arange(int(n.sum())) - np.repeat(first, n)


def _intervals(
    kmer: NDArray[np.int64], start: NDArray[np.int64], length: NDArray[np.int64], skipped: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Join the samples of each k-mer's events; a skipped one gets the end of the k-mer before, twice."""
    kmer_start = np.full(len(skipped), np.iinfo(np.int64).max)
    kmer_end = np.zeros(len(skipped), np.int64)
    np.minimum.at(kmer_start, kmer, start)
    np.maximum.at(kmer_end, kmer, start + length)
    before = np.maximum.accumulate(np.where(skipped, 0, np.arange(len(skipped))))
    kmer_end = kmer_end[before]
    return np.where(skipped, kmer_end, kmer_start), kmer_end
