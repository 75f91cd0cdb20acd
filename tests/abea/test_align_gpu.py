"""The GPU aligner, on a device that is played on the CPU and on a real one, against the CPU aligner."""

import copy

import numpy as np
import pytest

from f5py.abea import align_gpu as gpu_module
from f5py.abea.align import CpuAligner, finish_alignment, start_alignment
from f5py.abea.align_gpu import GpuAligner, GpuLimits
from f5py.core.workers import WorkerPool
from f5py.gpu.placement import Reason
from f5py.pore_model import builtin

from .batch_maker import made_batch

MODEL = builtin("r9.4_450bps.nucleotide.6mer")
#: Number of a CUDA error.
DEVICES_UNAVAILABLE = 46
_FIELDS = ("first_event", "last_event", "n_pairs", "events_per_base", "status")


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "played":
        request.getfixturevalue("played_gpu")
    pytest.importorskip("cupy", reason="needs cupy")
    from f5py.gpu.device import GpuUnavailableError, open_device

    try:
        return open_device(0)
    except GpuUnavailableError as problem:
        pytest.skip(f"needs a CUDA device: {problem}")


@pytest.fixture(autouse=True)
def small_batches_too(monkeypatch):
    """These batches are so small that the CPU threads alone would be faster; here they go to the GPU all the same."""
    monkeypatch.setattr(gpu_module, "_BAND_LATENCY_RATIO", 0.0)


@pytest.fixture
def pool():
    pool = WorkerPool(2)
    yield pool
    pool.close()


@pytest.fixture
def batch():
    return made_batch(np.random.default_rng(1), 45)


def _aligned(batch, aligner):
    batch = copy.deepcopy(batch)
    start_alignment(batch, aligner)
    finish_alignment(batch, aligner)
    return batch


def _assert_same(one, other):
    for name in _FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("zero_copy", [False, True])
def test_equals_the_cpu_aligner(device, pool, batch, zero_copy):
    placements = []
    aligner = GpuAligner(
        device, MODEL, pool, GpuLimits(max_lf=1e9, avg_epk=8, max_epk=15), 512, 1_000_000, zero_copy
    )
    aligner.on_batch = lambda _, placement, timing: placements.append(placement)
    result = _aligned(batch, aligner)
    assert placements[0].count(Reason.GPU) == len(placements[0].reads) > 35
    _assert_same(result, _aligned(batch, CpuAligner(MODEL, pool)))
    _assert_same(result, _aligned(batch, aligner))
    aligner.close()


def test_default_placement_divides_the_batch_and_nothing_is_lost(device, pool, batch):
    placements = []
    aligner = GpuAligner(device, MODEL, pool, GpuLimits(), 512, 1_000_000)
    aligner.on_batch = lambda _, placement, timing: placements.append(placement)
    _assert_same(_aligned(batch, aligner), _aligned(batch, CpuAligner(MODEL, pool)))
    assert placements[0].count(Reason.GPU) > 0
    assert placements[0].count(Reason.LONG) > 0
    assert placements[0].count(Reason.MANY_EVENTS) > 0
    aligner.close()


def test_a_full_arena_sends_reads_to_the_cpu(device, pool, batch):
    placements = []
    aligner = GpuAligner(device, MODEL, pool, GpuLimits(max_lf=1e9, max_epk=15), 512, 10_000)
    aligner.on_batch = lambda _, placement, timing: placements.append(placement)
    _assert_same(_aligned(batch, aligner), _aligned(batch, CpuAligner(MODEL, pool)))
    assert placements[0].count(Reason.NO_MEMORY) > 0
    aligner.close()


def test_a_batch_too_small_for_the_gpu_is_done_by_the_cpu(device, pool, batch, monkeypatch):
    monkeypatch.setattr(gpu_module, "_BAND_LATENCY_RATIO", 1e9)
    aligner = GpuAligner(device, MODEL, pool, GpuLimits(), 512, 1_000_000)
    monkeypatch.setattr(aligner, "_launch", lambda *_: pytest.fail("launched"))
    _assert_same(_aligned(batch, aligner), _aligned(batch, CpuAligner(MODEL, pool)))
    aligner.close()


def test_two_batches_in_flight(device, pool, batch):
    other = made_batch(np.random.default_rng(2), 30)
    aligner = GpuAligner(device, MODEL, pool, GpuLimits(), 512, 1_000_000)
    one, two = copy.deepcopy(batch), copy.deepcopy(other)
    start_alignment(one, aligner)
    start_alignment(two, aligner)
    finish_alignment(one, aligner)
    finish_alignment(two, aligner)
    cpu = CpuAligner(MODEL, pool)
    _assert_same(one, _aligned(batch, cpu))
    _assert_same(two, _aligned(other, cpu))
    aligner.close()


def test_no_allocation_after_the_start(device, pool, batch):
    import cupy

    aligner = GpuAligner(device, MODEL, pool, GpuLimits(), 512, 1_000_000)
    _aligned(batch, aligner)

    class Counter(cupy.cuda.MemoryHook):
        name = "counter"
        allocations = 0

        def malloc_preprocess(self, **_):
            Counter.allocations += 1

    with Counter():
        _aligned(batch, aligner)
    assert Counter.allocations == 0
    aligner.close()


@pytest.mark.parametrize("kind", ["cuda", "any"])
@pytest.mark.parametrize("where", ["_launch", "_unpack", "_elapsed"])
def test_a_device_failure_is_finished_on_the_cpu(device, pool, batch, monkeypatch, capfd, where, kind):
    aligner = GpuAligner(device, MODEL, pool, GpuLimits(), 512, 1_000_000)

    import cupy

    def fail(*_):
        raise cupy.cuda.runtime.CUDARuntimeError(DEVICES_UNAVAILABLE) if kind == "cuda" else AttributeError("gone")

    monkeypatch.setattr(aligner, where, fail)
    result = _aligned(batch, aligner)
    _assert_same(result, _aligned(batch, CpuAligner(MODEL, pool)))
    _aligned(batch, aligner)
    assert aligner.is_broken
    assert capfd.readouterr().err.count("GPU 0 failed") == 1
    aligner.close()


def test_memory_that_runs_out_at_the_start_shrinks_the_arena(device, pool, batch, monkeypatch, capfd):
    import cupy

    made = gpu_module.Half
    failures = iter([True, False, True])

    def scarce(size, zero_copy):
        if next(failures, False):
            raise cupy.cuda.memory.OutOfMemoryError(1024, 0)
        return made(size, zero_copy)

    monkeypatch.setattr(gpu_module, "Half", scarce)
    aligner = GpuAligner(device, MODEL, pool, GpuLimits(), 512, 1_000_000)
    assert aligner.size.bases < 2_000_000
    assert "trying fewer" in capfd.readouterr().err
    _assert_same(_aligned(batch, aligner), _aligned(batch, CpuAligner(MODEL, pool)))
    aligner.close()
