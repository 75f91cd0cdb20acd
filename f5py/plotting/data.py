"""Data of a plot of a read, from a computed batch."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, RowState
from f5py.core.kmers import base_codes
from f5py.core.motifs import COMPLEMENTS, Motif
from f5py.core.offsets import elements_of
from f5py.errors import F5pyError
from f5py.pore_model.model import PoreModel

#: Positions of the default region.
DEFAULT_POSITIONS = 100
#: Most k-mers of a page; browsers are slow with more.
MAX_KMERS = 50_000


class ReadSource(NamedTuple):
    """Chemistry and contig of a read, for labels."""

    chemistry: str  # such as ``R9.4 DNA``
    rna: bool  # the signal runs from the 3' end to the 5' end
    contig: str | None  # None for an alignment to the read's own bases


class SiteCalls(NamedTuple):
    """Methylation calls of the read in the region, in signal order; shape (c,) each."""

    motif: str  # such as ``CG``
    threshold: float  # calls with a smaller absolute ratio are undecided
    first: NDArray[np.int64]  # 0-based position of the group's first site
    last: NDArray[np.int64]
    sites: NDArray[np.int64]  # number of sites in the group
    ratio: NDArray[np.float64]  # log-likelihood ratio; above 0 for methylated
    start_sample: NDArray[np.int64]  # half-open interval of the samples of the k-mers that begin at the group's sites
    end_sample: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PlotData:
    """One read over a region, in signal order, with s samples, e events and p k-mers."""

    name: str
    strand: str | None  # "+" or "-"; None for an alignment to the read's own bases
    source: ReadSource
    model: str  # name of the pore model
    shift: float  # expected levels are ``shift + scale * level``, with the standard deviation ``var * stdv``
    scale: float
    var: float
    sampling_rate: float  # Hz
    first_sample: int  # index in the read of ``current[0]``
    current: NDArray[np.float32]  # shape (s,): pA
    event_index: NDArray[np.int64]  # shape (e,): index in the read, as in tables of other commands
    event_start: NDArray[np.int64]  # shape (e,): in samples of the read, ascending
    event_length: NDArray[np.int64]
    event_mean: NDArray[np.float32]  # shape (e,): pA
    event_stdv: NDArray[np.float32]
    event_kmer: NDArray[np.int64]  # shape (e,): index of the k-mer; -1 for unaligned events
    event_bad: NDArray[np.bool_]  # shape (e,): aligned as an event of no k-mer
    position: NDArray[np.int64]  # shape (p,): 0-based, of each k-mer's first base on the reference or in the read
    kmers: NDArray[np.uint8]  # shape (p, k): letters on the strand of the read
    letter: NDArray[np.uint8]  # shape (p,): base at `position`, on the strand of the read
    kmer_start: NDArray[np.int64]  # shape (p,): half-open interval of samples; empty for skipped k-mers
    kmer_end: NDArray[np.int64]
    new_segment: NDArray[np.bool_]  # shape (p,): True after positions outside the alignment
    level: NDArray[np.float32]  # shape (p,): expected level in pA on the read's scale
    level_stdv: NDArray[np.float32]
    calls: SiteCalls | None = None

    @property
    def skipped(self) -> NDArray[np.bool_]:
        """K-mers without events."""
        return self.kmer_start == self.kmer_end

    @property
    def descending(self) -> bool:
        """Whether positions descend along the signal."""
        return (self.strand == "-") != self.source.rna

    @property
    def region(self) -> str:
        """Region as in samtools: 1-based, both ends included."""
        first, last = int(self.position.min()) + 1, int(self.position.max()) + 1
        return f"{self.source.contig}:{first}-{last}" if self.source.contig is not None else f"{first}-{last}"

    @property
    def title(self) -> str:
        """Name and region of the read."""
        where = f"{self.region} ({self.strand})" if self.strand else f"bases {self.region} of the read"
        # names may have characters that fonts and XML lack
        return "".join(c if c.isprintable() else "?" for c in f"{self.name}  {where}")

    @property
    def subtitle(self) -> str:
        """Chemistry, model and scaling of the read."""
        return (
            f"{self.source.chemistry}, model {self.model.rpartition('/')[2]}, shift {self.shift:.2f}, "
            f"scale {self.scale:.3f}, var {self.var:.3f}"
        )

    @property
    def position_words(self) -> str:
        """Label of the positions and letters above the signal."""
        where = "in the read" if self.source.contig is None else f"on {self.source.contig}"
        which, base = ("leftmost", "its complement") if self.strand == "-" else ("first", "that base")
        return f"position {where} of each k-mer's {which} base{', descending' if self.descending else ''}, and {base}"

    def signal_words(self, seconds: bool) -> str:
        """Return the label of the axis below the signal."""
        direction = "3' to 5'" if self.source.rna else "5' to 3'"
        return f"{'time (s)' if seconds else 'sample'}: the signal's order, {direction} of the read"

    def current_limits(self) -> tuple[float, float]:
        """Return limits around all events and levels; outlying samples may be cut off."""
        low = float(min(self.event_mean.min(), (self.level - self.level_stdv).min()))
        high = float(max(self.event_mean.max(), (self.level + self.level_stdv).max()))
        room = high - low
        low = min(low, max(float(self.current.min()), low - 0.25 * room))
        high = max(high, min(float(self.current.max()), high + 0.25 * room))
        return low - 0.04 * room, high + 0.04 * room


class _AlignedEvents(NamedTuple):
    """Aligned events by ascending position; shape (r,) each."""

    event: NDArray[np.int64]
    position: NDArray[np.int64]
    bad: NDArray[np.bool_]
    segment: NDArray[np.int64]


def reference_data(
    batch: ReadBatch, read: int, model: PoreModel, source: ReadSource, region: tuple[int, int] | None
) -> PlotData:
    """Collect the plot of a read aligned to the reference.

    `region` is a 0-based, half-open interval of k-mers, by default the first `DEFAULT_POSITIONS` in signal order.
    """
    begin = batch.events.offsets[read]
    mine = slice(begin, begin + batch.rows.n[read])
    state = batch.rows.state[mine]
    rows = _AlignedEvents(
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
    strand, origin = "-" if reverse else "+", int(batch.reference_start[read])
    return _collect(batch, read, model, source, strand, kmers, origin, rows, region)


def read_data(
    batch: ReadBatch, read: int, model: PoreModel, source: ReadSource, region: tuple[int, int] | None
) -> PlotData:
    """Collect the plot of a read aligned to its own bases; see `reference_data`."""
    bases = batch.bases[batch.base_offsets[read] : batch.base_offsets[read + 1]]
    kmers = np.lib.stride_tricks.sliding_window_view(bases, model.k)
    of_kmers = slice(batch.base_offsets[read], batch.base_offsets[read] + len(kmers))
    events = batch.base_map.first_event, batch.base_map.last_event
    first, last = (event[of_kmers].astype(np.int64) for event in events)
    mapped = np.flatnonzero(first >= 0)
    n_events = last[mapped] - first[mapped] + 1
    position = np.repeat(mapped, n_events)
    segment = np.zeros(len(position), np.int64)
    rows = _AlignedEvents(elements_of(first[mapped], n_events), position, segment != 0, segment)
    return _collect(batch, read, model, source, None, kmers, 0, rows, region)


def _collect(
    batch: ReadBatch, read: int, model: PoreModel, source: ReadSource, strand: str | None, kmers: NDArray[np.uint8],
    origin: int, rows: _AlignedEvents, region: tuple[int, int] | None,
) -> PlotData:  # fmt: skip
    """Restrict to the region and sort by signal; `origin` is the position of the first of the `kmers`."""
    name = batch.names[read]
    if not len(rows.event):
        raise F5pyError(f"read {name}: no event is aligned to the reference; is the alignment long enough?")
    descending = (strand == "-") != source.rna
    rows = _in_region(name, rows, region, descending)

    position, step = _all_positions(rows)
    if len(position) > MAX_KMERS:
        raise F5pyError(
            f"-w: the region has {len(position)} k-mers of read {name}, too many to be drawn; choose one of at most "
            f"{MAX_KMERS}"
        )
    kmer = np.searchsorted(position, rows.position)
    segment = rows.segment[np.searchsorted(rows.position, position - step)]
    skipped = step > 0
    if descending:
        position, segment, skipped = position[::-1], segment[::-1], skipped[::-1]
        kmer = len(position) - 1 - kmer

    # All events between the outermost ones, in signal order.
    low, high = int(rows.event.min()), int(rows.event.max()) + 1
    begin = batch.events.offsets[read]
    index = np.arange(low, high)
    row_of_event = np.full(high - low, -1, np.int64)
    row_of_event[rows.event - low] = np.arange(len(rows.event))
    if source.rna:  # events are numbered against the signal
        index, row_of_event = index[::-1], row_of_event[::-1]
    start = batch.events.start[begin + index].astype(np.int64)
    length = batch.events.length[begin + index].astype(np.int64)
    aligned = row_of_event >= 0
    event_kmer = np.where(aligned, kmer[row_of_event], -1)
    kmer_start, kmer_end = _intervals(event_kmer[aligned], start[aligned], length[aligned], skipped)
    first_sample, end_sample = int(start[0]), int(start[-1] + length[-1])
    samples = batch.samples[batch.sample_offsets[read] + first_sample : batch.sample_offsets[read] + end_sample]
    shown = kmers[position - origin]
    rank = base_codes()[shown] @ (4 ** np.arange(model.k - 1, -1, -1))
    shift, scale, var = batch.shift[read], batch.scale[read], batch.var[read]
    return PlotData(
        name=name, strand=strand, source=source, model=model.name,
        shift=float(shift), scale=float(scale), var=float(var), sampling_rate=float(batch.sampling_rate[read]),
        first_sample=first_sample, current=(samples.astype(np.float32) + batch.offset[read]) * batch.unit[read],
        event_index=index, event_start=start, event_length=length,
        event_mean=batch.events.mean[begin + index], event_stdv=batch.events.stdv[begin + index],
        event_kmer=event_kmer, event_bad=aligned & rows.bad[row_of_event],
        position=position, kmers=shown, letter=shown[:, -1] if strand == "-" else shown[:, 0],
        kmer_start=kmer_start, kmer_end=kmer_end, new_segment=np.append(False, segment[1:] != segment[:-1]),
        level=scale * model.level_mean[rank] + shift, level_stdv=model.level_stdv[rank] * var,
    )  # fmt: skip


def _in_region(name: str, rows: _AlignedEvents, region: tuple[int, int] | None, descending: bool) -> _AlignedEvents:
    """Select the rows in the region or the default region."""
    low, high = int(rows.position.min()), int(rows.position.max()) + 1
    if region is None:
        region = (high - DEFAULT_POSITIONS, high) if descending else (low, low + DEFAULT_POSITIONS)
    inside = (rows.position >= region[0]) & (rows.position < region[1])
    if not inside.any():
        raise F5pyError(
            f"-w: no event of read {name} is aligned in the region; its events are aligned to positions "
            f"{low + 1}-{high}, choose a region there"
        )
    return _AlignedEvents(rows.event[inside], rows.position[inside], rows.bad[inside], rows.segment[inside])


def _all_positions(rows: _AlignedEvents) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all positions of segments, ascending, and their distances from the last with an event."""
    position, first = np.unique(rows.position, return_index=True)
    same_segment = np.diff(rows.segment[first]) == 0
    n = np.append(np.where(same_segment, np.diff(position), 1), 1)
    # Within a segment, gaps are at most a block of the alignment.
    found = elements_of(position, n)
    return found, found - np.repeat(position, n)


def _intervals(
    kmer: NDArray[np.int64], start: NDArray[np.int64], length: NDArray[np.int64], skipped: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the samples of each k-mer's events, and empty intervals for skipped k-mers."""
    kmer_start = np.full(len(skipped), np.iinfo(np.int64).max)
    kmer_end = np.zeros(len(skipped), np.int64)
    np.minimum.at(kmer_start, kmer, start)
    np.maximum.at(kmer_end, kmer, start + length)
    before = np.maximum.accumulate(np.where(skipped, 0, np.arange(len(skipped))))
    kmer_end = kmer_end[before]
    return np.where(skipped, kmer_end, kmer_start), kmer_end


def site_calls(data: PlotData, batch: ReadBatch, read: int, motif: Motif, threshold: float) -> SiteCalls:
    """Select the calls of a read, the `read`-th of the batch, with all sites in the region of the plot."""
    mine = slice(begin := batch.calls.offsets[read], begin + batch.calls.n[read])
    first, last = batch.calls.first[mine], batch.calls.last[mine]
    order = np.flatnonzero((first >= data.position.min()) & (last <= data.position.max()))
    if data.descending:
        order = order[::-1]
    first, last = first[order], last[order]
    by_position = np.argsort(data.position)
    kmers = by_position[np.searchsorted(data.position[by_position], np.stack([first, last]))]
    return SiteCalls(
        motif.pattern, threshold, first, last, batch.calls.sites[mine][order].astype(np.int64),
        batch.calls.methylated[mine][order].astype(np.float64) - batch.calls.unmethylated[mine][order],
        data.kmer_start[kmers.min(axis=0)], data.kmer_end[kmers.max(axis=0)],
    )  # fmt: skip
