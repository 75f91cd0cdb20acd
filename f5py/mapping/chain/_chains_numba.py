"""Jitted loops that cut chains out of scored anchors, and join chains over long gaps; see `chaining`."""

# mypy: disable-error-code="assignment,arg-type"
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import f5py.mapping.settings as setting
from f5py.jit.kernel import exact_inner
from f5py.mapping._sorting_numba import sort_pairs

_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)


class Chains(NamedTuple):
    """Chains and their anchors, to be filled."""

    x: NDArray[np.uint64]  # shape (>= n,)
    y: NDArray[np.int64]  # shape (>= n,): anchors of all chains
    sums: NDArray[np.int64]  # shape (>= n,): score << 32 | number of anchors, one element a chain


@exact_inner
def cut_chains(anchors, begin, n, integers, max_drop, scores, out, scratch):
    """Write the chains of `n` anchors from index `begin` on to `out`, in the order of their first anchors.

    Anchors and scores are as of `f5py.mapping.chain.chaining.score_anchors`; a chain may lose `max_drop` of its score
    on its way. Returns the numbers of chains and of their anchors.
    """
    x, y = anchors
    f, p = scores
    out_x, out_y, chains = out
    min_sc = integers[setting.MIN_SC]
    z_key = np.empty(n, np.uint64)
    z_at = np.empty(n, np.int64)
    n_z = 0
    for i in range(n):
        if f[begin + i] >= min_sc:
            z_key[n_z] = np.uint64(f[begin + i])
            z_at[n_z] = i
            n_z += 1
    sort_pairs(z_key, z_at, 0, n_z, scratch)
    is_used = np.zeros(n, np.uint8)
    order = np.empty(n, np.int64)
    n_order = 0
    sums = np.empty(n_z, np.int64)
    n_chains = 0
    for z in range(n_z - 1, -1, -1):
        first = z_at[z]
        if is_used[first]:
            continue
        top = np.int64(z_key[z])
        cut = first
        best = np.int64(0)
        i = first
        while True:
            i = np.int64(p[begin + i])
            s = top if i < 0 else top - f[begin + i]
            if s > best:
                best = s
                cut = i
            elif best - s > max_drop:
                break
            if i < 0 or is_used[i]:
                break
        i = first
        at = n_order
        while i != cut:
            order[n_order] = i
            n_order += 1
            is_used[i] = 1
            i = np.int64(p[begin + i])
        score = top if i < 0 else top - f[begin + i]
        if score >= min_sc and n_order > at and n_order - at >= integers[setting.MIN_CNT]:
            sums[n_chains] = (score << 32) | (n_order - at)
            n_chains += 1
        else:
            n_order = at
    # Chains in the order of their first anchors: the last of `order`, which goes backwards.
    at = 0
    for c in range(n_chains):
        count = sums[c] & 0xFFFFFFFF
        z_key[c] = x[begin + order[at + count - 1]]
        z_at[c] = (at << 32) | c
        at += count
    sort_pairs(z_key, z_at, 0, n_chains, scratch)
    n_out = 0
    for c in range(n_chains):
        number = z_at[c] & 0xFFFFFFFF
        at = z_at[c] >> 32
        count = sums[number] & 0xFFFFFFFF
        chains[c] = sums[number]
        for i in range(count - 1, -1, -1):
            out_x[n_out] = x[begin + order[at + i]]
            out_y[n_out] = y[begin + order[at + i]]
            n_out += 1
    return n_chains, n_out


@exact_inner
def _step(x, y, i, j, gap_penalty):
    """Gain of a step from anchor `j` to `i`, difference of the distances, and whether the step is exact."""
    dq = (y[i] & 0xFFFFFFFF) - (y[j] & 0xFFFFFFFF)
    dr = np.int64(np.int32((x[i] - x[j]) & _LOW))
    difference = abs(dr - dq)
    step = min(dr, dq)
    span = (y[j] >> 32) & 0xFF
    gain = min(span, step)
    if (difference > 0 or dq > span) and difference < gap_penalty.shape[0]:
        gain -= gap_penalty[difference]
    return gain, difference, difference == 0 and step <= span


@exact_inner
def _activate(tree, half, rank, priority):
    """Make a rank of the tree of largest priorities active."""
    value = priority[rank]
    node = half + rank
    tree[node] = rank
    node >>= 1
    while node >= 1:
        there = tree[node]
        if there >= 0 and (priority[there] > value or (priority[there] == value and there > rank)):
            return  # so it is further up
        tree[node] = rank
        node >>= 1


@exact_inner
def _deactivate(tree, half, rank, priority):
    """Make a rank of the tree inactive."""
    node = half + rank
    tree[node] = -1
    node >>= 1
    while node >= 1 and tree[node] == rank:
        left = tree[2 * node]
        right = tree[2 * node + 1]
        if left < 0 or (right >= 0 and priority[right] >= priority[left]):
            left = right
        tree[node] = left
        node >>= 1


@exact_inner
def _best_active(tree, half, low, high, priority):
    """Find the last active rank in ``[low, high)`` with the largest priority, or -1."""
    best = np.int64(-1)
    value = 0.0
    left = half + low
    right = half + high
    while left < right:
        if left & 1:
            other = tree[left]
            left += 1
            if other >= 0:
                found = priority[other]
                if best < 0 or found > value or (found == value and other > best):
                    best = other
                    value = found
        if right & 1:
            right -= 1
            other = tree[right]
            if other >= 0:
                found = priority[other]
                if best < 0 or found > value or (found == value and other > best):
                    best = other
                    value = found
        left >>= 1
        right >>= 1
    return best


@exact_inner
def _ranks_within(y_sorted, n, reach, low, high):
    """Fill for each rank the first rank above its position less `reach`, and the first at or above it."""
    first = 0
    same = 0
    for r in range(n):
        while y_sorted[first] + reach <= y_sorted[r]:
            first += 1
        if y_sorted[same] != y_sorted[r]:
            same = r
        low[r] = first
        high[r] = same


@exact_inner
def _raise_tops(tops, n, rank, score):
    """Put a score in the tree of largest scores of all ranks up to one (Fenwick's)."""
    while rank < n and tops[rank] < score:  # where it is not less, so it is further up
        tops[rank] = score
        rank |= rank + 1


@exact_inner
def _top_until(tops, rank):
    """Find the largest score of ranks up to this one."""
    top = np.int32(0)
    while rank >= 0:
        top = max(top, tops[rank])
        rank = (rank & (rank + 1)) - 1
    return top


@exact_inner
def score_long_joins(anchors, n, integers, floats, gap_penalty, scores, scratch):
    """Score chains over gaps of up to the long bandwidth; as `score_anchors`, for anchors from index 0 on.

    Ranks are the anchors' places in the order of (y, index); a tree over the ranks finds the predecessor with the
    largest priority, a bitmap those nearby.
    """
    x, y = anchors
    f, p = scores
    bw = integers[setting.BW_LONG]
    reach = max(integers[setting.MAX_GAP], bw)
    max_skip = integers[setting.MAX_SKIP]
    y_keys = np.empty(n, np.uint64)
    anchor = np.empty(n, np.int64)
    for i in range(n):
        y_keys[i] = (np.uint64(y[i] & 0xFFFFFFFF) << _HIGH) | np.uint64(i)
        anchor[i] = i
    sort_pairs(y_keys, anchor, 0, n, scratch)
    rank = np.empty(n, np.int64)
    y_sorted = np.empty(n, np.int64)
    for r in range(n):
        rank[anchor[r]] = r
        y_sorted[r] = np.int64(y_keys[r] >> _HIGH)
    lows = np.empty(n, np.int64)
    highs = np.empty(n, np.int64)
    _ranks_within(y_sorted, n, reach, lows, highs)
    half = 1
    while half < n:
        half *= 2
    tree = np.full(2 * half, -1, np.int64)
    priority = np.empty(n, np.float64)
    near = np.zeros(n // 64 + 2, np.uint64)
    marks = np.zeros(n, np.int32)
    tops = np.zeros(n, np.int32)
    longest = np.int64(0)
    for i in range(n):
        longest = max(longest, (y[i] >> 32) & 0xFF)
    half_gap = 0.5 * np.float64(floats[setting.GAP_PENALTY])
    inserted = 0
    st = 0
    st_near = 0
    for i in range(n):
        if x[inserted] != x[i]:
            for j in range(inserted, i):
                r = rank[j]
                value = f[j] + half_gap * np.float64(np.int64(np.int32(x[j] & _LOW)) + (y[j] & 0xFFFFFFFF))
                priority[r] = value
                _activate(tree, half, r, priority)
                _raise_tops(tops, n, r, f[j])
                near[r >> 6] |= np.uint64(1) << np.uint64(r & 63)
            inserted = i
        while st < i and (
            x[i] >> _HIGH != x[st] >> _HIGH or x[i] > x[st] + np.uint64(reach) or inserted - st > setting.RMQ_CAPACITY
        ):
            _deactivate(tree, half, rank[st], priority)
            st += 1
        while st_near < i and (
            x[i] >> _HIGH != x[st_near] >> _HIGH
            or x[i] > x[st_near] + np.uint64(setting.INNER_DISTANCE)
            or inserted - st_near > setting.RMQ_CAPACITY
        ):
            near[rank[st_near] >> 6] &= ~(np.uint64(1) << np.uint64(rank[st_near] & 63))
            st_near += 1
        own = (y[i] >> 32) & 0xFF
        score = own
        parent = np.int64(-1)
        q = y[i] & 0xFFFFFFFF
        high = highs[rank[i]]
        best = _best_active(tree, half, lows[rank[i]], high, priority)
        if best >= 0:
            j = anchor[best]
            gain, difference, exact = _step(x, y, i, j, gap_penalty)
            gain += f[j]
            if difference <= bw and gain > score:
                score = gain
                parent = j
            if not exact and q > 0:
                skipped = 0
                n_seen = 0
                r = high - 1
                while r >= 0:
                    word = near[r >> 6] << np.uint64(63 - (r & 63))
                    if word == 0:
                        r = ((r >> 6) << 6) - 1
                        if r < 0 or q - y_sorted[r] > setting.INNER_DISTANCE:
                            break
                        continue
                    while word >> np.uint64(63) == 0:
                        word <<= np.uint64(1)
                        r -= 1
                    if q - y_sorted[r] > setting.INNER_DISTANCE:
                        break
                    j = anchor[r]
                    gain, difference, exact = _step(x, y, i, j, gap_penalty)
                    gain += f[j]
                    n_seen += 1
                    if n_seen & 3 == 0 and _top_until(tops, r) + longest <= score:
                        break  # none of those that are left can be better
                    if difference <= bw:
                        if gain > score:
                            score = gain
                            parent = j
                            if skipped > 0:
                                skipped -= 1
                        elif marks[j] == i:
                            skipped += 1
                            if skipped > max_skip:
                                break
                        if p[j] >= 0:
                            marks[p[j]] = i
                    r -= 1
        f[i] = score
        p[i] = parent


@exact_inner
def is_worth_joining(y, chains, n_chains, read_length, integers):
    """Return whether the first chain leaves so much of the read out that chains are joined over long gaps."""
    if integers[setting.BW_LONG] <= integers[setting.BW] or n_chains < 2:
        return False
    count = chains[0] & 0xFFFFFFFF
    span = np.int64(np.int32((y[count - 1] & 0xFFFFFFFF) - (y[0] & 0xFFFFFFFF)))
    most = np.float32(read_length) * np.float32(setting.RESCUE_RATIO)
    return read_length - span > setting.RESCUE_BASES or np.float32(span) > most
