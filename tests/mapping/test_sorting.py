"""The sort whose order of equal keys is minimap2's, and that of different keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from f5py.mapping._sorting_numba import SORT_SCRATCH, sort_pairs, sort_runs

from ..compiled import compiled

sort_pairs = compiled(sort_pairs)
sort_runs = compiled(sort_runs)


def sorted_by(sort, keys: np.ndarray, *places: int) -> tuple[list[int], list[int]]:
    """Sort keys and their indices."""
    x, y = keys.astype(np.uint64), np.arange(len(keys))
    sort(x, y, *places, len(keys), np.empty(SORT_SCRATCH, np.int64))
    return x.tolist(), y.tolist()


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=12), seed=st.integers(0, 2**32 - 1),
    bits=st.sampled_from([12, 40, 63]),
)  # fmt: skip
def test_runs_of_different_keys(lengths, seed, bits):
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    keys = rng.permutation(np.unique(rng.integers(0, 1 << bits, n)))
    keys = np.concatenate([np.sort(run) for run in np.split(keys, np.cumsum(lengths)[:-1])])
    order = np.argsort(keys, kind="stable")
    assert sorted_by(sort_runs, keys) == (keys[order].tolist(), order.tolist())
    assert sorted_by(sort_pairs, keys, 0) == (keys[order].tolist(), order.tolist())


def plainly_sorted(keys: list[int], shift: int = 56) -> list[int]:
    """Sort as minimap2's radix sort does: in place, by the highest byte, then each bucket; return the indices."""
    order = list(range(len(keys)))
    if len(keys) <= 64:
        return sorted(order, key=lambda i: keys[i])
    buckets = [keys[i] >> shift & 255 for i in order]
    ends = np.cumsum(np.bincount(buckets, minlength=256)).tolist()
    heads = [0, *ends[:-1]]
    for bucket in range(256):
        while heads[bucket] < ends[bucket]:
            at = order[heads[bucket]]
            while buckets[at] != bucket:
                to = heads[buckets[at]]
                heads[buckets[at]] += 1
                at, order[to] = order[to], at
            order[heads[bucket]] = at
            heads[bucket] += 1
    if shift == 0:
        return order
    done: list[int] = []
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        part = order[first:end]
        done += [part[i] for i in plainly_sorted([keys[i] for i in part], shift - 8)]
    return done


@given(n=st.integers(0, 400), most=st.sampled_from([3, 40, 1000, 1 << 40]), is_sorted=st.booleans(), data=st.data())
def test_the_order_of_equal_keys_is_that_of_minimap2(n, most, is_sorted, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    keys = rng.integers(0, most, n) * data.draw(st.sampled_from([1, 1 << 8, 1 << 20]))
    if is_sorted:
        keys.sort()
    order = plainly_sorted(keys.tolist())
    assert sorted_by(sort_pairs, keys, 0) == (keys[order].tolist(), order)
