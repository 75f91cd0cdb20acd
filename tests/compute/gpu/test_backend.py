"""Batches on a GPU, one that is played on the CPU and a real one, against the CPU threads."""

from __future__ import annotations

import copy
from operator import attrgetter

import numpy as np
import pytest

from f5py.compute.cpu import SignalStages, StageTimes
from f5py.compute.gpu import backend as backend_module
from f5py.compute.gpu.backend import GpuBackend, GpuLimits
from f5py.compute.gpu.placement import PlacementReason
from f5py.core.batch import Events, ReadBatch, ReadStatus
from f5py.core.offsets import offsets_of
from f5py.pore_model import builtin
from f5py.signal import events
from f5py.threads.pool import WorkerPool

from ...abea.batch_maker import made_batch

DNA = builtin("r9.4_450bps.nucleotide.6mer")
#: Everything to the GPU.
ALL = {"max_lf": 1e9, "avg_epk": 8, "max_epk": 15}
_FIELDS = (
    "events.offsets", "events.mean", "events.start", "events.length", "events.stdv",
    "base_map.first_event", "base_map.last_event", "n_pairs", "events_per_base", "verdict", "shift",
    "scale", "var", "n_calibration", "status", "cause",
)  # fmt: skip


@pytest.fixture(autouse=True)
def small_batches_too(monkeypatch):
    """Send small batches to the GPU, though the CPU threads alone would be faster."""
    monkeypatch.setattr(backend_module, "_SMALL_RATIO", 0.0)


def batch_with_samples(seed: int, n_reads: int, rna: bool = False) -> ReadBatch:
    """Make a batch as the loader does: the samples have the levels of the events that `made_batch` makes."""
    rng = np.random.default_rng(seed)
    batch = made_batch(rng, n_reads, usual=600, long=2700)
    repeats = rng.integers(*((12, 40) if rna else (4, 10)), len(batch.events.mean))
    level = np.repeat(batch.events.mean, repeats) + rng.normal(0, 1.0, repeats.sum())
    batch.sample_offsets = np.concatenate([[0], np.cumsum(repeats)])[batch.events.offsets]
    batch.offset[:] = 8.0
    batch.unit[:] = 0.17
    batch.samples = np.round(level / 0.17 - 8.0).astype(np.int16)
    spikes = rng.integers(0, len(batch.samples), 40)
    batch.samples[spikes] = rng.integers(-300, 2000, 40)
    batch.events = Events.none()
    # one without a signal, one that was left out before, one with a few samples
    lengths = np.diff(batch.sample_offsets)
    keep = np.ones(len(batch.samples), np.bool_)
    keep[batch.sample_offsets[3] : batch.sample_offsets[4]] = False
    keep[batch.sample_offsets[8] + 4 : batch.sample_offsets[9]] = False
    lengths[[3, 8]] = 0, min(lengths[8], 4)
    batch.samples, batch.sample_offsets = batch.samples[keep], offsets_of(lengths)
    batch.status[5] = ReadStatus.BAD_READ
    return batch


@pytest.fixture(scope="module")
def batch() -> ReadBatch:
    return batch_with_samples(1, 45)


def stages_of(pool: WorkerPool, **more) -> SignalStages:
    return SignalStages(more.pop("parameters", events.DNA), more.pop("rna", False), DNA, pool, StageTimes(2), **more)


def _computed(batch: ReadBatch, backend) -> ReadBatch:
    batch = copy.deepcopy(batch)
    backend.compute(batch)
    return batch


def _assert_same(one: ReadBatch, other: ReadBatch) -> None:
    for name in _FIELDS:
        np.testing.assert_array_equal(attrgetter(name)(one), attrgetter(name)(other), err_msg=name)
    assert (one.status == ReadStatus.OK).sum() > 10


def _watched(device, stages, limits, n_bases=1_000_000, **more):
    seen = []
    more["on_batch"] = lambda _, placement, timing: seen.append(placement)
    return GpuBackend(device, stages, GpuLimits(**limits), 512, n_bases, **more), seen


@pytest.mark.parametrize("means_only", [False, True])
@pytest.mark.parametrize("zero_copy", [False, True])
def test_equals_the_cpu_threads(device, pool, batch, zero_copy, means_only):
    stages = stages_of(pool, means_only=means_only)
    backend, seen = _watched(device, stages, ALL, zero_copy=zero_copy)
    expected = _computed(batch, stages)
    _assert_same(_computed(batch, backend), expected)
    assert seen[0].count(PlacementReason.GPU) > 35
    assert (expected.status != ReadStatus.OK).sum() > 5
    _assert_same(_computed(batch, backend), expected)  # what the first batch left in the arena does no harm
    backend.close()


def test_rna(device, pool):
    """Other windows and thresholds, and the events in the opposite order."""
    stages = stages_of(pool, parameters=events.RNA, rna=True)
    batch = batch_with_samples(7, 20, rna=True)
    backend, seen = _watched(device, stages, ALL)
    found, expected = _computed(batch, backend), _computed(batch, stages)
    for name in _FIELDS:
        np.testing.assert_array_equal(attrgetter(name)(found), attrgetter(name)(expected), err_msg=name)
    assert seen[0].count(PlacementReason.GPU) > 10
    backend.close()


def test_default_placement_divides_the_batch_and_nothing_is_lost(device, pool, batch):
    stages = stages_of(pool)
    backend, seen = _watched(device, stages, {})
    _assert_same(_computed(batch, backend), _computed(batch, stages))
    for reason in (PlacementReason.GPU, PlacementReason.LONG, PlacementReason.MANY_EVENTS):
        assert seen[0].count(reason) > 0
    backend.close()


@pytest.mark.parametrize(
    "limits", [{"max_epk": 15}, {"avg_epk": 0.5}, {"max_epk": 1.2}, {"max_epk": 14, "avg_epk": 1.0}], ids=str
)
def test_a_full_arena_sends_reads_to_the_cpu(device, pool, batch, limits):
    stages = stages_of(pool)
    backend, seen = _watched(device, stages, {"max_lf": 1e9} | limits, 12_000)
    _assert_same(_computed(batch, backend), _computed(batch, stages))
    assert seen[0].count(PlacementReason.NO_MEMORY) + seen[0].count(PlacementReason.MANY_EVENTS) > 0
    backend.close()


def test_a_batch_too_small_for_the_gpu_is_done_by_the_cpu(device, pool, batch, monkeypatch):
    monkeypatch.setattr(backend_module, "_SMALL_RATIO", 1e9)
    stages = stages_of(pool)
    backend, seen = _watched(device, stages, {})
    monkeypatch.setattr(backend_module, "GpuBatchSlice", lambda *_: pytest.fail("launched"))
    _assert_same(_computed(batch, backend), _computed(batch, stages))
    assert seen == []
    backend.close()


def test_batches_at_the_same_time(device, pool, batch):
    """More of them than the arena has parts."""
    from concurrent.futures import ThreadPoolExecutor

    stages = stages_of(pool)
    batches = [batch, *(batch_with_samples(seed, 20) for seed in (2, 3, 4))]
    backend, seen = _watched(device, stages, ALL)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda one: _computed(one, backend), batches))
    for one, computed in zip(batches, found, strict=True):
        for name in _FIELDS:
            np.testing.assert_array_equal(
                attrgetter(name)(computed), attrgetter(name)(_computed(one, stages)), err_msg=name
            )
    assert len(seen) == 4
    backend.close()


def test_no_allocation_after_the_start(device, pool, batch):
    import cupy

    backend, _ = _watched(device, stages_of(pool), {})
    _computed(batch, backend)

    class Counter(cupy.cuda.MemoryHook):
        name = "counter"
        allocations = 0

        def malloc_preprocess(self, **_):
            Counter.allocations += 1

    with Counter():
        _computed(batch, backend)
    assert Counter.allocations == 0
    backend.close()


def test_a_mistake_of_the_cpu_threads_is_not_the_gpus(device, pool, batch, monkeypatch):
    backend, _ = _watched(device, stages_of(pool), {})
    monkeypatch.setattr("f5py.compute.cpu.align_reads", lambda *_, **__: {}["missing"])
    with pytest.raises(KeyError, match="missing"):
        _computed(batch, backend)
    assert not backend.is_broken


@pytest.mark.parametrize("n_bytes", [2_000, 60_000])
def test_samples_that_pass_through_little_memory_of_the_host(device, pool, batch, monkeypatch, n_bytes):
    """In rounds of reads, and reads longer than the room in pieces."""
    assert (2 * batch.n_samples > 2_000).any()
    monkeypatch.setattr("f5py.compute.gpu.buffers._STAGED_BYTES", n_bytes)
    stages = stages_of(pool)
    backend, seen = _watched(device, stages, ALL)
    _assert_same(_computed(batch, backend), _computed(batch, stages))
    assert seen[0].count(PlacementReason.GPU) > 35
    assert not backend.is_broken
    backend.close()


def test_memory_that_runs_out_at_the_start_shrinks_the_arena(device, pool, batch, monkeypatch, capfd):
    import cupy

    made = backend_module.ArenaPart
    failures = iter([True, False, True])

    def scarce(size, zero_copy):
        if next(failures, False):
            raise cupy.cuda.memory.OutOfMemoryError(1024, 0)
        return made(size, zero_copy)

    monkeypatch.setattr(backend_module, "ArenaPart", scarce)
    stages = stages_of(pool)
    backend, _ = _watched(device, stages, {}, 200_000)
    assert backend.size.bases < 150_000
    assert "trying fewer" in capfd.readouterr().err
    _assert_same(_computed(batch, backend), _computed(batch, stages))
    backend.close()


def test_a_device_that_computes_other_numbers_is_not_used(device, pool, monkeypatch):
    from f5py.compute.gpu import batch_slice
    from f5py.compute.gpu.device import GpuUnavailableError
    from f5py.compute.gpu.self_check import without_cache

    fetch = batch_slice.GpuBatchSlice.fetch_fit

    def with_one_wrong_bit(self, batch):
        fetch(self, batch)
        batch.shift.view(np.uint32)[4] ^= 1

    monkeypatch.setattr(batch_slice.GpuBatchSlice, "fetch_fit", with_one_wrong_bit)
    told = r"computes other numbers than the CPU \(shift\); please report"
    with without_cache(), pytest.raises(GpuUnavailableError, match=told):
        GpuBackend(device, stages_of(pool), GpuLimits(), 512, 1_000_000)


@pytest.mark.parametrize("rna", [False, True])
def test_the_batch_that_a_device_is_checked_by_has_something_of_all(pool, rna):
    """Reads that are aligned, one that is not, and sites; the same ones every time."""
    from f5py.compute.gpu.self_check import differences, synthetic_batch
    from f5py.core.motifs import motif_named
    from f5py.methylation.calls import call_methylation

    one, other = (synthetic_batch(DNA, rna) for _ in range(2))
    assert differences(one, other) == []
    stages = stages_of(pool, parameters=events.RNA if rna else events.DNA, rna=rna)
    if not rna:
        model = builtin("r9.4_450bps.cpg.6mer")
        stages.finish = lambda batch, share: call_methylation(batch, motif_named("cpg"), model, pool)
    stages.compute(one)
    assert (one.status == ReadStatus.OK).sum() >= 4
    assert one.status[1] != ReadStatus.OK
    if not rna:
        assert one.calls.n.sum() > 30


def test_the_order_of_the_lanes_does_not_matter(played_gpu, pool, batch, monkeypatch):
    """Between two places where they wait for each other; else one of these is missing."""
    from f5py.compute.gpu.device import open_device

    monkeypatch.setenv("F5PY_PLAYED_LANES", "descending")
    stages = stages_of(pool)
    backend, seen = _watched(open_device(0), stages, ALL)
    _assert_same(_computed(batch, backend), _computed(batch, stages))
    assert seen[0].count(PlacementReason.GPU) > 35
    backend.close()
