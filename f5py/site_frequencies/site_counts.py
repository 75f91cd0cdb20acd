"""Counts of calls per single site and strand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import f5py.io.bam.modifications.modified_sites as states
from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif
from f5py.core.offsets import offsets_of, used_elements
from f5py.core.stored_arrays import check_column
from f5py.core.windows import Windows
from f5py.errors import DamagedValueError, F5pyError
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.modifications.modified_sites import SiteSelection, TagCounts, iterate_sites
from f5py.io.reads.reference import Reference
from f5py.jit.kernel import exact_kernel
from f5py.methylation.groups import is_site
from f5py.options.shared import CALL_THRESHOLD
from f5py.site_frequencies.site_table import (
    SLOTS_PER_ENTRY,
    SPLIT_TEXT,
    Frequencies,
    NameHash,
    SiteHash,
    enlarge,
    fill_site_slots,
    find_site,
    rank_names,
)

_MOST_STEP = 1 << 32  # positions have 31 bits
#: Multiplier and mask of partitions that are mixed with contigs.
_MIXER, _MOST_NAME = 0x9E3779B1, 0x7FFFFFFF
_N_REST = 4
_FIRST_ENTRIES = 1 << 12  # a power of two, as the hash table must be


def count_modbam(
    alignments: AlignmentFile, counts: SiteCounts, contigs: dict[str, int], wanted: SiteSelection, genome: str | None,
    n_threads: int, advance: Callable[[int], object] = lambda count: None,
) -> TagCounts:  # fmt: skip
    """Add the calls in a file to `counts`, and its contigs to the index `contigs`.

    Sites are those of the reference `genome` (FASTA), or else of the reads' bases; see `iterate_sites`.
    """
    tags = TagCounts()
    number = np.array([contigs.setdefault(name, len(contigs)) for name in alignments.contigs], np.int32)
    reference = None if genome is None else Reference(genome, alignments.contigs, alignments.contig_lengths)
    with nullcontext() if reference is None else closing(reference):
        for _, _, sites in iterate_sites(alignments, replace(wanted, reference=reference), tags, n_threads, advance):
            step = sites.position << 1 | (sites.reverse & (not counts.combine_strands))
            of_kind = [sites.state == kind for kind in (states.MODIFIED, states.CANONICAL, states.FAILED)]
            rest = np.array([states.OTHER, states.DELETED, states.DIFFERENT, states.MISSING], np.uint8)
            kinds = (marks.astype(np.uint32) for marks in (*of_kind, sites.state[:, None] == rest))
            counts.join(SiteColumns(np.full(len(step), -1, np.int32), number[sites.contig], step, *kinds))
    return tags


class SingleSiteCalls(NamedTuple):
    """Calls of single sites, shape (n,) each; groups are split."""

    contig: NDArray[np.int32]  # index into the BAM header's contigs
    position: NDArray[np.int64]  # 0-based, of the motif's first base
    reverse: NDArray[np.bool_]  # strand of the read
    llr: NDArray[np.float64]  # log-likelihood ratio of the site's group, rounded to two decimals
    size: NDArray[np.int32]  # sites in that group
    read: NDArray[np.int64]  # index of the read in its batch; arbitrary for calls of a table

    @classmethod
    def empty(cls, n: int) -> SingleSiteCalls:
        """Make arrays to be filled."""
        return cls._make(np.empty(n, kind) for kind in (np.int32, np.int64, np.bool_, np.float64, np.int32, np.int64))


class SiteColumns(NamedTuple):
    """Counts of sites in storage, shape (n,) each; see `SiteTotals`."""

    partition: NDArray[np.int32]  # -1 for none
    contig: NDArray[np.int32]
    step: NDArray[np.int64]  # 0-based position of the motif's first base << 1 | reverse
    methylated: NDArray[np.uint32]
    canonical: NDArray[np.uint32]
    failed: NDArray[np.uint32]
    rest: NDArray[np.uint32]  # shape (n, 4): other, deleted, different and missing; without rows if all are zero

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_partitions: int, n_contigs: int) -> SiteColumns:
        """Make columns from a file's arrays, or raise `DamagedValueError`."""
        if set(arrays) != set(cls._fields):
            raise DamagedValueError("its arrays are not those of sites")
        columns = cls(**arrays)
        n = len(columns.contig) if columns.contig.ndim else 0
        check_column(columns.partition, np.int32, n, end=n_partitions, least=-1)
        check_column(columns.contig, np.int32, n, end=n_contigs)
        check_column(columns.step, np.int64, n, end=_MOST_STEP)
        for counts in columns[3:6]:
            check_column(counts, np.uint32, n)
        check_column(columns.rest, np.uint32, n if len(np.atleast_1d(columns.rest)) else 0, _N_REST)
        return columns


class SiteTotals(NamedTuple):
    """Counts of sites in output order: by contig, position and strand."""

    contig: NDArray[np.int32]  # index into the contigs' names
    position: NDArray[np.int64]  # 0-based, of the modified base
    reverse: NDArray[np.bool_]  # all False for combined strands
    methylated: NDArray[np.int64]
    canonical: NDArray[np.int64]
    failed: NDArray[np.int64]  # calls below the threshold
    # only in modification tags: calls of another modification, reads without the base, with another one, without a call
    other: NDArray[np.int64]
    deleted: NDArray[np.int64]
    different: NDArray[np.int64]
    missing: NDArray[np.int64]

    @property
    def valid(self) -> NDArray[np.int64]:
        """Calls not below the threshold."""
        return self.methylated + self.canonical + self.other

    def covered(self, least: int) -> SiteTotals:
        """Select the sites with at least `least` valid calls."""
        kept = self.valid >= least
        return self if kept.all() else SiteTotals._make(column[kept] for column in self)


class SiteCountTable(NamedTuple):
    """Counts per site in order of first occurrence, with a hash table of the sites."""

    slots: NDArray[np.int32]  # entry + 1, or 0; a power of two long
    name: NDArray[np.int32]  # contig, mixed with the partition to avoid collisions of partitions
    place: NDArray[np.int64]  # position << 32 | (partition + 1) << 1 | reverse
    methylated: NDArray[np.uint32]
    canonical: NDArray[np.uint32]
    failed: NDArray[np.uint32]
    rest: NDArray[np.uint32]  # see `SiteColumns`


@exact_kernel
def add_counts(first, columns, n_sites, counts):
    """Add counts of sites from `first` on, until the table is full; return the next row and `n_sites`.

    Parameters
    ----------
    columns, counts : SiteColumns, SiteCountTable
    """
    slots, names, places, methylated, canonical, failed, rest = counts
    site = np.int64(-1)
    at = first
    while at < columns.contig.shape[0] and (n_sites + 1) * SLOTS_PER_ENTRY <= slots.shape[0]:
        partition = np.int64(columns.partition[at]) + 1
        name = np.int64(columns.contig[at]) ^ (partition * _MIXER & _MOST_NAME)
        place = (columns.step[at] >> 1) << 32 | partition << 1 | (columns.step[at] & 1)
        site = find_site(slots, names, places, n_sites, site + 1, name, place)
        if site == n_sites:
            n_sites += 1
            methylated[site] = canonical[site] = failed[site] = 0
        methylated[site] += columns.methylated[at]
        canonical[site] += columns.canonical[at]
        failed[site] += columns.failed[at]
        for kind in range(rest.shape[1] if columns.rest.shape[0] else 0):
            if columns.rest[at, kind]:
                rest[site, kind] += columns.rest[at, kind]
        at += 1
    return at, n_sites


@exact_kernel
def list_call_sites(calls, inside, alignments, motif_forward, motif_reverse, sites):
    """List the sites of the calls `inside` one by one, as far as they fit; return their number.

    Parameters
    ----------
    inside : bool, shape (n_slots,)
    """
    call_offsets, n_calls, call_first, call_last, call_sites, methylated, unmethylated = calls
    contig, position, reverse, llr, size, read = sites
    contig_of, segment_start, reverse_of, _, _, bases, segment_offsets = alignments
    n_sites = 0
    for r in range(n_calls.shape[0]):
        segment = bases[segment_offsets[r] : segment_offsets[r + 1]]
        motif = motif_reverse if reverse_of[r] else motif_forward
        for call in range(call_offsets[r], call_offsets[r] + n_calls[r]):
            if not inside[call]:
                continue
            # rounded as in the table of calls, so that its sites agree
            ratio = np.float64(methylated[call]) - np.float64(unmethylated[call])
            ratio = np.rint(ratio * 100.0) / 100.0
            for site in range(call_first[call], call_last[call] + 1):
                if is_site(segment, site - segment_start[r], motif):
                    if n_sites < contig.shape[0]:  # there are more of another motif
                        contig[n_sites] = contig_of[r]
                        position[n_sites] = site
                        reverse[n_sites] = reverse_of[r]
                        llr[n_sites] = ratio
                        size[n_sites] = call_sites[call]
                        read[n_sites] = r
                    n_sites += 1
    return n_sites


def calls_inside(batch: ReadBatch, windows: Windows | None = None) -> NDArray[np.bool_]:
    """Mark the calls in a batch's call arrays, or those inside `windows`; see `Windows.hold_groups`."""
    inside = used_elements(batch.calls.offsets, batch.calls.n)
    if windows is not None:
        contig = np.repeat(batch.contig, batch.calls.n)
        inside[inside] = windows.hold_groups(contig, batch.calls.first[inside], batch.calls.last[inside])
    return inside


def expand_calls(batch: ReadBatch, motif: Motif, windows: Windows | None = None) -> SingleSiteCalls:
    """List the sites of all calls of a batch, or of those inside `windows`, by read and position."""
    inside = calls_inside(batch, windows)
    n_sites = int(batch.calls.sites[inside].sum(dtype=np.int64))
    sites = SingleSiteCalls.empty(n_sites)
    n_found = list_call_sites(batch.calls, inside, batch.alignments, motif.codes(False), motif.codes(True), sites)
    if n_found != n_sites:
        raise F5pyError(f"{n_found} sites of {motif.name} where {n_sites} were called; are they of another motif?")
    return sites


class SiteCounts:
    """Counter of methylated, canonical and failed calls per site, strand and partition.

    Calls with an absolute ratio below `threshold`, times the sites of their group if `threshold_per_site`, are failed,
    others methylated above zero and canonical else. A site takes 36 to 44 bytes, and 16 more for `SiteColumns.rest`.
    """

    def __init__(
        self, threshold: float = CALL_THRESHOLD, threshold_per_site: bool = False, combine_strands: bool = False
    ) -> None:
        self.combine_strands = combine_strands
        self._threshold, self._is_per_site = threshold, threshold_per_site
        self._n_sites = 0
        n = _FIRST_ENTRIES
        self._counts = SiteCountTable(
            slots=np.zeros(n * SLOTS_PER_ENTRY, np.int32),
            name=np.empty(n, np.int32),
            place=np.empty(n, np.int64),
            methylated=np.empty(n, np.uint32),
            canonical=np.empty(n, np.uint32),
            failed=np.empty(n, np.uint32),
            rest=np.zeros((n, _N_REST), np.uint32),
        )
        self._has_rest = False  # else `rest` is never written, and takes no memory

    def __len__(self) -> int:
        return self._n_sites

    def add(self, calls: SingleSiteCalls, partition: NDArray[np.int32] | None = None) -> None:
        """Count calls of single sites; the default partition is -1."""
        is_failed = np.abs(calls.llr) < self._threshold * (calls.size if self._is_per_site else 1)
        is_methylated = ~is_failed & (calls.llr > 0)  # NaN is a call, as in the table of frequencies
        kinds = [kind.astype(np.uint32) for kind in (is_methylated, ~(is_failed | is_methylated), is_failed)]
        step = calls.position << 1 | (calls.reverse & (not self.combine_strands))
        if partition is None:
            partition = np.full(len(step), -1, np.int32)
        kinds.append(np.empty((0, _N_REST), np.uint32))
        self.join(SiteColumns(partition, calls.contig, step, *kinds))

    def columns(self) -> SiteColumns:
        """Return all counts in order of first occurrence."""
        n = self._n_sites
        kinds = self._counts.methylated, self._counts.canonical, self._counts.failed
        rest = self._counts.rest[: n if self._has_rest else 0]
        return SiteColumns(*self._keys((0, 0)), *(kind[:n].copy() for kind in (*kinds, rest)))

    def _keys(self, offsets: tuple[int, int]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Return partition, contig and step of all sites; `offsets` are as for `totals`."""
        name, place = self._counts.name[: self._n_sites], self._counts.place[: self._n_sites]
        partition = (place & _MOST_STEP - 1) >> 1
        contig = name ^ (partition * _MIXER & _MOST_NAME).astype(np.int32)
        reverse = place & 1
        step = (place >> 32) + np.array(offsets)[reverse] << 1 | reverse
        return (partition - 1).astype(np.int32), contig, step

    def join(self, columns: SiteColumns) -> None:
        """Add counts of another counter."""
        if columns.rest.any():
            self._has_rest = True
        else:
            columns = columns._replace(rest=columns.rest[:0])
        n_done = 0
        while True:
            n_done, self._n_sites = add_counts(n_done, columns, self._n_sites, self._counts)
            if n_done == len(columns.contig):
                return
            self._grow()

    def _grow(self) -> None:
        counts, n = self._counts, self._n_sites
        slots = np.zeros(2 * len(counts.slots), np.int32)
        fill_site_slots(slots, counts.name, counts.place, n)
        self._counts = counts = counts._replace(slots=slots)
        size = len(slots) // SLOTS_PER_ENTRY
        rest = np.zeros((size, _N_REST), np.uint32)
        if self._has_rest:
            rest[:n] = counts.rest[:n]
        self._counts = counts = counts._replace(rest=rest)
        for column in counts._fields[1:-1]:
            self._counts = counts = counts._replace(**{column: enlarge(getattr(counts, column)[:n], size)})

    def partitions(self) -> list[int]:
        """Return the partitions with counts, ascending."""
        return np.unique(self._keys((0, 0))[0]).tolist()

    def totals(self, names: list[bytes], offsets: tuple[int, int] = (0, 0), partition: int = -1) -> SiteTotals:
        """Return the counts of a partition, sorted by contig name (bytes), position and strand.

        `offsets` are from a motif's first base to its modified base, on the forward and the reverse strand.
        """
        partitions, contig, step = self._keys(offsets)
        sites = np.flatnonzero(partitions == partition)
        sites = sites[np.lexsort((step[sites], rank_names(names)[contig[sites]]))]
        step = step[sites]
        kinds = self._counts.methylated, self._counts.canonical, self._counts.failed
        return SiteTotals(
            contig[sites], step >> 1, (step & 1).astype(np.bool_), *(kind[sites].astype(np.int64) for kind in kinds),
            *np.ascontiguousarray(self._counts.rest[sites].T.astype(np.int64)),
        )  # fmt: skip


def frequencies_of_sites(counts: SiteCounts, contigs: list[bytes], stranded: bool) -> Frequencies:
    """Combine the strands of sites with valid calls as frequencies, without sequences (``split-group``).

    `counts` must have no partitions, and strands apart if `stranded`.
    """
    totals = counts.totals(contigs)
    place = totals.contig.astype(np.int64) << 32 | totals.position
    is_first = np.ones(len(place), np.bool_)
    is_first[1:] = place[1:] != place[:-1]
    first = np.flatnonzero(is_first)
    of_reverse = totals.reverse.astype(np.int64)
    sums = (totals.valid, totals.methylated, totals.valid * of_reverse, totals.methylated * of_reverse)
    called, methylated, called_reverse, methylated_reverse = (
        np.add.reduceat(one, first) if len(first) else one for one in sums
    )
    n = len(first)
    position = totals.position[first]
    sites = SiteHash(
        slots=np.empty(0, np.int32),
        name=totals.contig[first],
        span=position << 32 | position,
        group_size=np.ones(n, np.int32),
        called=called,
        methylated=methylated,
        text_start=np.zeros(n, np.int64),
        text_size=np.zeros(n, np.int32),
        texts=SPLIT_TEXT.copy(),
        called_reverse=called_reverse,
        methylated_reverse=methylated_reverse,
    )
    text = np.frombuffer(bytearray(b"".join(contigs)), np.uint8)  # writable, as in tables: one compiled version
    names = NameHash(np.empty(0, np.int64), offsets_of([len(name) for name in contigs]), text)
    return Frequencies("num_motifs", contigs, 0, stranded, np.flatnonzero(called), sites, names)
