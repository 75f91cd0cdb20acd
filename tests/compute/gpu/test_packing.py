"""Copies of what reads have many of, to the buffers of a GPU and back."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.compute.gpu.buffers import gather, scatter
from f5py.core.offsets import offsets_of


@pytest.mark.parametrize("most", [3, 200, 5000])
def test_bytes_of_reads_from_and_to_any_place(most):
    rng = np.random.default_rng(most)
    n_reads = 300
    offsets = offsets_of(rng.integers(0, most, n_reads))
    values = rng.integers(0, 256, offsets[-1], np.uint8)
    reads = np.flatnonzero(rng.random(n_reads) < 0.7)
    begin = int(rng.integers(0, 70))  # the buffer begins anywhere, and there is something behind it
    gathered_offsets = offsets_of(np.diff(offsets)[reads])
    room = np.full(begin + gathered_offsets[-1] + 100, 7, np.uint8)
    queue = np.zeros(1, np.int64)
    gather(queue.copy(), reads, offsets, values, gathered_offsets, room[begin:])
    expected = np.concatenate([values[offsets[read] : offsets[read + 1]] for read in reads])
    np.testing.assert_array_equal(room[begin : begin + len(expected)], expected)
    assert (room[:begin] == 7).all()
    assert (room[begin + len(expected) :] == 7).all()

    back = np.full_like(values, 9)
    scatter(queue.copy(), reads, gathered_offsets, room[begin:], offsets, back)
    is_read = np.repeat(np.isin(np.arange(n_reads), reads), np.diff(offsets))
    np.testing.assert_array_equal(back, np.where(is_read, values, 9))
