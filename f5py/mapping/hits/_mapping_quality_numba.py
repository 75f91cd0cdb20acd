r"""Jitted loops that rank the hits of a read and judge them.

With f1 and f2 the scores of the best and the second best chain and m the number of anchors, minimap2's quality is

.. math:: 40\,(1 - f_2 / f_1)\,\min(1, m / 10)\,\ln f_1

(Li, Bioinformatics 34:3094, 2018), since version 2.20 with the scores of the alignments and their identity as well, and
lowered by the share of frequent minimizers and by the number of rivals. Where two hits of a whole read are nearly as
good, mismatches and gaps are first weighed by the divergence of the read. All of that is single precision, from left to
right.
"""

# mypy: disable-error-code="assignment,arg-type"
import math

import numpy as np

import f5py.mapping.hit_table as column
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import SORT_SCRATCH, sort_pairs
from f5py.mapping.align._cigar_numba import log2_of
from f5py.mapping.align.base_alignment import drop_poor
from f5py.mapping.hits._hits_numba import select_secondaries, set_parents
from f5py.mapping.settings import MATCH, MIN_SC, MISMATCH, RANK_FRACTION, RANK_MIN_LENGTH

_FRACTION = np.float64(np.float32(RANK_FRACTION))


@exact_inner
def _rescore(hits, n, ops, read_length, integers):
    """Score again with mismatches and gaps weighed by the divergence if two hits are nearly as good."""
    largest = -1
    second = -1
    at = -1
    for i in range(n):
        if not hits[i, column.ALIGNED]:
            continue
        score = hits[i, column.DP_MAX]
        if score > largest:
            second = largest
            largest = score
            at = i
        elif score > second:
            second = score
    if at < 0 or second < 0:
        return
    best = hits[at]
    if best[column.QE] - best[column.QS] < read_length * _FRACTION or second < largest * _FRACTION:
        return
    columns = best[column.BLEN] + best[column.N_AMBI] - best[column.N_GAP] + best[column.N_GAPOPEN]
    divergence = max(0.02, 1.0 - best[column.MLEN] / columns)
    match = np.float64(integers[MATCH])
    weight = 0.5 / divergence
    if weight * match < integers[MISMATCH]:
        weight = match / integers[MISMATCH]
    for i in range(n):
        hit = hits[i]
        if not hit[column.ALIGNED]:
            continue
        gaps = 0.0
        for k in range(hit[column.OPS], hit[column.OPS] + hit[column.N_OPS]):
            if 0 < ops[k] & 15 < 3:
                gaps += weight + np.float64(log2_of(1 + (ops[k] >> 4)))
        mismatches = hit[column.BLEN] + hit[column.N_AMBI] - hit[column.MLEN] - hit[column.N_GAP]
        score = match * (hit[column.MLEN] - weight * mismatches - gaps)
        hit[column.DP_MAX] = max(0, np.int64(score + 0.499))


@exact_inner
def _sort_hits(hits, n, scratch):
    """Sort by score, then hash; best first."""
    key = np.empty(n, np.uint64)
    place = np.empty(n, np.int64)
    copy = np.empty((n, column.N_FIELDS), np.int64)
    for i in range(n):
        score = hits[i, column.DP_MAX] if hits[i, column.ALIGNED] else hits[i, column.SCORE]
        key[i] = np.uint64((score << 32) | hits[i, column.HASH])
        place[i] = i
        for field in range(column.N_FIELDS):
            copy[i, field] = hits[i, field]
    sort_pairs(key, place, 0, n, scratch)
    for i in range(n):
        for field in range(column.N_FIELDS):
            hits[i, field] = copy[place[n - 1 - i], field]


@exact_inner
def _set_quality(hits, n, rep_len, integers):
    """Set the mapping quality of all hits but inversions."""
    one = np.float32(1)
    forty = np.float32(40)
    match = np.float32(integers[MATCH])
    total = 0
    for i in range(n):
        if hits[i, column.PARENT] == hits[i, column.ID]:
            total += hits[i, column.SCORE]
    unique = np.float32(total) / np.float32(total + rep_len)
    for i in range(n):
        hit = hits[i]
        hit[column.MAPQ] = 0
        if hit[column.INVERSION] or hit[column.PARENT] != hit[column.ID]:
            continue
        penalty = (one if hit[column.SCORE] > 100 else np.float32(0.01) * np.float32(hit[column.SCORE])) * unique
        of_count = one if hit[column.COUNT] > 10 else np.float32(0.1) * np.float32(hit[column.COUNT])
        penalty = min(penalty, of_count)
        second = np.float32(max(hit[column.SUBSC], integers[MIN_SC]))
        if not hit[column.ALIGNED]:
            x = second / np.float32(hit[column.SCORE0])
            quality = np.int64(penalty * forty * (one - x) * np.float32(math.log(np.float32(hit[column.SCORE]))))
        else:
            dp_max = np.float32(hit[column.DP_MAX])
            identity = np.float32(hit[column.MLEN]) / np.float32(hit[column.BLEN])
            logarithm = np.float32(math.log(np.float32(dp_max / match)))
            if hit[column.DP_MAX2] > 0 and hit[column.DP_MAX] > 0:
                x = np.float32(hit[column.DP_MAX2]) * second / dp_max / np.float32(hit[column.SCORE0])
                quality = np.int64(identity * penalty * forty * (one - x * x) * logarithm)
                other = (
                    np.float32(6.02)
                    * identity
                    * identity
                    * np.float32(hit[column.DP_MAX] - hit[column.DP_MAX2])
                    / match
                )
                quality = min(quality, np.int64(other + np.float32(0.499)))
            else:
                x = second / np.float32(hit[column.SCORE0])
                quality = np.int64(identity * penalty * forty * (one - x) * logarithm)
        rivals = np.float32(math.log(np.float32(hit[column.N_SUB] + 1)))
        quality -= np.int64(np.float32(4.343) * rivals + np.float32(0.499))
        quality = min(max(quality, 0), 60)
        if quality == 0 and hit[column.ALIGNED] and hit[column.DP_MAX] > hit[column.DP_MAX2]:
            quality = 1
        hit[column.MAPQ] = quality


@exact_inner
def _set_quality_of_inversions(hits, n, scratch):
    """Give an inversion the smaller quality of its neighbours on the reference."""
    found = False
    for i in range(n):
        found = found or hits[i, column.INVERSION] != 0
    if n < 3 or not found:
        return
    key = np.empty(n, np.uint64)
    place = np.empty(n, np.int64)
    m = 0
    for i in range(n):
        if hits[i, column.PARENT] == i or hits[i, column.PARENT] < 0:
            key[m] = np.uint64((hits[i, column.CONTIG] << 32) | hits[i, column.RS])
            place[m] = i
            m += 1
    sort_pairs(key, place, 0, m, scratch)
    for i in range(1, m - 1):
        if hits[place[i], column.INVERSION]:
            hits[place[i], column.MAPQ] = min(hits[place[i - 1], column.MAPQ], hits[place[i + 1], column.MAPQ])


@exact_inner
def rank_hits(hits, n, ops, read_length, integers, floats, scratch):
    """Rank aligned hits, and keep the primary and the best secondary ones; return how many are kept."""
    if n >= 2 and read_length >= RANK_MIN_LENGTH:
        _rescore(hits, n, ops, read_length, integers)
        n = drop_poor(hits, n, integers)
    _sort_hits(hits, n, scratch)
    set_parents(hits, n, integers, floats)
    return select_secondaries(hits, n, integers, floats, False)


@exact_inner
def judge_hits(hits, n, rep_len, integers, scratch):
    """Mark the primary record and set the mapping qualities."""
    n_primary = 0
    for i in range(n):
        is_own = hits[i, column.ID] == hits[i, column.PARENT]
        hits[i, column.PRIMARY] = 1 if is_own and n_primary == 0 else 0
        n_primary += is_own
    _set_quality(hits, n, rep_len, integers)
    _set_quality_of_inversions(hits, n, scratch)


@exact_kernel
def rank_reads(queue, reads, read_offsets, hits, rep_len, parameters, with_alignment, kept):
    """Rank the hits of reads in their places, and judge them.

    Parameters
    ----------
    hits : f5py.mapping.batch.Hits
        Changed; of each read the first ones stay.
    with_alignment : bool
        Without, hits are chains, which have their ranks.
    kept : int64, shape (n_reads,)
        Filled: how many hits stay.
    """
    integers, floats, _ = parameters
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        these = hits.table[hits.offsets[read] : hits.offsets[read + 1]]
        m = these.shape[0]
        if with_alignment:
            m = rank_hits(these, m, hits.ops, read_offsets[read + 1] - read_offsets[read], integers, floats, scratch)
        judge_hits(these, m, rep_len[read], integers, scratch)
        for j in range(m):
            these[j, column.READ] = read
        kept[read] = m
