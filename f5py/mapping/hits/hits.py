"""Hits: the chains of a read, which of them are secondary to which, aligned and ranked.

A hit is primary if no better one covers most of its part of the read. The rules are minimap2's, and so is the order of
equal hits, which a hash of the read's name decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.mapping_batch import ChainedHits, ContigColumns, Hits, MappingBatch
from f5py.core.offsets import offsets_of
from f5py.mapping.hits.hit_fields import N_FIELDS
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import collecting
from f5py.mapping.settings import Parameters
from f5py.threads.pool import WorkerPool, longest_first


def chain_hits(batch: MappingBatch, index: ReferenceIndex, parameters: Parameters, pool: WorkerPool) -> float:
    """Fill ``batch.chained`` from the scored anchors, of which only `rep_len` is kept.

    Returns
    -------
    float
        Seconds that all threads together have worked.
    """
    from f5py.mapping.hits._chained_hits_numba import ChainedCounts, chain_reads
    from f5py.mapping.hits._hit_reads_numba import gather_hits
    from f5py.mapping.index._seeds_numba import gather

    anchors = batch.anchors
    assert anchors is not None
    n = len(batch)
    counts = ChainedCounts(np.zeros(n, np.int64), np.zeros(n, np.int64))
    results: list[Any] = []
    seconds = pool.run(
        collecting(chain_reads, results), longest_first(batch.lengths, np.ones(n, np.bool_)), batch.columns, anchors,
        np.diff(index.offsets), parameters, counts, order=batch.number,
    )  # fmt: skip
    batch.anchors = anchors.without_places()
    offsets, anchor_offsets = offsets_of(counts.hits), offsets_of(counts.anchors)
    table = np.empty((offsets[-1], N_FIELDS), np.int64)
    x, y = np.empty(anchor_offsets[-1], np.uint64), np.empty(anchor_offsets[-1], np.int64)
    for done, found, found_x, found_y in results:
        gather_hits(done, counts.hits, offsets, np.empty(0, np.int64), found, table)
        gather(done, counts.anchors, anchor_offsets, found_x.view(np.int64), x.view(np.int64))
        gather(done, counts.anchors, anchor_offsets, found_y, y)
    batch.chained = ChainedHits(table, offsets, x, y, anchor_offsets)
    return seconds


def find_hits(
    batch: MappingBatch,
    index: ReferenceIndex,
    parameters: Parameters,
    pool: WorkerPool,
    with_alignment: bool = True,
    made: tuple[NDArray, ...] | None = None,
) -> float:
    """Fill ``batch.hits`` from the scored anchors, or from the chained hits if these are there, which are used up.

    Parameters
    ----------
    batch : MappingBatch
    index : ReferenceIndex
    parameters : Parameters
    pool : WorkerPool
    with_alignment : bool
        Align base by base; else the hits are chains.
    made : tuple of arrays, optional
        Alignments that have been made elsewhere: keys, results, operations and offsets of
        `f5py.mapping.align._pair_alignment_numba.Made`.

    Returns
    -------
    float
        Seconds that all threads together have worked.
    """
    from f5py.mapping.align._pair_alignment_numba import Made
    from f5py.mapping.hits._hit_reads_numba import HitCounts, gather_hits, hit_reads
    from f5py.mapping.index._seeds_numba import gather

    seconds = chain_hits(batch, index, parameters, pool) if batch.chained is None else 0.0
    anchors, chained = batch.anchors, batch.chained
    assert anchors is not None
    assert chained is not None
    n = len(batch)
    counts = HitCounts(np.zeros(n, np.int64), np.zeros(n, np.int64))
    keys, made_results, made_ops, made_offsets = made or no_alignments(n)
    there = Made(
        keys, made_results, made_ops, made_offsets if with_alignment else made_offsets[:0], np.zeros(2, np.int64)
    )
    results: list[Any] = []
    seconds += pool.run(
        collecting(hit_reads, results), longest_first(batch.lengths, np.ones(n, np.bool_)), batch.columns, chained,
        anchors.rep_len, contigs_of(index), parameters, there, counts, order=batch.number,
    )  # fmt: skip
    batch.chained = None
    offsets, op_offsets = offsets_of(counts.hits), offsets_of(counts.ops)
    table = np.empty((offsets[-1], N_FIELDS), np.int64)
    ops = np.empty(op_offsets[-1], np.int64)
    for done, found, found_ops in results:
        gather_hits(done, counts.hits, offsets, op_offsets, found, table)
        gather(done, counts.ops, op_offsets, found_ops, ops)
    batch.hits = Hits(table, offsets, ops)
    return seconds


def contigs_of(index: ReferenceIndex) -> ContigColumns:
    """Return the contigs without their names, as kernels take them."""
    return ContigColumns(index.bases, index.offsets, np.empty(0, np.uint8), np.empty(0, np.int64))


def no_alignments(n_reads: int) -> tuple[NDArray, ...]:
    """Make what `find_hits` takes if no alignments have been made elsewhere."""
    nothing = np.empty((0, 7), np.int64)
    return nothing, nothing, np.empty(0, np.uint32), np.zeros(n_reads + 1, np.int64)
