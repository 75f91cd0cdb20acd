"""Scaling and alignment of reads in one turn, against the loops that it consists of."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from f5py.abea.align import F5C_LIMITS, EventMap, align_read
from f5py.compute.cpu import align_reads
from f5py.core.batch import Events, ReadBatch, ReadStatus
from f5py.core.kmers import base_codes
from f5py.signal.scaling import estimate_scaling, fill_ranks, recalibrate
from f5py.threads.pool import WorkerPool

from ..abea.batch_maker import made_batch
from ..abea.made_reads import MODEL
from ..compiled import compiled

align_read = compiled(align_read)
estimate_scaling = compiled(estimate_scaling)
fill_ranks = compiled(fill_ranks)
recalibrate = compiled(recalibrate)

_K = MODEL.k


@pytest.fixture
def batch() -> ReadBatch:
    """Make reads of which some cannot be aligned, and one has dropped out before."""
    batch = made_batch(np.random.default_rng(5), 24, usual=700, long=3000)
    batch.status[4] = ReadStatus.BAD_READ
    return batch


def _expected(batch: ReadBatch, read: int, is_rna: bool = False) -> tuple:
    """First and last events, verdict, number of pairs, and scaling with the number of events used, of one read."""
    bases = batch.bases[batch.base_offsets[read] : batch.base_offsets[read + 1]]
    events = batch.events.mean[batch.events.offsets[read] : batch.events.offsets[read + 1]].copy()
    ranks = np.empty(len(bases) - _K + 1, np.int32)
    fill_ranks(bases, _K, base_codes(), ranks)
    shift, scale = estimate_scaling(events, ranks, MODEL.level_mean)
    events = events[::-1].copy() if is_rna else events
    first, last = np.empty(len(ranks), np.int32), np.empty(len(ranks), np.int32)
    nothing = np.empty((0, 2), np.int32)
    verdict, n_pairs, _ = align_read(
        events, ranks, MODEL.levels, shift, scale, EventMap(first, last, nothing), F5C_LIMITS
    )
    fit = (0, shift, scale, np.float32(1))
    if n_pairs:
        fit = recalibrate(events, ranks, first, MODEL.level_mean, MODEL.level_stdv)
    return first.tolist(), last.tolist(), verdict, n_pairs, fit


def _found(batch: ReadBatch, read: int) -> tuple:
    own = slice(batch.base_offsets[read], batch.base_offsets[read + 1] - _K + 1)
    rest = slice(own.stop, own.stop + _K - 1)
    first, last = batch.base_map.first_event, batch.base_map.last_event
    assert (first[rest] == -1).all()
    assert (last[rest] == -1).all()
    fit = batch.n_calibration[read], batch.shift[read], batch.scale[read], batch.var[read]
    return first[own].tolist(), last[own].tolist(), batch.verdict[read], batch.n_pairs[read], fit


def test_reads_are_scaled_aligned_and_recalibrated(batch: ReadBatch, pool: WorkerPool) -> None:
    expected = [_expected(batch, read) for read in range(len(batch))]
    seconds = align_reads(batch, MODEL, pool)
    for read in range(len(batch)):
        if read != 4:
            assert _found(batch, read) == expected[read]
    assert 4 < (batch.n_pairs > 0).sum() < len(batch) - 1
    dropped = slice(batch.base_offsets[4], batch.base_offsets[5])
    assert (batch.base_map.first_event[dropped] == -1).all()
    assert (batch.n_pairs[4], batch.n_calibration[4], batch.var[4]) == (0, 0, 1)
    assert seconds[0] > 0
    assert seconds[1] > 0


def test_first_events_only(batch: ReadBatch, pool: WorkerPool) -> None:
    align_reads(batch, MODEL, pool)
    both = batch.base_map
    align_reads(batch, MODEL, pool, firsts_only=True)
    assert len(batch.base_map.last_event) == 0
    np.testing.assert_array_equal(batch.base_map.first_event, both.first_event)


def test_reads_that_are_computed_elsewhere_are_left(batch: ReadBatch, pool: WorkerPool) -> None:
    here = np.arange(len(batch)) % 3 == 0
    expected = [_expected(batch, read) for read in np.flatnonzero(here)]
    align_reads(batch, MODEL, pool, here=here)
    assert [_found(batch, read) for read in np.flatnonzero(here)] == expected
    assert not batch.n_pairs[~here].any()
    assert not batch.shift[~here].any()


def test_events_of_rna_are_reversed_between(batch: ReadBatch, pool: WorkerPool) -> None:
    """The moments are those of the events as they were measured, summed up in that order."""
    offsets, means = batch.events.offsets, batch.events.mean
    measured = np.concatenate([means[b:e][::-1] for b, e in pairwise(offsets)])
    batch.events = Events.none()._replace(offsets=offsets, mean=measured.copy())
    expected = [_expected(batch, read, is_rna=True) for read in range(len(batch))]
    align_reads(batch, MODEL, pool, is_rna=True)
    for read in range(len(batch)):
        if read != 4:
            assert _found(batch, read) == expected[read]
            np.testing.assert_array_equal(
                batch.events.mean[offsets[read] : offsets[read + 1]], means[offsets[read] : offsets[read + 1]]
            )
    assert (batch.n_pairs > 0).sum() > 4


def test_pairs_are_kept(batch: ReadBatch, pool: WorkerPool) -> None:
    align_reads(batch, MODEL, pool, keep_pairs=True)
    for read in np.flatnonzero(batch.n_pairs):
        end = batch.pair_offsets[read + 1]
        pairs = batch.aligned_pairs[end - batch.n_pairs[read] : end]
        assert pairs[0, 0] == 0
        assert (np.diff(pairs, axis=0) >= 0).all()
