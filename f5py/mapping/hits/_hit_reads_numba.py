"""The jitted loop that aligns the hits of reads base by base; see `f5py.mapping.hits.hits`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import appended, extended
from f5py.mapping.align._base_alignment_numba import Aligner, align_hits
from f5py.mapping.align._pair_alignment_numba import Made, new_room
from f5py.mapping.align._stretches_numba import AnchoredRead
from f5py.mapping.hit_table import N_FIELDS, OPS
from f5py.mapping.settings import SPLICED

#: Cells of a matrix over a long intron; pages of this room that are never needed are never used.
_INTRON_CELLS = 1 << 26


class HitCounts(NamedTuple):
    """Numbers of what `align_reads` has found of each read."""

    # hits, ops: shape (n_reads,): operations are those of all hits
    hits: NDArray[np.int64]
    ops: NDArray[np.int64]


@exact_inner
def strands_of(bases, begin, length):
    """Codes of a read, then of its reverse complement."""
    strands = np.empty(2 * length, np.uint8)
    source = bases[begin : begin + length]
    forward = strands[:length]
    for j in range(length):
        forward[j] = source[j]
    backward = strands[length:]
    # unsigned: such an index cannot count from the end, so that the loop becomes one of vectors
    last = np.uint64(length - 1)
    for i in range(np.uint64(length)):
        base = source[last - i]
        backward[i] = np.uint8(3) - base if base < 4 else np.uint8(4)
    return strands


@exact_kernel
def align_reads(queue, reads, columns, chained, contigs, integers, made, junctions, counts):
    """Align the hits of reads base by base.

    Parameters
    ----------
    columns : f5py.mapping.batch.ReadColumns
    chained : f5py.mapping.batch.ChainedHits
        Anchors get flags.
    contigs : f5py.mapping.batch.ContigColumns
    integers : int64
        Of `f5py.mapping.settings.Parameters`.
    made : f5py.mapping.align._pair_alignment_numba.Made
        Each thread has a cursor of its own.
    junctions : int64, shape (n, 3)
        Annotated introns, see `f5py.mapping.align._spliced_alignment_numba.add_junctions`.
    counts : HitCounts
        Filled.

    Returns
    -------
    done : int64
        The reads in the order in which this thread took them.
    hits : int64, shape (n * N_FIELDS,)
    ops : int64
        Their CIGAR operations, length << 4 | operation; `OPS` counts from the first one of the read.
    """
    done = np.empty(16, np.int64)
    n_done = 0
    all_hits = np.empty(64 * N_FIELDS, np.int64)
    n_all = 0
    all_ops = np.empty(1 << 12, np.int64)
    n_all_ops = 0
    made = Made(made.keys, made.results, made.ops, made.offsets, np.zeros(2, np.int64))
    aligner = Aligner(
        integers, made, junctions, new_room(), np.empty(_INTRON_CELLS if integers[SPLICED] else 0, np.uint8)
    )
    ops = np.empty(1 << 12, np.int64)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        done, n_done = appended(done, n_done, read)
        first = chained.offsets[read]
        m = chained.offsets[read + 1] - first
        n_ops = 0
        if m > 0:
            hits = np.empty((m + 2, N_FIELDS), np.int64)
            for j in range(m):
                for field in range(N_FIELDS):
                    hits[j, field] = chained.table[first + j, field]
            begin = columns.offsets[read]
            length = columns.offsets[read + 1] - begin
            x = chained.x[chained.anchor_offsets[read] : chained.anchor_offsets[read + 1]]
            y = chained.y[chained.anchor_offsets[read] : chained.anchor_offsets[read + 1]]
            made.cursor[0] = made.offsets[read]
            made.cursor[1] = made.offsets[read + 1]
            anchored = AnchoredRead(x, y, strands_of(columns.codes, begin, length), length)
            hits, m, ops, n_ops = align_hits(hits, m, anchored, contigs, aligner, ops)
            for j in range(m):
                all_hits, n_all = extended(all_hits, n_all, hits[j])
            all_ops, n_all_ops = extended(all_ops, n_all_ops, ops[:n_ops])
        counts.hits[read] = m
        counts.ops[read] = n_ops
    return done[:n_done], all_hits[:n_all], all_ops[:n_all_ops]


@exact_kernel
def gather_hits(done, n_hits, offsets, op_offsets, source, target):
    """Copy the hits that one thread has found to their places in the order of the reads.

    Parameters
    ----------
    done : int64
        The reads in the order in which the thread took them.
    n_hits : int64, shape (n_reads,)
    offsets : int64, shape (n_reads + 1,)
        Of the reads' hits.
    op_offsets : int64, shape (n_reads + 1,) or (0,)
        Where the operations of each read begin; without any they stay as they are.
    source : int64, shape (n * N_FIELDS,)
        The hits of `done`.
    target : int64, shape (offsets[-1], N_FIELDS)
        Filled for `done`.
    """
    at = 0
    for i in range(done.shape[0]):
        read = done[i]
        for j in range(n_hits[read]):
            for field in range(N_FIELDS):
                target[offsets[read] + j, field] = source[at + field]
            if op_offsets.shape[0] > 0:
                target[offsets[read] + j, OPS] += op_offsets[read]
            at += N_FIELDS
