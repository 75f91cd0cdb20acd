"""Jitted loops over CIGAR operations: left-alignment of gaps, scores and drops of the score."""

import numpy as np

import f5py.mapping.hit_table as column
import f5py.mapping.settings as setting
from f5py.jit.kernel import exact_inner
from f5py.mapping.align._alignment_numba import local_alignment
from f5py.mapping.index.packed_bases import base_at, unpack

_ONE = np.uint64(1)


@exact_inner
def log2_of(n):
    """Approximate the binary logarithm of a positive integer: `settings.log2_approximation`."""
    z = np.float32(n)
    exponent = np.float32(-1)
    while z >= np.float32(2):
        z *= np.float32(0.5)
        exponent += np.float32(1)
    first = np.float32(-0.34484843) * z + np.float32(2.02466578)
    return exponent + (first * z - np.float32(0.67487759))


@exact_inner
def find_drop(ops, begin, n_ops, reference, r, strand, s, integers):
    """Find a drop of the score along a path: 0 for none, 1 for a drop, 2 if an inversion explains it.

    The path, operations from `begin` to `n_ops`, begins at `r` and `s`. Spliced reads have no inversions.
    """
    i = np.int64(0)
    j = np.int64(0)
    score = np.int64(0)
    largest = np.int64(-(1 << 60))
    i_best = np.int64(-1)
    j_best = np.int64(-1)
    drop = np.int64(0)
    from_i = np.int64(-1)
    from_j = np.int64(-1)
    to_i = np.int64(-1)
    to_j = np.int64(-1)
    e = integers[setting.E]
    match = integers[setting.MATCH]
    mismatch = -integers[setting.MISMATCH]
    for o in range(begin, n_ops):
        op = ops[o] & 15
        length = ops[o] >> 4
        steps = length if op == 0 else 1
        for _ in range(steps):
            if op == 0:
                a = base_at(reference, r + i)
                b = strand[s + j]
                if a > 3 or b > 3:
                    score += setting.N_SCORE
                elif a == b:
                    score += match
                else:
                    score += mismatch
                point_i = i
                point_j = j
                i += 1
                j += 1
            else:
                score -= integers[setting.Q] + e * length
                if op == 1:
                    j += length
                else:
                    i += length
                point_i = i
                point_j = j
            if score < largest:
                z = largest - score - e * abs((point_i - i_best) - (point_j - j_best))
                if z > drop:
                    drop = z
                    from_i = i_best
                    from_j = j_best
                    to_i = point_i
                    to_j = point_j
            else:
                largest = score
                i_best = point_i
                j_best = point_j
    if drop > integers[setting.ZDROP_INV] and not integers[setting.SPLICED] and not integers[setting.STRANDS]:
        n = to_i - from_i
        m = to_j - from_j
        if n < integers[setting.MAX_GAP] and m < integers[setting.MAX_GAP]:
            other = np.empty(m, np.uint8)
            for at in range(m):
                base = strand[s + to_j - 1 - at]
                other[at] = 3 - base if base < 4 else 4
            target = np.empty(n, np.uint8)
            unpack(reference, r + from_i, r + from_i + n, target, 0)
            reach = np.empty(2 * (m + 8), np.int64)
            found = local_alignment(target, n, other, m, integers, reach)[0]
            if found >= integers[setting.MATCH] * integers[setting.MIN_SC] and found >= integers[setting.MIN_DP_MAX]:
                return 2
    return 1 if drop > integers[setting.ZDROP] else 0


@exact_inner
def tidy(hit, ops, reference, r, strand, s):
    """Left-align gaps, merge operations and drop a leading gap; return the bases dropped of each sequence.

    The coordinates of the hit change with a dropped gap. Other parameters as in `find_drop`.
    """
    begin = hit[column.OPS]
    n = hit[column.N_OPS]
    if n <= 1:
        return 0, 0
    i = r
    j = s
    for k in range(begin, begin + n):
        op = ops[k] & 15
        length = ops[k] >> 4
        if op == 0:
            i += length
            j += length
            continue
        if op < 3 and k > begin and k < begin + n - 1 and ops[k - 1] & 15 == 0 and ops[k + 1] & 15 == 0:
            before = ops[k - 1] >> 4
            shift = 0
            if op == 1:
                while shift < before and strand[j - 1 - shift] == strand[j + length - 1 - shift]:
                    shift += 1
            else:
                while shift < before and base_at(reference, i - 1 - shift) == base_at(
                    reference, i + length - 1 - shift
                ):
                    shift += 1
            ops[k - 1] -= shift << 4
            ops[k + 1] += shift << 4
            i -= shift
            j -= shift
        if op == 1:
            j += length
        else:
            i += length
    k = begin
    end = begin + n
    while k < end - 2:
        op = ops[k] & 15
        if 0 < op < 3 and op + (ops[k + 1] & 15) == 3:
            inserted = 0
            deleted = 0
            m = k
            while m < end:
                op = ops[m] & 15
                if op == 1:
                    inserted += ops[m] >> 4
                elif op == 2:
                    deleted += ops[m] >> 4
                elif ops[m] >> 4 != 0:
                    break
                m += 1
            if inserted > 0 and deleted > 0 and m - k > 2:
                ops[k] = (inserted << 4) | 1
                ops[k + 1] = (deleted << 4) | 2
                for empty in range(k + 2, m):
                    ops[empty] &= 15
            k = m
        k += 1
    kept = begin
    for k in range(begin, end):
        if ops[k] >> 4 == 0:
            continue
        if kept > begin and (ops[kept - 1] & 15) == (ops[k] & 15):
            ops[kept - 1] += ops[k] >> 4 << 4
        else:
            ops[kept] = ops[k]
            kept += 1
    op = ops[begin] & 15
    dropped_t = 0
    dropped_q = 0
    if 0 < op < 3:
        length = ops[begin] >> 4
        if op == 1:
            dropped_q = length
            if hit[column.REVERSE]:
                hit[column.QE] -= length
            else:
                hit[column.QS] += length
        else:
            dropped_t = length
            hit[column.RS] += length
        for k in range(begin + 1, kept):
            ops[k - 1] = ops[k]
        kept -= 1
    hit[column.N_OPS] = kept - begin
    return dropped_t, dropped_q


@exact_inner
def finish_hit(hit, ops, reference, r, strand, s, integers):
    """Tidy up the path of a hit and count its columns; `reference`, `r`, `strand`, `s` as in `find_drop`."""
    dropped_t, dropped_q = tidy(hit, ops, reference, r, strand, s)
    i = r + dropped_t
    j = s + dropped_q
    score = 0.0
    largest = 0.0
    mlen = 0
    blen = 0
    n_ambi = 0
    n_gap = 0
    n_open = 0
    match = np.float64(integers[setting.MATCH])
    mismatch = np.float64(-integers[setting.MISMATCH])
    for k in range(hit[column.OPS], hit[column.OPS] + hit[column.N_OPS]):
        op = ops[k] & 15
        length = ops[k] >> 4
        if op == 0:
            # unsigned: such an index cannot count from the end of an array
            t = np.uint64(i)
            q = np.uint64(j)
            end = np.uint64(i + length)
            while t < end:
                first = t
                while t < end and strand[q] <= 3 and base_at(reference, t) == strand[q]:
                    t += _ONE
                    q += _ONE
                # the score only grows here
                equal = np.int64(t - first)
                mlen += equal
                blen += equal
                score += match * np.float64(equal)
                largest = max(largest, score)
                if t == end:
                    break
                if strand[q] > 3 or base_at(reference, t) > 3:
                    n_ambi += 1
                    score += np.float64(setting.N_SCORE)
                else:
                    blen += 1
                    score += mismatch
                score = max(score, 0.0)
                t += _ONE
                q += _ONE
            i += length
            j += length
            continue
        if op == 3:
            i += length
            continue
        unknown = 0
        if op == 1:
            for at in range(length):
                unknown += strand[j + at] > 3
            j += length
        else:
            for at in range(length):
                unknown += base_at(reference, i + at) > 3
            i += length
        n_ambi += unknown
        blen += length - unknown
        n_gap += length
        n_open += 1
        score -= integers[setting.Q] + integers[setting.E] * np.float64(log2_of(1 + length))
        if score < 0:
            score = 0.0
    hit[column.MLEN] = mlen
    hit[column.BLEN] = blen
    hit[column.N_AMBI] = n_ambi
    hit[column.N_GAP] = n_gap
    hit[column.N_GAPOPEN] = n_open
    hit[column.DP_MAX] = np.int64(largest + 0.499)
