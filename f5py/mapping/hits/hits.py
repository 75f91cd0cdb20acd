"""Hits: the chains of a read, which of them are secondary to which, aligned and ranked.

A hit is primary if no better one covers most of its part of the read. The rules are minimap2's, and so is the order of
equal hits, which a hash of the read's name decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.mapping.batch import ChainedHits, ContigColumns, Hits, MappingBatch
from f5py.mapping.chain.joins import Joins, made_room
from f5py.mapping.hit_table import N_FIELDS
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import collecting, copy_to_places
from f5py.mapping.settings import Parameters
from f5py.threads.pool import WorkerPool, longest_first, threads_for

#: So many hits are ranked before workers would have come.
_FEW_HITS = 1 << 14


def chain_hits(
    batch: MappingBatch,
    index: ReferenceIndex,
    parameters: Parameters,
    pool: WorkerPool,
    joins: Joins | None = None,
) -> float:
    """Fill ``batch.chained`` from the scored anchors, of which only `rep_len` is kept.

    Return the seconds that all threads together have worked.

    Parameters
    ----------
    joins : Joins, optional
        The first chains, if they have been cut; those not yet joined that are to be are joined here.
    """
    from f5py.mapping.hits._chained_hits_numba import ChainedCounts, chain_reads
    from f5py.mapping.hits._hit_reads_numba import gather_hits

    anchors = batch.anchors
    assert anchors is not None
    n = len(batch)
    counts = ChainedCounts(np.zeros(n, np.int64), np.zeros(n, np.int64))
    cut = made_room(0, anchors) if joins is None else joins.cut
    results: list[Any] = []
    seconds = pool.run(
        collecting(chain_reads, results), longest_first(batch.lengths, np.ones(n, np.bool_)), batch.columns, anchors,
        np.diff(index.offsets), parameters, cut, counts, order=batch.number,
    )  # fmt: skip
    batch.anchors = anchors.without_places()
    offsets, anchor_offsets = offsets_of(counts.hits), offsets_of(counts.anchors)
    table = np.empty((offsets[-1], N_FIELDS), np.int64)
    x, y = np.empty(anchor_offsets[-1], np.uint64), np.empty(anchor_offsets[-1], np.int64)
    for done, found, found_x, found_y in results:
        gather_hits(done, counts.hits, offsets, np.empty(0, np.int64), found, table)
        copy_to_places(done, counts.anchors, anchor_offsets, found_x, x)
        copy_to_places(done, counts.anchors, anchor_offsets, found_y, y)
    batch.chained = ChainedHits(table, offsets, x, y, anchor_offsets)
    return seconds


def align_hits(
    batch: MappingBatch,
    index: ReferenceIndex,
    parameters: Parameters,
    pool: WorkerPool,
    made: tuple[NDArray, ...] | None = None,
    junctions: NDArray[np.int64] | None = None,
) -> float:
    """Fill ``batch.hits`` with the chained hits, which are used up, aligned base by base but not ranked.

    Return the seconds that all threads together have worked.

    Parameters
    ----------
    made : tuple of arrays, optional
        Alignments that have been made elsewhere: keys, results, operations and offsets of
        `f5py.mapping.align._pair_alignment_numba.Made`.
    junctions : int64, shape (n, 3), optional
        Annotated introns, see `f5py.mapping.align.junctions`.
    """
    from f5py.mapping.align._pair_alignment_numba import Made
    from f5py.mapping.hits._hit_reads_numba import HitCounts, align_reads, gather_hits

    chained = batch.chained
    assert chained is not None
    n = len(batch)
    counts = HitCounts(np.zeros(n, np.int64), np.zeros(n, np.int64))
    keys, made_results, made_ops, made_offsets = made or no_alignments(n)
    there = Made(keys, made_results, made_ops, made_offsets, np.zeros(2, np.int64))
    results: list[Any] = []
    seconds = pool.run(
        collecting(align_reads, results), longest_first(batch.lengths, np.ones(n, np.bool_)), batch.columns, chained,
        contigs_of(index), parameters.integers, there, np.empty((0, 3), np.int64) if junctions is None else junctions,
        counts, order=batch.number,
    )  # fmt: skip
    batch.chained = None
    offsets, op_offsets = offsets_of(counts.hits), offsets_of(counts.ops)
    table = np.empty((offsets[-1], N_FIELDS), np.int64)
    ops = np.empty(op_offsets[-1], np.int64)
    for done, found, found_ops in results:
        gather_hits(done, counts.hits, offsets, op_offsets, found, table)
        copy_to_places(done, counts.ops, op_offsets, found_ops, ops)
    batch.hits = Hits(table, offsets, ops)
    return seconds


def rank_hits(batch: MappingBatch, parameters: Parameters, pool: WorkerPool) -> float:
    """Rank ``batch.hits``, if they are there, drop those that nobody wants, and give all others mapping qualities.

    If they are not there, these are the chained hits, which are used up.

    Return the seconds that all threads together have worked.
    """
    from f5py.mapping.hits._mapping_quality_numba import rank_reads

    hits, chained = batch.hits, batch.chained
    is_aligned = hits is not None
    if hits is None:
        assert chained is not None
        hits = Hits(chained.table, chained.offsets, np.empty(0, np.int64))
    assert batch.anchors is not None
    kept = np.zeros(len(batch), np.int64)
    seconds = threads_for(pool, len(hits.table), _FEW_HITS).run(
        rank_reads, np.arange(len(batch)), batch.offsets, hits, batch.anchors.rep_len, parameters, is_aligned, kept,
        order=batch.number,
    )  # fmt: skip
    batch.chained = None
    offsets = offsets_of(kept)
    first = np.repeat(hits.offsets[:-1] - offsets[:-1], kept)
    batch.hits = Hits(hits.table[first + np.arange(offsets[-1])], offsets, hits.ops)
    return seconds


def contigs_of(index: ReferenceIndex) -> ContigColumns:
    """Return the contigs without their names, as kernels take them."""
    return ContigColumns(index.bases, index.offsets, np.empty(0, np.uint8), np.empty(0, np.int64))


def no_alignments(n_reads: int) -> tuple[NDArray, ...]:
    """Make what `align_hits` takes if no alignments have been made elsewhere."""
    nothing = np.empty((0, 7), np.int64)
    return nothing, nothing, np.empty(0, np.uint32), np.zeros(n_reads + 1, np.int64)
