"""The order in which the warps of a GPU take the site groups of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.compute.gpu.results.scores import (
    BUCKETS,
    GROUPS,
    WARPS_OF_PIECE,
    describe_groups,
    empty_order,
    order_groups,
    work_elements,
)
from f5py.core.offsets import elements_of, offsets_of
from f5py.methylation.groups import GroupWindows

from ...compiled import compiled

work_elements = compiled(work_elements)

_K, _N_READS = 6, 60


@pytest.mark.parametrize("most_events", [60, 3 * BUCKETS])
@pytest.mark.parametrize("is_roomy", [True, False])
def test_stable_by_kmers_and_events(most_events, is_roomy):
    rng = np.random.default_rng(most_events)
    n = rng.integers(0, 200, _N_READS)
    offsets = offsets_of(n + rng.integers(0, 5, _N_READS))
    n_bases = rng.integers(22, 90, offsets[-1]).astype(np.int32)
    begin = rng.integers(0, 9000, offsets[-1]).astype(np.int32)
    end = begin + rng.choice([-1, 1], offsets[-1]).astype(np.int32) * rng.integers(10, most_events, offsets[-1])
    listing = GroupWindows(rng.integers(0, 9000, offsets[-1]).astype(np.int32), n_bases, begin, end.astype(np.int32))
    at = np.flatnonzero(rng.random(_N_READS // 2) < 0.8)
    aligned = np.sort(rng.choice(_N_READS, _N_READS // 2, replace=False))
    columns, rows = n_bases.astype(np.int64) - _K + 1, np.abs(end - begin).astype(np.int64) + 1
    needed = [int(work_elements(*pair)) for pair in zip(columns, rows, strict=True)]
    room = 2 * (max(needed) if is_roomy else int(np.quantile(needed, 0.995)))

    expected = []  # read of the part, slot
    for one in at:
        slots = np.arange(offsets[aligned[one]], offsets[aligned[one]] + n[aligned[one]])
        if all(needed[slot] <= room // 2 for slot in slots):
            expected += [(one, slot) for slot in slots]
    expected.sort(key=lambda group: (-columns[group[1]], -min(rows[group[1]], BUCKETS - 1)))

    given_back = np.zeros(_N_READS, np.bool_)
    order = empty_order(int(n[aligned[at]].sum()))
    one = np.zeros(1, np.int64)
    order_groups(one.copy(), one, at, (aligned, offsets, n), listing, (_K, room), order, given_back)
    n_found = int(order.n[0])
    assert [(place >> 32, place & 0xFFFFFFFF) for place in order.places[:n_found].tolist()] == expected
    kept = aligned[at][~given_back[aligned[at]]]
    assert sorted(elements_of(offsets[kept], n[kept])) == sorted(slot for _, slot in expected)
    assert (given_back.sum() == 0) == is_roomy
    assert len(expected) > 500

    describe_groups(one.copy(), np.arange(-(-n_found // (GROUPS * WARPS_OF_PIECE))), listing, _K, order)
    slots = np.array([slot for _, slot in expected])
    reads = np.array([read for read, _ in expected])
    described = np.stack([reads, *(values[slots] for values in listing)], axis=1)
    np.testing.assert_array_equal(order.groups[:n_found], described)
    starts = np.arange(0, n_found, GROUPS)
    np.testing.assert_array_equal(order.columns[: len(starts)], np.maximum.reduceat(columns[slots], starts))
    np.testing.assert_array_equal(order.rows[: len(starts)], np.maximum.reduceat(rows[slots], starts))
