"""The jitted loop from scored anchors of reads to their ranked hits; see `f5py.mapping.hits.hits`."""

from __future__ import annotations

import numpy as np

from f5py.jit.atomics import next_turn
from f5py.jit.kernel import shared_kernel
from f5py.mapping._sorting_numba import SORT_SCRATCH, grown, sort_pairs
from f5py.mapping.align._base_alignment_numba import align_hits
from f5py.mapping.align._pair_alignment_numba import Made, new_room
from f5py.mapping.chain._chaining_numba import AnchorArrays, ChainScores
from f5py.mapping.chain._chains_numba import Chains, cut_chains, is_worth_joining, score_long_joins
from f5py.mapping.hits._hits_numba import (
    chains_to_hits,
    drop_retained,
    name_hash,
    select_secondaries,
    set_divergence,
    set_parents,
)
from f5py.mapping.hits._mapping_quality_numba import judge_hits, rank_hits
from f5py.mapping.hits.hit_fields import COUNT, FIRST, N_FIELDS, OPS, READ
from f5py.mapping.settings import AVA, BW, BW_LONG, RESCUE_BASES, RESCUE_RATIO, Parameters


@shared_kernel
def chains_of_read(anchors, begin, n, read_length, parameters, scores, out, scratch):
    """Cut the chains of a read, joined over long gaps if that is worth it; see `cut_chains`."""
    integers, floats, gap_penalty = parameters
    out_x, out_y, chains = out
    n_chains, m = cut_chains(anchors, begin, n, integers, integers[BW], scores, out, scratch)
    if not integers[AVA] and is_worth_joining(
        out_y, chains, n_chains, read_length, integers, RESCUE_BASES, RESCUE_RATIO
    ):
        joined_x = np.empty(m, np.uint64)
        joined_y = np.empty(m, np.int64)
        for i in range(m):
            joined_x[i] = out_x[i]
            joined_y[i] = out_y[i]
        sort_pairs(joined_x, joined_y, 0, m, scratch)
        joined_f = np.empty(m, np.int32)
        joined_p = np.empty(m, np.int32)
        score_long_joins(
            AnchorArrays(joined_x, joined_y), m, integers, floats, gap_penalty, ChainScores(joined_f, joined_p), scratch
        )
        n_chains, m = cut_chains(
            AnchorArrays(joined_x, joined_y), 0, m, integers, integers[BW_LONG], ChainScores(joined_f, joined_p), out,
            scratch,
        )  # fmt: skip
    return n_chains, m


@shared_kernel
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


@shared_kernel
def strands_of(bases, begin, length):
    """Codes of a read, then of its reverse complement."""
    strands = np.empty(2 * length, np.uint8)
    for j in range(length):
        base = bases[begin + j]
        strands[j] = base
        strands[2 * length - 1 - j] = 3 - base if base < 4 else 4
    return strands


@shared_kernel
def hits_of_read(
    read,
    length,
    names,
    name_offsets,
    x,
    y,
    anchor_offsets,
    f,
    p,
    seeds,
    seed_offsets,
    contig_lengths,
    integers,
    floats,
    gap_penalty,
    scratch,
):
    """Find the hits of a read as far as chains tell; see `hit_reads`.

    Returns
    -------
    hits : int64
    n_hits : int
    x, y : uint64, int64
        The anchors of these hits.
    """
    n = anchor_offsets[read + 1] - anchor_offsets[read]
    read_x = np.empty(n, np.uint64)
    read_y = np.empty(n, np.int64)
    chains = np.empty(n, np.int64)
    n_chains = 0
    if n > 0:
        n_chains, n = chains_of_read(
            AnchorArrays(x, y), anchor_offsets[read], n, length, Parameters(integers, floats, gap_penalty),
            ChainScores(f, p), Chains(read_x, read_y, chains), scratch,
        )  # fmt: skip
    hits = np.empty((n_chains + 2, N_FIELDS), np.int64)
    if n_chains == 0:
        return hits, 0, read_x, read_y
    h = name_hash(names, name_offsets[read], name_offsets[read + 1], length)
    chains_to_hits(read_x, read_y, chains, n_chains, length, h, hits, scratch)
    m = n_chains
    if not integers[AVA]:
        set_parents(hits, m, integers, floats)
        m = select_secondaries(hits, m, integers, floats, True)
    set_divergence(hits, m, read_x, read_y, seeds[seed_offsets[read] : seed_offsets[read + 1]], length, contig_lengths)
    m = drop_retained(hits, m)
    n = close_gaps(hits, m, read_x, read_y, n)
    return hits, m, read_x[:n], read_y[:n]


@shared_kernel
def hit_reads(
    turn,
    reads,
    bases,
    offsets,
    names,
    name_offsets,
    x,
    y,
    anchor_offsets,
    f,
    p,
    seeds,
    seed_offsets,
    rep_len,
    reference,
    contig_offsets,
    contig_lengths,
    integers,
    floats,
    gap_penalty,
    with_alignment,
    made_keys,
    made_results,
    made_ops,
    made_offsets,
    n_hits,
    n_ops,
):
    """Find the hits of reads.

    Parameters
    ----------
    turn, reads
        See `f5py.threads.pool`.
    bases, offsets : uint8, int64
        Codes of all reads.
    names, name_offsets : uint8, int64
    x, y, anchor_offsets, f, p
        Scored anchors of all reads.
    seeds, seed_offsets, rep_len
        See `f5py.mapping.index._seeds_numba.seed_reads`.
    reference, contig_offsets, contig_lengths : uint8, int64, int64
    integers, floats, gap_penalty
        `f5py.mapping.settings.Parameters`.
    with_alignment : bool
    made_keys, made_results, made_ops, made_offsets
        See `f5py.mapping.align._pair_alignment_numba.Made`; offsets by reads.
    n_hits, n_ops : int64, shape (n_reads,)
        Filled.

    Returns
    -------
    done : int64
        The reads in the order in which this thread took them.
    hits : int64, shape (n, N_FIELDS)
    ops : int64
        Their CIGAR operations, length << 4 | operation; `OPS` counts from the first one of the read.
    """
    done = np.empty(16, np.int64)
    n_done = 0
    all_hits = np.empty((64, N_FIELDS), np.int64)
    n_all = 0
    all_ops = np.empty(1 << 12, np.int64)
    n_all_ops = 0
    scratch = np.empty(SORT_SCRATCH, np.int64)
    made = Made(made_keys, made_results, made_ops, made_offsets, np.zeros(2, np.int64))
    ops = np.empty(1 << 12, np.int64)
    room = new_room()
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        read = reads[i]
        done = grown(done, n_done + 1)
        done[n_done] = read
        n_done += 1
        n_hits[read] = 0
        n_ops[read] = 0
        begin = offsets[read]
        length = offsets[read + 1] - begin
        hits, m, read_x, read_y = hits_of_read(
            read,
            length,
            names,
            name_offsets,
            x,
            y,
            anchor_offsets,
            f,
            p,
            seeds,
            seed_offsets,
            contig_lengths,
            integers,
            floats,
            gap_penalty,
            scratch,
        )
        if m == 0:
            continue
        n_read_ops = 0
        if with_alignment:
            made.cursor[0] = made.offsets[read]
            made.cursor[1] = made.offsets[read + 1]
            hits, m, ops, n_read_ops = align_hits(
                hits,
                m,
                read_x,
                read_y,
                reference,
                contig_offsets,
                strands_of(bases, begin, length),
                length,
                integers,
                ops,
                made,
                room,
            )
            m = rank_hits(hits, m, ops, length, integers, floats, scratch)
        judge_hits(hits, m, rep_len[read], integers, scratch)
        n_hits[read] = m
        n_ops[read] = n_read_ops
        if all_hits.shape[0] < n_all + m:
            larger = np.empty((2 * (n_all + m), N_FIELDS), np.int64)
            for j in range(n_all):
                for field in range(N_FIELDS):
                    larger[j, field] = all_hits[j, field]
            all_hits = larger
        for j in range(m):
            hits[j, READ] = read
            for field in range(N_FIELDS):
                all_hits[n_all, field] = hits[j, field]
            n_all += 1
        all_ops = grown(all_ops, n_all_ops + n_read_ops)
        for j in range(n_read_ops):
            all_ops[n_all_ops + j] = ops[j]
        n_all_ops += n_read_ops
    return done[:n_done], all_hits[:n_all], all_ops[:n_all_ops]


@shared_kernel
def gather_hits(done, n_hits, offsets, op_offsets, source, target):
    """Copy the hits that one thread has found to their places in the order of the reads."""
    at = 0
    for i in range(done.shape[0]):
        read = done[i]
        for j in range(n_hits[read]):
            for field in range(N_FIELDS):
                target[offsets[read] + j, field] = source[at, field]
            target[offsets[read] + j, OPS] += op_offsets[read]
            at += 1
