"""Batches that are made without alignments."""

from __future__ import annotations

import numpy as np

from f5py.core.batch import ReadStatus
from f5py.io.signals import SignalBlock
from f5py.pipeline.sequence_loader import unmapped_batch


def test_batch_of_reads_that_are_mapped_to_nothing():
    signals = SignalBlock(
        samples=np.arange(5, dtype=np.int16),
        offsets=np.array([0, 3, 3, 5]),
        digitisation=np.array([8192, np.nan, 4096], np.float32),
        offset=np.array([3, np.nan, 4], np.float32),
        range=np.array([1024, np.nan, 1024], np.float32),
        sampling_rate=np.array([4000, np.nan, 5000], np.float32),
        problems={1: "read b has no samples"},
    )
    bases = np.frombuffer(b"ACGTTG", np.uint8)
    batch = unmapped_batch(7, ["a", "b", "c"], bases, np.array([0, 2, 3, 6]), signals)
    assert (batch.number, len(batch), batch.names) == (7, 3, ["a", "b", "c"])
    assert batch.status.tolist() == [ReadStatus.OK, ReadStatus.BAD_READ, ReadStatus.OK]
    assert batch.read_length.tolist() == [2, 1, 3]
    assert batch.n_samples.tolist() == [3, 0, 2]
    np.testing.assert_array_equal(batch.unit, np.array([0.125, np.nan, 0.25], np.float32))
    np.testing.assert_array_equal(batch.offset, signals.offset)
    np.testing.assert_array_equal(batch.sampling_rate, signals.sampling_rate)
    assert batch.contig.tolist() == [-1, -1, -1]
    for offsets in (batch.cigar_offsets, batch.reference_offsets):
        assert offsets.tolist() == [0, 0, 0, 0]
    # arrays of their own, as stages may fill them in place
    assert not np.shares_memory(batch.reference_start, batch.reference_end)
    assert not np.shares_memory(batch.cigar_offsets, batch.reference_offsets)


def test_batch_of_no_reads():
    none = np.empty(0, np.float32)
    signals = SignalBlock(np.empty(0, np.int16), np.zeros(1, np.int64), none, none, none, none)
    batch = unmapped_batch(0, [], np.empty(0, np.uint8), np.zeros(1, np.int64), signals)
    assert len(batch) == len(batch.read_length) == len(batch.n_samples) == 0
