"""Calls of single sites, counted per site and strand while they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif
from f5py.core.stored_arrays import check_column
from f5py.core.windows import Windows
from f5py.errors import DamagedValueError, F5pyError
from f5py.options.shared import CALL_THRESHOLD

if TYPE_CHECKING:
    from f5py.site_frequencies._site_counts_numba import Counts

#: Positions have 31 bits.
_MOST_STEP = 1 << 32
#: Counts of `SiteColumns.rest`.
N_REST = 4
_FIRST_ENTRIES = 1 << 12  # a power of two, as the hash table must be


class SiteCalls(NamedTuple):
    """Calls of single sites, one element a site; groups have been taken apart."""

    contig: NDArray[np.int32]  # index into the BAM header's contigs
    position: NDArray[np.int64]  # 0-based position of the motif's first base
    reverse: NDArray[np.bool_]  # strand of the read
    # log-likelihood ratio of the site's group, rounded to two decimals as in the table of calls
    llr: NDArray[np.float64]
    size: NDArray[np.int32]  # sites in that group
    read: NDArray[np.int64]  # number of the read in its batch


class SiteColumns(NamedTuple):
    """Counts of sites as they are kept, one element a site."""

    # partition, contig: -1 is no partition
    partition: NDArray[np.int32]
    contig: NDArray[np.int32]
    step: NDArray[np.int64]  # 0-based position of the motif's first base << 1 | reverse
    # methylated, canonical, failed: see `SiteTotals`
    methylated: NDArray[np.uint32]
    canonical: NDArray[np.uint32]
    failed: NDArray[np.uint32]
    # shape (n, 4): `SiteTotals.other`, `deleted`, `different` and `missing`; may have no rows, which stands for zeros
    rest: NDArray[np.uint32]

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_partitions: int, n_contigs: int) -> SiteColumns:
        """Columns from a file, with so many partitions and contigs.

        Raises `DamagedValueError` if they are not such columns.
        """
        if set(arrays) != set(cls._fields):
            raise DamagedValueError("its arrays are not those of sites")
        columns = cls(**arrays)
        n = len(columns.contig) if columns.contig.ndim else 0
        check_column(columns.partition, np.int32, n, end=n_partitions, least=-1)
        check_column(columns.contig, np.int32, n, end=n_contigs)
        check_column(columns.step, np.int64, n, end=_MOST_STEP)
        for counts in columns[3:6]:
            check_column(counts, np.uint32, n)
        check_column(columns.rest, np.uint32, n if len(np.atleast_1d(columns.rest)) else 0, N_REST)
        return columns


class SiteTotals(NamedTuple):
    """Counts of sites in the order of the output: by contig, position and strand."""

    contig: NDArray[np.int32]  # index into the contigs' names
    position: NDArray[np.int64]  # 0-based position of the modified base
    reverse: NDArray[np.bool_]  # False for all if strands were combined
    # methylated, canonical, failed: calls of either kind, and those below the threshold
    methylated: NDArray[np.int64]
    canonical: NDArray[np.int64]
    failed: NDArray[np.int64]
    other: NDArray[np.int64]  # calls of another modification, which only tags of other callers have
    # deleted, different, missing: reads that lack the base, have another one, or have it without a call; only counted
    # of tags
    deleted: NDArray[np.int64]
    different: NDArray[np.int64]
    missing: NDArray[np.int64]

    @property
    def valid(self) -> NDArray[np.int64]:
        """All calls but those below the threshold; int64."""
        return self.methylated + self.canonical + self.other

    def covered(self, least: int) -> SiteTotals:
        """Select the sites with at least so many valid calls."""
        kept = self.valid >= least
        return self if kept.all() else SiteTotals._make(column[kept] for column in self)


def calls_inside(batch: ReadBatch, windows: Windows | None = None) -> NDArray[np.bool_]:
    """Mark the elements of a batch's call arrays that are calls, inside of a window if there are any.

    See `Windows.hold_groups`.
    """
    from f5py.site_frequencies._site_counts_numba import mark_calls

    inside = np.empty(batch.calls.offsets[-1], np.bool_)
    mark_calls(batch.calls.offsets, batch.calls.n, inside)
    if windows is not None:
        contig = np.repeat(batch.contig, batch.calls.n)
        inside[inside] = windows.hold_groups(contig, batch.calls.first[inside], batch.calls.last[inside])
    return inside


def expand_calls(batch: ReadBatch, motif: Motif, windows: Windows | None = None) -> SiteCalls:
    """List the sites of all calls of a batch, in the order of reads and positions.

    Parameters
    ----------
    batch : ReadBatch
        With calls and reference segments.
    windows : Windows, optional
        Only groups inside of a window are listed, as in the table of calls.
    """
    from f5py.site_frequencies._site_counts_numba import Segments, expand

    inside = calls_inside(batch, windows)
    n_sites = int(batch.calls.sites[inside].sum(dtype=np.int64))
    kinds = (np.int32, np.int64, np.bool_, np.float64, np.int32, np.int64)
    sites = SiteCalls._make(np.empty(n_sites, kind) for kind in kinds)
    n_found = expand(
        batch.calls, inside,
        Segments(batch.reference, batch.reference_offsets, batch.reference_start, batch.contig, batch.reverse),
        motif.codes(False), motif.codes(True), sites,
    )  # fmt: skip
    if n_found != n_sites:
        raise F5pyError(f"{n_found} sites of {motif.name} where {n_sites} were called; are they of another motif?")
    return sites


class SiteCounts:
    """Counts of methylated, canonical and failed calls per site, strand and partition.

    Memory grows with the number of distinct sites, 28 bytes and a hash table of 8 to 16 bytes each; 16 more if there
    are calls of other modifications, or reads without a call are counted.

    Parameters
    ----------
    threshold : float
        Calls with a smaller absolute ratio count as failed; others as methylated above zero, otherwise canonical.
    threshold_per_site : bool
        Multiply the threshold by the number of sites in the call's group.
    """

    def __init__(
        self, threshold: float = CALL_THRESHOLD, threshold_per_site: bool = False, combine_strands: bool = False
    ) -> None:
        from f5py.site_frequencies import _site_counts_numba as jit

        self.combine_strands = combine_strands
        self._rule = jit.Rule(threshold, threshold_per_site, combine_strands)
        self._n_sites = 0
        n = _FIRST_ENTRIES
        self._counts = jit.Counts(
            slots=np.zeros(n * jit.SLOTS_PER_ENTRY, np.int32),
            name=np.empty(n, np.int32),
            place=np.empty(n, np.int64),
            methylated=np.empty(n, np.uint32),
            canonical=np.empty(n, np.uint32),
            failed=np.empty(n, np.uint32),
            rest=np.zeros((n, N_REST), np.uint32),
        )
        #: Whether `rest` has anything but zeros; else it is never written, and takes no memory.
        self._has_rest = False

    def __len__(self) -> int:
        return self._n_sites

    def add(
        self,
        contig: NDArray[np.int32],
        position: NDArray[np.int64],
        reverse: NDArray[np.bool_],
        llr: NDArray[np.float64],
        partition: NDArray[np.int32] | None = None,
        size: NDArray[np.int32] | None = None,
    ) -> None:
        """Count calls of single sites.

        Parameters
        ----------
        contig, position, reverse, llr, size
            As in `SiteCalls`, shape (n,); `size` only matters with a threshold per site, and is 1 by default.
        partition : int32, shape (n,), optional
            What to count apart; -1, the default, stands for none.
        """
        from f5py.site_frequencies import _site_counts_numba as jit

        if partition is None:
            partition = np.empty(0, np.int32)
        if size is None:
            size = np.ones(len(llr), np.int32)
        calls = SiteCalls(contig, position, reverse, llr, size, np.empty(0, np.int64))
        self._add_all(jit.count_sites, len(llr), calls, partition, self._rule)

    def _add_all(self, kernel: Callable[..., tuple[int, int]], n: int, *arguments: object) -> None:
        """Let a kernel add n counts, with more room whenever it has run out of that."""
        n_done = 0
        while True:
            n_done, self._n_sites = kernel(n_done, *arguments, self._n_sites, self._counts)
            if n_done == n:
                return
            self._grow()

    def columns(self) -> SiteColumns:
        """All counts, in the order in which the sites came."""
        n = self._n_sites
        kinds = self._counts.methylated, self._counts.canonical, self._counts.failed
        rest = self._counts.rest[: n if self._has_rest else 0]
        return SiteColumns(*self._keys((0, 0)), *(kind[:n].copy() for kind in (*kinds, rest)))

    def _keys(self, offsets: tuple[int, int]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Partitions, contigs, and positions and strands as one number, of all sites."""
        from f5py.site_frequencies._site_counts_numba import split_keys

        n = self._n_sites
        partition, contig, step = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64)
        split_keys(self._counts.name[:n], self._counts.place[:n], *offsets, partition, contig, step)
        return partition, contig, step

    def join(self, columns: SiteColumns) -> None:
        """Add what others have counted."""
        from f5py.site_frequencies import _site_counts_numba as jit

        if columns.rest.any():
            self._has_rest = True
        else:
            columns = columns._replace(rest=columns.rest[:0])
        self._add_all(jit.add_counts, len(columns.contig), *columns[:3], columns[3:])

    def _grow(self) -> None:
        from f5py.site_frequencies._site_table_numba import SLOTS_PER_ENTRY, fill_site_slots
        from f5py.site_frequencies.site_table import longer

        counts, n = self._counts, self._n_sites
        slots = np.zeros(2 * len(counts.slots), np.int32)
        fill_site_slots(slots, counts.name, counts.place, n)
        self._counts = counts = counts._replace(slots=slots)
        size = len(slots) // SLOTS_PER_ENTRY
        rest = np.zeros((size, N_REST), np.uint32)
        if self._has_rest:
            rest[:n] = counts.rest[:n]
        self._counts = counts = counts._replace(rest=rest)
        for column in counts._fields[1:-1]:
            self._counts = counts = counts._replace(**{column: longer(getattr(counts, column)[:n], size)})

    def totals(self, names: list[bytes], offsets: tuple[int, int] = (0, 0)) -> TotalsByPartition:
        """Return the counts, sorted by partition, contig name (bytes), position and strand.

        Parameters
        ----------
        offsets : (int, int)
            From a motif's first base to its modified base, on the forward and on the reverse strand.
        """
        from f5py.site_frequencies.site_table import name_ranks

        partition, contig, step = self._keys(offsets)
        order = np.lexsort((step, partition.astype(np.int64) << 32 | name_ranks(names)[contig]))
        return TotalsByPartition(self._counts, order, partition[order], contig, step)


@dataclass(frozen=True)
class TotalsByPartition:
    """Counts of sites in the order of the output, a partition at a time; made by `SiteCounts.totals`."""

    _counts: Counts
    _order: NDArray[np.intp]
    _partition: NDArray[np.int32]  # ascending
    _contig: NDArray[np.int32]
    _step: NDArray[np.int64]

    def of(self, partition: int = -1) -> SiteTotals:
        """Collect the sites of one partition; there may be none."""
        first, stop = np.searchsorted(self._partition, np.array((partition, partition + 1), np.int32))
        sites = self._order[first:stop]
        step = self._step[sites]
        return SiteTotals(
            self._contig[sites],
            step >> 1,
            (step & 1).astype(np.bool_),
            self._counts.methylated[sites].astype(np.int64),
            self._counts.canonical[sites].astype(np.int64),
            self._counts.failed[sites].astype(np.int64),
            *np.ascontiguousarray(self._counts.rest[sites].T.astype(np.int64)),
        )

    def partitions(self) -> NDArray[np.int32]:
        """List the partitions that have counts, ascending; int32."""
        return np.unique(self._partition)
