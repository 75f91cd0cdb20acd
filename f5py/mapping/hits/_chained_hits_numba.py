"""The jitted loop from scored anchors of reads to their hits, as far as chains tell; see `f5py.mapping.hits.hits`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import SORT_SCRATCH, appended, extended
from f5py.mapping.chain._chaining_numba import AnchorArrays, ChainScores
from f5py.mapping.chain._chains_numba import Chains, cut_chains, score_long_joins
from f5py.mapping.chain._joins_numba import AS_CUT, JOINED, copy_chains, first_chains
from f5py.mapping.hit_table import COUNT, FIRST, N_FIELDS
from f5py.mapping.hits._hits_numba import (
    chains_to_hits,
    drop_retained,
    name_hash,
    select_secondaries,
    set_divergence,
    set_parents,
)
from f5py.mapping.settings import AVA, BW_LONG


class ChainedCounts(NamedTuple):
    """Numbers of what `chain_reads` has found of each read."""

    hits: NDArray[np.int64]  # shape (n_reads,)
    anchors: NDArray[np.int64]  # shape (n_reads,)


@exact_inner
def chains_of_read(read, anchors, read_length, parameters, cut, out, scratch):
    """Cut the chains of a read, joined over long gaps if that is worth it; see `cut_chains`.

    `cut` has the first chains, or no element: then they are cut here.
    """
    integers, floats, gap_penalty = parameters
    begin = anchors.offsets[read]
    if cut.states.shape[0] > 0:
        m = cut.n_anchors[read]
        if cut.states[read] == AS_CUT:
            copy_chains(cut, read, out)
            return cut.n_chains[read], m
        joined = AnchorArrays(cut.x[begin : begin + m], cut.y[begin : begin + m])
    else:
        n_chains, m, is_worth = first_chains(read, anchors, read_length, parameters, out, scratch)
        if not is_worth:
            return n_chains, m
        joined = AnchorArrays(out.x[:m].copy(), out.y[:m].copy())
    if cut.states.shape[0] > 0 and cut.states[read] == JOINED:
        of_joins = ChainScores(cut.f[begin : begin + m], cut.p[begin : begin + m])
    else:
        of_joins = ChainScores(np.empty(m, np.int32), np.empty(m, np.int32))
        score_long_joins(joined, m, integers, floats, gap_penalty, of_joins, scratch)
    return cut_chains(joined, 0, m, integers, integers[BW_LONG], of_joins, out, scratch)


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
def _hits_of_read(read, columns, anchors, contig_lengths, parameters, cut, scratch):
    """Find the hits of a read as far as chains tell.

    Returns
    -------
    hits : int64
    n_hits : int
    x, y : uint64, int64
        The anchors of these hits.
    """
    integers, floats, _ = parameters
    n = anchors.offsets[read + 1] - anchors.offsets[read]
    length = columns.offsets[read + 1] - columns.offsets[read]
    x = np.empty(n, np.uint64)
    y = np.empty(n, np.int64)
    chains = np.empty(n, np.int64)
    n_chains = 0
    if n > 0:
        n_chains, n = chains_of_read(read, anchors, length, parameters, cut, Chains(x, y, chains), scratch)
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
def chain_reads(queue, reads, columns, anchors, contig_lengths, parameters, cut, counts):
    """Find the hits of reads as far as chains tell.

    Parameters
    ----------
    columns : f5py.mapping.batch.ReadColumns
    anchors : f5py.mapping.batch.Anchors
        Scored.
    contig_lengths : int64
    parameters : f5py.mapping.settings.Parameters
    cut : f5py.mapping.chain._joins_numba.CutChains
        The first chains of all reads, or no element.
    counts : ChainedCounts
        Filled.

    Returns
    -------
    done : int64
        The reads in the order in which this thread took them.
    hits : int64, shape (n * N_FIELDS,)
    x, y : uint64, int64
        Their anchors.
    """
    done = np.empty(16, np.int64)
    n_done = 0
    all_hits = np.empty(64 * N_FIELDS, np.int64)
    n_all = 0
    all_x = np.empty(1 << 12, np.uint64)
    all_y = np.empty(1 << 12, np.int64)
    n_anchors = 0
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        done, n_done = appended(done, n_done, read)
        hits, m, x, y = _hits_of_read(read, columns, anchors, contig_lengths, parameters, cut, scratch)
        counts.hits[read] = m
        counts.anchors[read] = x.shape[0]
        for j in range(m):
            all_hits, n_all = extended(all_hits, n_all, hits[j])
        all_x, _ = extended(all_x, n_anchors, x)
        all_y, n_anchors = extended(all_y, n_anchors, y)
    return done[:n_done], all_hits[:n_all], all_x[:n_anchors], all_y[:n_anchors]
