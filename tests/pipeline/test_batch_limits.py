"""Ends of batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.io.bam._bam_numba import KEPT, ULTRA, UNMAPPED
from f5py.pipeline.record_filter import BatchLimits, cut


@settings(deadline=None)
@given(
    reads=st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=40),
    batch_size=st.integers(1, 6),
    max_bases=st.integers(1, 120),
    threshold=st.integers(-1, 40),
    counts_left_out=st.booleans(),
)
def test_batches_are_cut_as_a_loop_would(reads, batch_size, max_bases, threshold, counts_left_out):
    kinds = np.array([KEPT if kept else UNMAPPED for kept, _ in reads], np.uint8)
    lengths = np.array([length for _, length in reads], np.int64)
    ends, n_reads, n_left_out, n_bases = [], 0, 0, 0
    expected_kinds = kinds.tolist()
    for i, (kept, length) in enumerate(reads):
        if kept and 0 <= threshold < length:
            expected_kinds[i] = ULTRA
            kept = False
        n_reads, n_bases = (n_reads + 1, n_bases + length) if kept else (n_reads, n_bases)
        n_left_out += not kept and counts_left_out
        if max(n_reads, n_left_out) >= batch_size or n_bases >= max_bases:
            ends.append(i + 1)
            n_reads = n_left_out = n_bases = 0
    found, first = [], 0
    while first < len(reads):
        state = np.zeros(4, np.int64)
        first = cut(
            kinds, lengths, first, len(reads), BatchLimits(batch_size, max_bases, threshold, counts_left_out), state
        )
        if state[3]:
            found.append(first)
    assert found == ends
    assert kinds.tolist() == expected_kinds
