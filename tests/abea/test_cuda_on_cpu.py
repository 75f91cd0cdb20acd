"""The player of CUDA thread blocks: its operations, and the mistakes that it must catch."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from .kernels_on_cpu import build, call


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return build("mistakes.cpp")


@pytest.mark.parametrize("descending", [0, 1])
@pytest.mark.parametrize("threads", [32, 64, 320])
def test_operations(library, threads, descending):
    blocks = 3
    values = np.random.default_rng(threads).integers(0, 1000, threads).astype(np.int32)
    values[7] = 40
    out = np.full((blocks, threads, 17), np.nan, np.float32)
    reversed_values = np.zeros((blocks, threads), np.int32)
    call(library.run_operations, blocks, threads, descending, values, out, reversed_values)
    lane = np.arange(threads) % 32
    first = np.arange(threads) - lane
    divisible = np.add.reduceat(values % 3 == 0, np.arange(0, threads, 32), dtype=int)
    expected = [
        values[first + 5],
        values[first + np.where(lane < 3, lane, lane - 3)],
        values[first + np.where(lane + 30 > 31, lane, lane + 30)],
        values[first + (lane ^ 16)],
        np.repeat(divisible, 32),
        2 + np.repeat((values == 40).reshape(-1, 32).any(axis=1), 32),
        np.full(threads, 2.0**-24),
        np.zeros(threads),
        np.full(threads, np.float32(np.pi)),
        np.clip(lane, 4, 6),
        lane - lane % 4,
        np.full(threads, 4),
        np.zeros(threads),
        lane < 16,
        np.full(threads, 11),
        np.ones(threads),
        100 * (31 - lane) + lane + 1,
    ]
    for block in range(blocks):
        np.testing.assert_array_equal(out[block].T, expected)
        np.testing.assert_array_equal(reversed_values[block], values[::-1])


@pytest.mark.parametrize("descending", [0, 1])
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("one_lane_leaves", "the threads of a warp diverged: .*, but thread 7 of block 0 has returned"),
        ("two_kinds", "warp diverged: thread 0 .* is at __shfl_up_sync .*, but thread 16 .* is at __shfl_down_sync"),
        ("two_places", "warp diverged: thread 0 .* is at __shfl_sync in line .*, but thread 16"),
        ("half_a_mask", "thread 0 of block 0 is at __ballot_sync .* not exactly the 32 lanes"),
        ("uneven_loop", "warp diverged: thread 31 of block 0 is at __shfl_sync .*, but thread 0 .* has returned"),
        ("one_warp_misses_the_barrier", "threads of a block diverged: .*, but thread 32 of block 0 has returned"),
    ],
)
def test_divergence_is_caught(library, kernel, message, descending):
    out = np.zeros(64, np.int32)
    with pytest.raises(RuntimeError, match=message):
        call(library.run_mistake, kernel.encode(), descending, out)
    # the next launch starts afresh
    test_operations(library, 32, descending)


@pytest.mark.parametrize("kernel", [b"no_barrier", b"no_barrier_of_the_block"])
def test_a_missing_barrier_shows_in_the_order_of_lanes(library, kernel):
    results = []
    for descending in (0, 1):
        out = np.zeros(64, np.int32)
        call(library.run_mistake, kernel, descending, out)
        results.append(out.tolist())
    assert results[0] != results[1]
