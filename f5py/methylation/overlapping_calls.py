"""Overlapping alignments of the same read: at every site a read counts once."""

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Calls, ReadBatch, ReadStatus
from f5py.core.names import Names
from f5py.core.offsets import elements_of
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.methylation.calls import join_motifs

#: Initial values of FNV-1a of 64 bits and of a variant with another prime.
_BASIS = (np.uint64(0xCBF29CE484222325), np.uint64(0x84222325CBF29CE4))
_PRIME = (np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15))
_SHIFT = np.uint64(29)
#: Columns of alignments: two hashes of the name, contig, start, end, and the same read's preceding alignment, or -1.
_N_COLUMNS, _PLACE, _EARLIER = 6, slice(2, 5), 5
_FIRST = 1 << 12


@exact_kernel
def hash_names(names, offsets, keys):
    """Fill two hashes of each name.

    Parameters
    ----------
    keys : int64, shape (n, 2)
    """
    for i in range(keys.shape[0]):
        first, second = _BASIS
        for at in range(offsets[i], offsets[i + 1]):
            first = (first ^ np.uint64(names[at])) * _PRIME[0]
            first ^= first >> _SHIFT
            second = (second ^ np.uint64(names[at])) * _PRIME[1]
            second ^= second >> _SHIFT
        keys[i, 0], keys[i, 1] = first, second


@exact_inner
def _slot_of(key, spans, latest):
    """Find the slot of a name in the hash table, or the empty one for it."""
    mask = latest.shape[0] - 1
    slot = key[1] & mask
    while latest[slot] >= 0 and (spans[latest[slot], 0] != key[0] or spans[latest[slot], 1] != key[1]):
        slot = (slot + 1) & mask
    return slot


@exact_kernel
def add_spans(begin, end, spans, latest):
    """Add alignments to the hash table of each name's latest one, and fill the preceding ones.

    Parameters
    ----------
    spans, latest : int64
        Alignments, shape (n, _N_COLUMNS), and the table of their rows or -1, shape (2 ** m,).
    """
    for span in range(begin, end):
        slot = _slot_of(spans[span], spans, latest)
        spans[span, _EARLIER] = latest[slot]
        latest[slot] = span


@exact_kernel
def find_latest(keys, spans, latest, found):
    """Fill the latest alignment of each name, or -1.

    Parameters
    ----------
    keys, spans, latest : int64
        See `hash_names` and `add_spans`.
    """
    for i in range(keys.shape[0]):
        found[i] = latest[_slot_of(keys[i], spans, latest)]


#: Contigs, starts and ends of alignments.
Places = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]


class AlignmentSpans:
    """Alignments by read, in about 70 bytes each."""

    def __init__(self) -> None:
        self._n = 0
        self._spans = np.empty((_FIRST, _N_COLUMNS), np.int64)
        self._latest = np.full(2 * _FIRST, -1)

    def add(self, names: Names, places: Places, used: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Add all alignments or the `used` ones; return the index of each read's preceding one, or -1."""
        chosen = np.arange(len(names)) if used is None else np.flatnonzero(used)
        begin, end = self._n, self._n + len(chosen)
        self._make_room(end)
        spans = self._spans[begin:end]
        spans[:, : _PLACE.start] = _hashes(names)[chosen]
        spans[:, _PLACE] = np.stack(places, axis=1)[chosen]
        add_spans(begin, end, self._spans, self._latest)
        self._n = end
        earlier = np.full(len(names), -1)
        earlier[chosen] = spans[:, _EARLIER]
        return earlier

    def touched(self, names: Names, places: Places) -> NDArray[np.bool_]:
        """Find the alignments that overlap or touch an added one of the same read; bool, shape (n,)."""
        latest = np.empty(len(names), np.int64)
        find_latest(_hashes(names), self._spans, self._latest, latest)
        return self._touch(latest, *places)

    def drop_overlapping(self, earlier: NDArray[np.int64], contig: NDArray[np.int32], calls: Calls) -> int:
        """Drop the calls within `earlier` alignments, from `add`; return their number of sites.

        The remaining calls are moved together.
        """
        reads = np.flatnonzero(earlier >= 0)
        read, at = np.repeat(reads, calls.n[reads]), elements_of(calls.offsets[reads], calls.n[reads])
        is_dropped = self._touch(earlier[read], contig[read], calls.first[at] + 1, calls.last[at])
        n_sites = int(calls.sites[at[is_dropped]].sum())
        calls.n[:] -= np.bincount(read[is_dropped], minlength=len(calls.n))
        to = elements_of(calls.offsets[reads], calls.n[reads])
        for name in Calls._fields[2:]:
            getattr(calls, name)[to] = getattr(calls, name)[at[~is_dropped]]
        return n_sites

    def _touch(
        self, span: NDArray[np.int64], contig: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether places overlap or touch the alignment `span`, or one of the read before it."""
        found = np.zeros(len(span), np.bool_)
        left, span = np.flatnonzero(span >= 0), span[span >= 0]
        while len(left):
            of_contig, first, last, earlier = self._spans[span, _PLACE.start :].T
            found[left] = (of_contig == contig[left]) & (start[left] <= last) & (end[left] >= first)
            goes_on = (earlier >= 0) & ~found[left]
            left, span = left[goes_on], earlier[goes_on]
        return found

    def _make_room(self, n: int) -> None:
        if n <= len(self._spans):
            return
        size = 1 << (n - 1).bit_length()
        spans = np.empty((size, _N_COLUMNS), np.int64)
        spans[: self._n] = self._spans[: self._n]
        self._spans, self._latest = spans, np.full(2 * size, -1)
        add_spans(0, self._n, self._spans, self._latest)


def _hashes(names: Names) -> NDArray[np.int64]:
    keys = np.empty((len(names), 2), np.int64)
    hash_names(names.text, names.offsets, keys)
    return keys


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
