"""Hits: the chains of a read, which of them are secondary to which, aligned and ranked.

A hit is primary if no better one covers most of its part of the read. The rules are minimap2's, and so is the order of
equal hits, which a hash of the read's name decides.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import SORT_SCRATCH, appended, extended, sort_pairs
from f5py.mapping.align._pair_alignment_numba import KnownAlignments, new_room
from f5py.mapping.align._stretches_numba import AnchoredRead
from f5py.mapping.align.base_alignment import Aligner, align_hits_of_read
from f5py.mapping.batch import ChainedHits, ContigColumns, Hits, MappingBatch
from f5py.mapping.chain._chains_numba import Chains, cut_chains, is_worth_joining, score_long_joins
from f5py.mapping.hit_table import COUNT, FIRST, N_FIELDS, OPS
from f5py.mapping.hits._hits_numba import (
    chains_to_hits,
    drop_retained,
    name_hash,
    select_secondaries,
    set_divergence,
    set_parents,
)
from f5py.mapping.hits._mapping_quality_numba import rank_reads
from f5py.mapping.index.packed_bases import both_strands
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import collecting, copy_to_places
from f5py.mapping.settings import AVA, BW, BW_LONG, SPLICED, Parameters
from f5py.threads.pool import WorkerPool, longest_first, threads_for

#: So many hits are ranked before workers would have come.
_FEW_HITS = 1 << 14
_ANY_DROP = (1 << 31) - 1


@exact_inner
def chains_of_read(read, anchors, read_length, parameters, out, scratch):
    """Cut the chains of a read, joined over long gaps if that is worth it; see `cut_chains`."""
    integers, floats, gap_penalty = parameters
    begin = anchors.offsets[read]
    n_chains, m = cut_chains(
        (anchors.x, anchors.y), begin, anchors.offsets[read + 1] - begin, integers,
        _ANY_DROP if integers[SPLICED] else integers[BW], (anchors.f, anchors.p), out, scratch,
    )  # fmt: skip
    is_single = integers[AVA] or integers[SPLICED]
    if is_single or not is_worth_joining(out.y, out.sums, n_chains, read_length, integers):
        return n_chains, m
    sort_pairs(out.x, out.y, 0, m, scratch)
    joined = out.x[:m].copy(), out.y[:m].copy()
    scores = np.empty(m, np.int32), np.empty(m, np.int32)
    score_long_joins(joined, m, integers, floats, gap_penalty, scores, scratch)
    return cut_chains(joined, 0, m, integers, integers[BW_LONG], scores, out, scratch)


@exact_inner
def close_gaps(hits, n_hits, x, y, n):
    """Move the anchors of hits together, in their order; return how many there are."""
    is_kept = np.zeros(n + 1, np.int64)
    for h in range(n_hits):
        for i in range(hits[h, FIRST], hits[h, FIRST] + hits[h, COUNT]):
            is_kept[i] = 1
    kept = 0
    for i in range(n):
        stays = is_kept[i]
        is_kept[i] = kept
        if stays:
            x[kept] = x[i]
            y[kept] = y[i]
            kept += 1
    for h in range(n_hits):
        hits[h, FIRST] = is_kept[hits[h, FIRST]]
    return kept


@exact_inner
def _hits_of_read(read, columns, anchors, contig_lengths, parameters, scratch):
    """Turn the chains of a read into hits; return them, their number, and their anchors, x and y."""
    integers, floats, _ = parameters
    n = anchors.offsets[read + 1] - anchors.offsets[read]
    length = columns.offsets[read + 1] - columns.offsets[read]
    x = np.empty(n, np.uint64)
    y = np.empty(n, np.int64)
    chains = np.empty(n, np.int64)
    n_chains = 0
    if n > 0:
        n_chains, n = chains_of_read(read, anchors, length, parameters, Chains(x, y, chains), scratch)
    hits = np.empty((n_chains, N_FIELDS), np.int64)
    if n_chains == 0:
        return hits, 0, x[:0], y[:0]
    h = name_hash(columns.names, columns.name_offsets[read], columns.name_offsets[read + 1], length)
    chains_to_hits(x, y, chains, n_chains, length, h, hits, scratch)
    m = n_chains
    if not integers[AVA]:
        set_parents(hits, m, integers, floats)
        m = select_secondaries(hits, m, integers, floats, True)
    seeds = anchors.seeds[anchors.seed_offsets[read] : anchors.seed_offsets[read + 1]]
    set_divergence(hits, m, x, y, seeds, length, contig_lengths)
    m = drop_retained(hits, m)
    n = close_gaps(hits, m, x, y, n)
    return hits, m, x[:n], y[:n]


@exact_kernel
def chain_reads(queue, reads, columns, anchors, contig_lengths, parameters, n_hits, n_anchors):
    """Find the hits of reads as far as chains tell.

    Return the reads in the order of this thread, their hits, int64, shape (n * N_FIELDS,), and the hits' anchors, x and
    y.

    Parameters
    ----------
    anchors : f5py.mapping.batch.Anchors
        Scored.
    n_hits, n_anchors : int64, shape (n_reads,)
        Filled.
    """
    done = np.empty(16, np.int64)
    n_done = 0
    all_hits = np.empty(64 * N_FIELDS, np.int64)
    n_all = 0
    all_x = np.empty(1 << 12, np.uint64)
    all_y = np.empty(1 << 12, np.int64)
    n_all_anchors = 0
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        done, n_done = appended(done, n_done, read)
        hits, m, x, y = _hits_of_read(read, columns, anchors, contig_lengths, parameters, scratch)
        n_hits[read] = m
        n_anchors[read] = x.shape[0]
        for j in range(m):
            all_hits, n_all = extended(all_hits, n_all, hits[j])
        all_x, _ = extended(all_x, n_all_anchors, x)
        all_y, n_all_anchors = extended(all_y, n_all_anchors, y)
    return done[:n_done], all_hits[:n_all], all_x[:n_all_anchors], all_y[:n_all_anchors]


#: Cells of a matrix over a long intron; pages of this room that are never needed are never used.
_INTRON_CELLS = 1 << 26


@exact_kernel
def align_reads(queue, reads, columns, chained, contigs, integers, made, junctions, n_hits, n_ops):
    """Align the hits of reads base by base.

    Return the reads in the order of this thread, their hits, int64, shape (n * N_FIELDS,), and CIGAR operations, length
    << 4 | operation; `OPS` counts from the first one of the read.

    Parameters
    ----------
    chained : f5py.mapping.batch.ChainedHits
        Anchors get flags.
    made : f5py.mapping.align._pair_alignment_numba.KnownAlignments
        Each thread has a cursor of its own.
    junctions : int64, shape (n, 3), optional
        Of spliced reads: annotated introns, see `f5py.mapping.align._spliced_alignment_numba.add_junctions`.
    n_hits, n_ops : int64, shape (n_reads,)
        Filled.
    """
    done = np.empty(16, np.int64)
    n_done = 0
    all_hits = np.empty(64 * N_FIELDS, np.int64)
    n_all = 0
    all_ops = np.empty(1 << 12, np.int64)
    n_all_ops = 0
    made = KnownAlignments(made.keys, made.results, made.ops, made.offsets, np.zeros(2, np.int64))
    aligner = Aligner(integers, made, new_room())
    introns = None if junctions is None else (junctions, np.empty(_INTRON_CELLS, np.uint8))
    ops = np.empty(1 << 12, np.int64)
    strands = np.empty(0, np.uint8)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        done, n_done = appended(done, n_done, read)
        first = chained.offsets[read]
        m = chained.offsets[read + 1] - first
        n_ops[read] = 0
        if m > 0:
            hits = np.empty((m + 2, N_FIELDS), np.int64)
            for j in range(m):
                for field in range(N_FIELDS):
                    hits[j, field] = chained.table[first + j, field]
            begin = columns.offsets[read]
            length = columns.offsets[read + 1] - begin
            strands = both_strands(columns.codes[begin : begin + length], strands)
            x = chained.x[chained.anchor_offsets[read] : chained.anchor_offsets[read + 1]]
            y = chained.y[chained.anchor_offsets[read] : chained.anchor_offsets[read + 1]]
            made.cursor[0] = made.offsets[read]
            made.cursor[1] = made.offsets[read + 1]
            anchored = AnchoredRead(x, y, strands, length)
            hits, m, ops, n = align_hits_of_read(hits, m, anchored, contigs, aligner, introns, ops)
            for j in range(m):
                all_hits, n_all = extended(all_hits, n_all, hits[j])
            all_ops, n_all_ops = extended(all_ops, n_all_ops, ops[:n])
            n_ops[read] = n
        n_hits[read] = m
    return done[:n_done], all_hits[:n_all], all_ops[:n_all_ops]


def chain_hits(batch: MappingBatch, index: ReferenceIndex, parameters: Parameters, pool: WorkerPool) -> float:
    """Fill ``batch.chained`` from the scored anchors, of which only `rep_len` is kept.

    Return the seconds that all threads together have worked.
    """
    anchors = batch.anchors
    assert anchors is not None
    n = len(batch)
    n_hits, n_anchors = np.zeros((2, n), np.int64)
    results: list[Any] = []
    seconds = pool.run(
        collecting(chain_reads, results), longest_first(batch.lengths, np.ones(n, np.bool_)), batch.columns, anchors,
        np.diff(index.offsets), parameters, n_hits, n_anchors, order=batch.number,
    )  # fmt: skip
    batch.anchors = anchors.without_places()
    offsets, anchor_offsets = offsets_of(n_hits), offsets_of(n_anchors)
    table = np.empty((offsets[-1], N_FIELDS), np.int64)
    x, y = np.empty(anchor_offsets[-1], np.uint64), np.empty(anchor_offsets[-1], np.int64)
    for done, found, found_x, found_y in results:
        copy_to_places(done, N_FIELDS * n_hits, N_FIELDS * offsets, found, table.reshape(-1))
        copy_to_places(done, n_anchors, anchor_offsets, found_x, x)
        copy_to_places(done, n_anchors, anchor_offsets, found_y, y)
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
        `f5py.mapping.align._pair_alignment_numba.KnownAlignments`.
    junctions : int64, shape (n, 3), optional
        Annotated introns, see `f5py.mapping.align.junctions`.
    """
    if junctions is None and parameters.integers[SPLICED]:
        junctions = np.empty((0, 3), np.int64)
    chained = batch.chained
    assert chained is not None
    n = len(batch)
    n_hits, n_ops = np.zeros((2, n), np.int64)
    keys, made_results, made_ops, made_offsets = made or no_alignments(n)
    there = KnownAlignments(keys, made_results, made_ops, made_offsets, np.zeros(2, np.int64))
    results: list[Any] = []
    seconds = pool.run(
        collecting(align_reads, results), longest_first(batch.lengths, np.ones(n, np.bool_)), batch.columns, chained,
        contigs_of(index), parameters.integers, there, junctions, n_hits, n_ops, order=batch.number,
    )  # fmt: skip
    batch.chained = None
    offsets, op_offsets = offsets_of(n_hits), offsets_of(n_ops)
    table = np.empty((offsets[-1], N_FIELDS), np.int64)
    ops = np.empty(op_offsets[-1], np.int64)
    for done, found, found_ops in results:
        copy_to_places(done, N_FIELDS * n_hits, N_FIELDS * offsets, found, table.reshape(-1))
        copy_to_places(done, n_ops, op_offsets, found_ops, ops)
    table[:, OPS] += np.repeat(op_offsets[:-1], n_hits)
    batch.hits = Hits(table, offsets, ops)
    return seconds


def rank_hits(batch: MappingBatch, parameters: Parameters, pool: WorkerPool) -> float:
    """Rank ``batch.hits``, drop the surplus ones, and set the mapping qualities of the others.

    Without them the chained hits are ranked and used up.

    Return the seconds that all threads together have worked.
    """
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
    """Make an empty set of earlier alignments for `align_hits`."""
    nothing = np.empty((0, 7), np.int64)
    return nothing, nothing, np.empty(0, np.uint32), np.zeros(n_reads + 1, np.int64)
