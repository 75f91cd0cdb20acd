"""Joins of a read's chains over long gaps, to be scored elsewhere than where chains are cut.

Where it is worth it, the anchors of a read's chains are chained once more, with the long bandwidth. They are divided
into segments, see `segments`, that can be scored in any order and place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import SORT_SCRATCH, sort_pairs
from f5py.mapping.batch import Anchors, MappingBatch
from f5py.mapping.chain._chains_numba import Chains, cut_chains, is_worth_joining
from f5py.mapping.chain.segments import begins_segment, pack_anchors, unpack_chains
from f5py.mapping.settings import (
    AVA,
    BW,
    BW_LONG,
    INNER_DISTANCE,
    MAX_GAP,
    RESCUE_BASES,
    RESCUE_RATIO,
    SPLICED,
    Parameters,
)
from f5py.threads.pool import WorkerPool, longest_first, threads_for

#: So many anchors are copied before workers would have come.
_FEW_ANCHORS = 1 << 20


#: States of reads: their chains stay; they are sorted, to be joined; their joins have been scored.
AS_CUT, TO_JOIN, JOINED = range(3)
_ANY_DROP = (1 << 31) - 1


class CutChains(NamedTuple):
    """First chains of the reads of a batch, and the scores of their joins."""

    # x, y: shape (n_anchors,): where a read's anchors begin stand those of its chains, one after the other, or sorted
    # if they are to be joined
    x: NDArray[np.uint64]
    y: NDArray[np.int64]
    sums: NDArray[np.int64]  # shape (n_anchors,): see `f5py.mapping.chain._chains_numba.Chains`
    # f, p: shape (n_anchors,): scores of joined reads; see `f5py.mapping.chain.chaining.score_anchors`
    f: NDArray[np.int32]
    p: NDArray[np.int32]
    n_chains: NDArray[np.int64]  # shape (n_reads,)
    n_anchors: NDArray[np.int64]  # shape (n_reads,): of the chains
    n_segments: NDArray[np.int64]  # shape (n_reads,): see `f5py.mapping.chain.segments`
    work: NDArray[np.int64]  # shape (n_reads,): pairs of anchors within reach
    states: NDArray[np.uint8]  # shape (n_reads,)
    offsets: NDArray[np.int64]  # shape (n_reads + 1,): of the reads' anchors before they were cut


class PackedJoins(NamedTuple):
    """Buffers of a GPU: anchors and segments of reads to be joined, and the resulting chains."""

    anchors: NDArray[np.int32]  # shape (n_anchors, 2): see `f5py.mapping.chain.segments.pack_anchors`
    segments: NDArray[np.int32]  # shape (n_segments, 2): first anchor, and twice the number of anchors
    # shape (n_anchors, 2): scores, and predecessors from the segment's first anchor on, or -1
    chains: NDArray[np.int32]


@exact_inner
def first_chains(read, anchors, read_length, parameters, out, scratch):
    """Cut the chains of a read; sort their anchors if it is worth it to join them over long gaps.

    Returns
    -------
    n_chains, n_anchors : int
    is_worth : bool
    """
    integers = parameters.integers
    begin = anchors.offsets[read]
    n_chains, m = cut_chains(
        (anchors.x, anchors.y), begin, anchors.offsets[read + 1] - begin, integers,
        _ANY_DROP if integers[SPLICED] else integers[BW], (anchors.f, anchors.p), out, scratch,
    )  # fmt: skip
    if (
        integers[AVA]
        or integers[SPLICED]
        or not is_worth_joining(out.y, out.sums, n_chains, read_length, integers, RESCUE_BASES, RESCUE_RATIO)
    ):
        return n_chains, m, False
    sort_pairs(out.x, out.y, 0, m, scratch)
    return n_chains, m, True


@exact_inner
def copy_chains(cut, read, out):
    """Copy the chains of a read that stay as they have been cut."""
    begin = cut.offsets[read]
    for i in range(cut.n_anchors[read]):
        out.x[i] = cut.x[begin + i]
        out.y[i] = cut.y[begin + i]
    for c in range(cut.n_chains[read]):
        out.sums[c] = cut.sums[begin + c]


@exact_inner
def _reach_of(integers):
    """Compute the largest distance to a candidate anchor: the bandwidth, but at least the inner distance."""
    return np.uint64(max(integers[MAX_GAP], integers[BW_LONG], INNER_DISTANCE))


@exact_kernel
def cut_reads(queue, reads, columns, anchors, parameters, cut):
    """Cut the first chains of reads.

    Parameters
    ----------
    columns : f5py.mapping.batch.ReadColumns
    anchors : f5py.mapping.batch.Anchors
        Scored.
    cut : CutChains
        Filled, but for `offsets`, which are there, and `f` and `p`.
    """
    reach = _reach_of(parameters.integers)
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for turn_of_read in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[turn_of_read]
        begin = anchors.offsets[read]
        end = anchors.offsets[read + 1]
        cut.n_chains[read] = 0
        cut.n_anchors[read] = 0
        cut.n_segments[read] = 0
        cut.work[read] = 0
        cut.states[read] = AS_CUT
        if begin == end:
            continue
        x = cut.x[begin:end]
        n_chains, m, is_worth = first_chains(
            read, anchors, columns.offsets[read + 1] - columns.offsets[read], parameters,
            Chains(x, cut.y[begin:end], cut.sums[begin:end]), scratch,
        )  # fmt: skip
        cut.n_chains[read] = n_chains
        cut.n_anchors[read] = m
        if not is_worth:
            continue
        cut.states[read] = TO_JOIN
        n_segments = 1
        work = 0
        st = 0
        for i in range(1, m):
            if begins_segment(x, i, reach):
                n_segments += 1
                st = i
            while x[i] > x[st] + reach:
                st += 1
            work += i - st
        cut.n_segments[read] = n_segments
        cut.work[read] = work


@exact_kernel
def pack_joins(queue, tasks, reads, cut, integers, places, packed):
    """Copy the anchors of reads to be joined, and fill their segments.

    Parameters
    ----------
    queue, tasks
        See `f5py.threads.pool`; indices of `reads`.
    reads : int64
    cut : CutChains
    places : tuple of int64, shape (n + 1,)
        Offsets of the reads' anchors and segments.
    packed : PackedJoins
        Filled, but for `chains`.
    """
    reach = _reach_of(integers)
    segments = packed.segments
    anchor_places, segment_places = places
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        i = tasks[t]
        begin = cut.offsets[reads[i]]
        n = cut.n_anchors[reads[i]]
        to = anchor_places[i]
        pack_anchors(cut.x, cut.y, begin, n, packed.anchors, to)
        segment = segment_places[i]
        first = begin
        for k in range(begin + 1, begin + n + 1):
            if k == begin + n or begins_segment(cut.x, k, reach):
                segments[segment, 0] = to + first - begin
                segments[segment, 1] = 2 * (k - first)
                segment += 1
                first = k


@exact_kernel
def unpack_joins(queue, tasks, reads, cut, places, packed):
    """Fill the scores and predecessors of reads, which are joined then.

    Parameters
    ----------
    cut : CutChains
        Filled.
    """
    segments, chains = packed.segments, packed.chains
    anchor_places, segment_places = places
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        i = tasks[t]
        begin = cut.offsets[reads[i]]
        for s in range(segment_places[i], segment_places[i + 1]):
            at = np.int64(segments[s, 0])
            offset = at - anchor_places[i]
            n = np.int64(segments[s, 1] // 2)
            unpack_chains(chains, at, n, offset, (cut.f, cut.p), begin + offset)
        cut.states[reads[i]] = JOINED


def long_reach_of(parameters: Parameters) -> int:
    """Largest distance between neighbours in a joined chain, on contig and read."""
    return int(max(parameters.integers[MAX_GAP], parameters.integers[BW_LONG]))


@dataclass
class Joins:
    """First chains of a batch, of which some are yet to be joined."""

    lengths: NDArray[np.int64]  # of all reads
    cut: CutChains
    reads: NDArray[np.int64]  # those to be joined, with most anchors first
    parameters: Parameters
    pool: WorkerPool
    number: int  # of the batch

    @classmethod
    def of(cls, batch: MappingBatch, parameters: Parameters, pool: WorkerPool) -> Joins:
        """Cut the first chains of all reads."""
        anchors = batch.anchors
        assert anchors is not None
        cut = made_room(len(batch), anchors)
        pool.run(
            cut_reads, longest_first(batch.lengths, np.ones(len(batch), np.bool_)), batch.columns, anchors, parameters,
            cut, order=batch.number,
        )  # fmt: skip
        return cls(
            batch.lengths, cut, longest_first(cut.n_anchors, cut.states == TO_JOIN), parameters, pool, batch.number
        )

    def places_of(self, reads: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the offsets of the anchors and segments of reads, one read after another."""
        return offsets_of(self.cut.n_anchors[reads]), offsets_of(self.cut.n_segments[reads])

    def pack(self, reads: NDArray[np.int64], places: tuple[NDArray[np.int64], ...], packed: PackedJoins) -> None:
        """Copy the anchors of reads as a GPU takes them, and fill their segments."""
        threads_for(self.pool, int(places[0][-1]), _FEW_ANCHORS).run(
            pack_joins, np.arange(len(reads)), reads, self.cut, self.parameters.integers, places, packed,
            order=self.number,
        )  # fmt: skip

    def unpack(self, reads: NDArray[np.int64], places: tuple[NDArray[np.int64], ...], packed: PackedJoins) -> None:
        """Take the scores and predecessors of reads, which are joined then."""
        threads_for(self.pool, int(places[0][-1]), _FEW_ANCHORS).run(
            unpack_joins, np.arange(len(reads)), reads, self.cut, places, packed, order=self.number
        )


def made_room(n_reads: int, anchors: Anchors) -> CutChains:
    """Make room for the first chains of so many reads: of all that have these anchors, or none.

    With none the chains are cut where they are needed.
    """
    n = len(anchors.x) if n_reads else 0
    n_chains, n_anchors, n_segments, work = np.empty((4, n_reads), np.int64)
    return CutChains(
        np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32),
        np.empty(n, np.int32), n_chains, n_anchors, n_segments, work, np.empty(n_reads, np.uint8), anchors.offsets,
    )  # fmt: skip
