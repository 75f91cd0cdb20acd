"""The order in which the warps of a GPU take the windows of single sites, and how their results come back."""

from __future__ import annotations

import numpy as np

from f5py.compute.gpu.results.site_scores import (
    WINDOWS_OF_PIECE,
    describe_windows,
    divide_windows,
    empty_order,
    list_places,
    order_windows,
    put_sites_back,
    work_elements,
)
from f5py.core.offsets import elements_of, offsets_of
from f5py.methylation.groups import GroupWindows
from f5py.methylation.hmm_gpu import LANES
from f5py.methylation.per_site import SiteListing

from ...compiled import compiled

work_elements = compiled(work_elements)

_K, _N_READS = 6, 60


def _turn():
    return np.zeros(1, np.int64)


def test_windows_of_several_pieces():
    """By width, whether there is a slot, k-mers and events; what is found of their sites comes back to these."""
    rng = np.random.default_rng(1)
    n = rng.integers(0, 400, _N_READS)
    offsets = offsets_of(n + rng.integers(0, 5, _N_READS))
    total = int(offsets[-1])
    begin = rng.integers(0, 9000, total)
    end = begin + rng.choice([-1, 1], total) * rng.integers(10, 90, total)
    of_windows = rng.integers(0, 9000, total), rng.integers(22, 90, total), begin, end
    listing = GroupWindows(*(numbers.astype(np.int32) for numbers in of_windows))
    n_sites = rng.integers(1, 7, total).astype(np.int32)
    first = offsets_of(n_sites)[:-1]
    width = np.where(n_sites > 1, np.minimum(n_sites, rng.integers(1, 5, total)), 0).astype(np.int32)
    sites = SiteListing(rng.integers(0, 80, int(n_sites.sum())).astype(np.int32), first, width)
    aligned = rng.permutation(_N_READS)
    at = np.flatnonzero(n[aligned] > 0)
    groups = (aligned, offsets, n, n_sites, listing)
    limits = (_K, False, int(work_elements(90, 90, 10, False)), 10)
    given_back = np.zeros(_N_READS, np.bool_)
    order = empty_order(int(n.sum()), int(n_sites.sum()))
    order_windows(_turn(), np.zeros(1, np.int64), at, groups, sites, limits, order, given_back)
    count = int(order.n[0])
    assert count > 2 * WINDOWS_OF_PIECE
    pieces = np.arange(-(-count // WINDOWS_OF_PIECE))[::-1].copy()
    describe_windows(_turn(), pieces, groups, sites, order)
    divide_windows(_turn(), np.zeros(1, np.int64), limits, order)
    list_places(_turn(), pieces, sites, order)

    slots = elements_of(offsets[aligned[at]], n[aligned[at]])
    reads = np.repeat(at, n[aligned[at]])
    reads, slots = reads[n_sites[slots] > 1], slots[n_sites[slots] > 1]
    columns, rows = listing.n_bases - _K + 1, np.abs(end - begin) + 1
    has_slots = n_sites > np.maximum(width, 1)
    by_size = np.lexsort((-rows[slots], -columns[slots], -(2 * width + has_slots)[slots]))
    reads, slots = reads[by_size], slots[by_size]
    assert not given_back.any()
    np.testing.assert_array_equal(order.slots[:count], slots)
    of_sites = elements_of(first[slots], n_sites[slots])
    firsts = np.cumsum(n_sites[slots]) - n_sites[slots]
    expected = np.stack([reads, *(numbers[slots] for numbers in listing), firsts, n_sites[slots]], axis=1)
    np.testing.assert_array_equal(order.windows[:count], expected)
    assert order.n[1] == len(of_sites)
    np.testing.assert_array_equal(order.places[: len(of_sites)], sites.place[of_sites])

    n_warps = int(order.n[2])
    warps = order.warps[:n_warps]
    np.testing.assert_array_equal(warps[:, 0], np.cumsum(warps[:, 1]) - warps[:, 1])
    assert warps[:, 1].sum() == count
    for values, column in ((columns, 2), (rows, 3), (n_sites, 5), (width, 6)):
        np.testing.assert_array_equal(np.maximum.reduceat(values[slots], warps[:, 0]), warps[:, column])
    np.testing.assert_array_equal(np.minimum.reduceat(width[slots], warps[:, 0]), warps[:, 6])
    assert (warps[:, 1] <= LANES >> warps[:, 6]).all()
    needed = [work_elements(*(int(number) for number in warp), False) for warp in warps[:, 2:5]]
    np.testing.assert_array_equal(np.diff(order.work[: n_warps + 1]), needed)

    for some in (slice(0, count), slice(37, 37 + WINDOWS_OF_PIECE + 1)):
        chosen = slots[some]
        found, exponents = rng.random(2 * int(n_sites[chosen].sum())), rng.random(len(chosen))
        chunk = (order.slots[some], order.windows[some], found, exponents)
        back, exponents_back = np.zeros((len(sites.place), 2)), np.zeros(total)
        pieces = np.arange(-(-len(chosen) // WINDOWS_OF_PIECE))
        put_sites_back(_turn(), pieces, chunk, first, back, exponents_back)
        np.testing.assert_array_equal(back[elements_of(first[chosen], n_sites[chosen])], found.reshape(-1, 2))
        np.testing.assert_array_equal(exponents_back[chosen], exponents)
        assert np.count_nonzero(back) == len(found)
