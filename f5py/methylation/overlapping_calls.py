"""Overlapping alignments of the same read: at every site a read counts once."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Calls, ReadBatch, ReadStatus
from f5py.core.names import Names
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.methylation.calls import join_motifs

#: Initial values of FNV-1a of 64 bits and of a variant with another prime.
_BASIS = (np.uint64(0xCBF29CE484222325), np.uint64(0x84222325CBF29CE4))
_PRIME = (np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15))
_SHIFT = np.uint64(29)


class SpanTable(NamedTuple):
    """Alignments in input order, and a hash table of read names."""

    keys: NDArray[np.uint64]  # (2 ** m, 2); 0, 0 is an empty slot
    latest: NDArray[np.int64]  # (2 ** m,): the read's last alignment
    contig: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    earlier: NDArray[np.int64]  # the same read's preceding alignment, or -1


@exact_inner
def _slot_of(keys, first, second):
    n_slots = keys.shape[0]
    slot = np.int64(second & np.uint64(n_slots - 1))
    while keys[slot, 0] != 0 and (keys[slot, 0] != first or keys[slot, 1] != second):
        slot = (slot + 1) & (n_slots - 1)
    return slot


@exact_inner
def _key_of(names, begin, end):
    """Compute two hashes of a name."""
    first, second = _BASIS
    for i in range(begin, end):
        first = (first ^ np.uint64(names[i])) * _PRIME[0]
        first ^= first >> _SHIFT
        second = (second ^ np.uint64(names[i])) * _PRIME[1]
        second ^= second >> _SHIFT
    return first | np.uint64(1), second


@exact_kernel
def find_touched(names, offsets, places, spans, found):
    """Find the alignments that overlap or touch an added alignment of the same read.

    Parameters
    ----------
    names, offsets, places
        See `add_spans`.
    found : bool, shape (n_reads,)
    """
    contig, start, end = places
    for read in range(found.shape[0]):
        first, second = _key_of(names, offsets[read], offsets[read + 1])
        slot = _slot_of(spans.keys, first, second)
        span = spans.latest[slot] if spans.keys[slot, 0] != 0 else -1
        found[read] = False
        while span >= 0 and not found[read]:
            found[read] = spans.contig[span] == contig[read]
            found[read] = found[read] and start[read] <= spans.end[span] and end[read] >= spans.start[span]
            span = spans.earlier[span]


@exact_kernel
def add_spans(names, offsets, used, places, n_spans, spans, earlier):
    """Add the alignments of the reads selected by `used`; return the number of all alignments.

    Parameters
    ----------
    names, offsets : uint8, int64, shape (n_reads + 1,)
    used : bool, shape (n_reads,)
    places : int32, int64, int64, shape (n_reads,)
        Contigs, starts and ends of the alignments.
    earlier : int64, shape (n_reads,)
        Filled with the same read's preceding alignment, or -1.
    """
    contig, start, end = places
    for read in range(used.shape[0]):
        earlier[read] = -1
        if not used[read]:
            continue
        first, second = _key_of(names, offsets[read], offsets[read + 1])
        slot = _slot_of(spans.keys, first, second)
        if spans.keys[slot, 0] != 0:
            earlier[read] = spans.latest[slot]
        spans.keys[slot, 0], spans.keys[slot, 1] = first, second
        spans.latest[slot] = n_spans
        spans.contig[n_spans], spans.start[n_spans], spans.end[n_spans] = contig[read], start[read], end[read]
        spans.earlier[n_spans] = earlier[read]
        n_spans += 1
    return n_spans


@exact_kernel
def move_keys(old_keys, old_latest, keys, latest):
    """Copy a hash table to a larger one filled with zeros.

    Parameters
    ----------
    old_keys, old_latest, keys, latest
        See `SpanTable`.
    """
    for i in range(old_keys.shape[0]):
        if old_keys[i, 0] != 0:
            slot = _slot_of(keys, old_keys[i, 0], old_keys[i, 1])
            keys[slot, 0], keys[slot, 1] = old_keys[i, 0], old_keys[i, 1]
            latest[slot] = old_latest[i]


@exact_kernel
def drop_overlapping(earlier, contig, spans, calls):
    """Drop each read's calls that overlap its earlier alignments; return the number of dropped sites.

    The remaining calls are moved together and their numbers reduced.

    Parameters
    ----------
    earlier : int64, shape (n_reads,)
        See `add_spans`.
    calls : f5py.core.batch.Calls
        Changed.
    """
    offsets, n_calls, first, last, sites, methylated, unmethylated = calls
    n_dropped = np.int64(0)
    for read in range(earlier.shape[0]):
        if earlier[read] < 0:
            continue
        kept = offsets[read]
        for call in range(offsets[read], offsets[read] + n_calls[read]):
            is_covered = False
            span = earlier[read]
            while span >= 0 and not is_covered:
                is_covered = spans.contig[span] == contig[read]
                is_covered = is_covered and first[call] < spans.end[span] and last[call] >= spans.start[span]
                span = spans.earlier[span]
            if is_covered:
                n_dropped += sites[call]
                continue
            first[kept], last[kept], sites[kept] = first[call], last[call], sites[call]
            methylated[kept], unmethylated[kept] = methylated[call], unmethylated[call]
            kept += 1
        n_calls[read] = kept - offsets[read]
    return n_dropped


_FIRST = 1 << 12
#: Contigs, starts and ends of alignments.
Places = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]


class AlignmentSpans:
    """Alignments by read, in about 70 bytes each."""

    def __init__(self) -> None:
        self._n = 0
        self._spans: SpanTable = SpanTable(
            np.zeros((2 * _FIRST, 2), np.uint64), np.zeros(2 * _FIRST, np.int64), np.empty(_FIRST, np.int32),
            np.empty(_FIRST, np.int64), np.empty(_FIRST, np.int64), np.empty(_FIRST, np.int64),
        )  # fmt: skip

    def add(self, names: Names, places: Places, used: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Add all alignments or the `used` ones; return the index of each read's preceding one, or -1."""
        n = len(names)
        self._make_room(n)
        earlier = np.empty(n, np.int64)
        used = np.ones(n, np.bool_) if used is None else used
        self._n = add_spans(names.text, names.offsets, used, places, self._n, self._spans, earlier)
        return earlier

    def touched(self, names: Names, places: Places) -> NDArray[np.bool_]:
        """Find the alignments that overlap or touch an added one of the same read; bool, shape (n,)."""
        found = np.zeros(len(names), np.bool_)
        find_touched(names.text, names.offsets, places, self._spans, found)
        return found

    def drop_overlapping(self, earlier: NDArray[np.int64], contig: NDArray[np.int32], calls: Calls) -> int:
        """Drop the calls within `earlier` alignments, from `add`; return their number of sites."""
        return int(drop_overlapping(earlier, contig, self._spans, calls))

    def _make_room(self, n: int) -> None:
        spans, size = self._spans, len(self._spans.contig)
        while size < self._n + n:
            size *= 2
        if size == len(spans.contig):
            return
        keys, latest = np.zeros((2 * size, 2), np.uint64), np.zeros(2 * size, np.int64)
        move_keys(spans.keys, spans.latest, keys, latest)
        self._spans = spans._replace(keys=keys, latest=latest)
        for name in spans._fields[2:]:
            old: NDArray[Any] = getattr(spans, name)
            column = np.empty(size, old.dtype)
            column[: self._n] = old[: self._n]
            self._spans = self._spans._replace(**{name: column})


class OverlappingCalls:
    """Filter of calls of groups that overlap an earlier alignment of the same read, on either strand.

    Earlier alignments are the called ones that precede in the input.

    Attributes
    ----------
    n_sites : int
        Sites of the dropped calls.
    """

    def __init__(self) -> None:
        self.n_sites = 0
        self._spans = AlignmentSpans()

    def add(self, batch: ReadBatch) -> NDArray[np.int64]:
        """Add the called alignments of a batch; see `AlignmentSpans.add`."""
        places = batch.contig, batch.reference_start, batch.reference_end
        return self._spans.add(batch.names, places, batch.status == ReadStatus.OK)

    def drop(self, batch: ReadBatch) -> int:
        """Drop overlapping calls of a batch, in the order of batches; return their number of sites."""
        earlier = self.add(batch)
        if not (earlier >= 0).any():
            return 0
        n_sites = 0
        for calls in batch.by_motif or [batch.calls]:
            n_sites += self._spans.drop_overlapping(earlier, batch.contig, calls)
        if batch.by_motif:
            join_motifs(batch)
        self.n_sites += n_sites
        return n_sites
