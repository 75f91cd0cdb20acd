"""Joins of chains on a GPU, one that is played on the CPU and a real one, are those of the CPU threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f5py.compute.gpu.device import GpuDevice, GpuUnavailableError
from f5py.core.offsets import offsets_of
from f5py.mapping.batch import Anchors
from f5py.mapping.chain.joins import Joins, long_reach_of, made_room
from f5py.mapping.gpu import joins as gpu_joins
from f5py.mapping.gpu.joins import GpuJoins, are_joined_alike, trial_joins
from f5py.mapping.settings import INNER_DISTANCE, PRESETS, MapSettings, parameters
from f5py.threads.pool import WorkerPool

from ...examples import examples

ONT = PRESETS["map-ont"]
SETTINGS = {
    "usual": {},
    "no skip": {"max_skip": 1_000_000},
    "skip 0": {"max_skip": 0},
    "skip 2": {"max_skip": 2},
    "narrow": {"max_gap": 200, "bw": 100, "bw_long": 300},
}
_ROOM = 1 << 15


@pytest.fixture(autouse=True)
def all_goes_to_the_gpu(monkeypatch):
    """Send small batches to the GPU, though the CPU threads would be faster."""
    monkeypatch.setattr(gpu_joins, "_FEW_ANCHORS", -1)


def joins_of(reads: list[tuple[np.ndarray, np.ndarray]], these: MapSettings, pool: WorkerPool) -> Joins:
    """Make joins of anchors that are sorted as those of chains that are worth it."""
    from f5py.mapping.chain.joins import TO_JOIN

    numbers = parameters(these, 10)
    sizes = np.array([len(x) for x, _ in reads])
    nothing = np.empty(0, np.int64)
    x, y = (np.concatenate(parts) for parts in zip(*reads, strict=True))
    cut = made_room(len(reads), Anchors(x, y, offsets_of(sizes), *[nothing] * 5))
    cut.x[:], cut.y[:] = x, y
    cut.n_anchors[:], cut.work[:], cut.states[:] = sizes, 0, TO_JOIN
    reach = max(long_reach_of(numbers), INNER_DISTANCE)
    for i, (on_contig, _) in enumerate(reads):
        places = on_contig.astype(np.int64)
        cut.n_segments[i] = 1 + ((np.diff(places) > reach) | (places[1:] >> 32 != places[:-1] >> 32)).sum()
    return Joins(np.full(len(reads), 1 << 20), cut, np.argsort(-sizes, kind="stable"), numbers, pool, 0)


def assert_joined_by(device: GpuDevice, pool: WorkerPool, joins: Joins, n_times: int = 1, **more) -> None:
    """Score joins on the GPU, as the CPU does; what an earlier batch has left in the arena does no harm."""
    from f5py.mapping.chain.joins import JOINED

    gpu = GpuJoins(device, joins.parameters, pool, 1 << 30, _ROOM, **more)
    for _ in range(n_times):
        gpu.join(joins)
    gpu.close()
    assert gpu.n_joined == n_times * len(joins.reads) > 0
    assert (joins.cut.states[joins.reads] == JOINED).all()
    assert are_joined_alike(joins)


def made_read(rng: np.random.Generator, n: int, n_places: int) -> tuple[np.ndarray, np.ndarray]:
    """Anchors of a read that crosses itself, has repeats, jumps and equal places, in the order of the reference."""
    on_read = np.sort(rng.integers(20, 3000, n))
    shift = rng.choice([0, 0, 0, 5, -7, 400, 1500, 9000, 30000], n)
    strand = rng.choice([0, 0, 0, 1 << 63, 1 << 32], n).astype(np.uint64)
    x = strand | (5000 + on_read // n_places * n_places + shift).astype(np.uint64)
    order = np.argsort(x, kind="stable")
    return x[order], (rng.choice([10, 15, 28], n) << 32 | on_read)[order]


@pytest.mark.parametrize("zero_copy", [False, True])
def test_made_joins(device, pool, zero_copy):
    joins = trial_joins(parameters(ONT, 10), pool)
    assert len(joins.reads) == 6
    assert_joined_by(device, pool, joins, n_times=2, zero_copy=zero_copy)
    assert (joins.cut.p[: joins.cut.n_anchors[0]] >= 0).any()


@pytest.mark.parametrize("these", SETTINGS)
def test_equals_the_cpu_threads(device, pool, these):
    rng = np.random.default_rng(5)
    reads = [
        made_read(rng, n, n_places) for n, n_places in ((400, 1), (300, 8), (150, 1), (33, 1), (32, 4), (2, 1), (1, 1))
    ]
    joins = joins_of(reads, ONT._replace(**SETTINGS[these]), pool)
    assert joins.cut.n_segments.max() > 2
    assert_joined_by(device, pool, joins)


@pytest.mark.usefixtures("device", "pool")
class TestAnyAnchors:
    @given(st.integers(0, 2**32), st.integers(1, 120), st.sampled_from([1, 16, 100]), st.integers(0, 30))
    @settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_anchors(self, device, pool, seed, n, n_places, max_skip):
        reads = [made_read(np.random.default_rng(seed), n, n_places)]
        assert_joined_by(device, pool, joins_of(reads, ONT._replace(max_skip=max_skip), pool))


def test_the_order_of_the_lanes_does_not_matter(played_gpu, pool, monkeypatch):
    from f5py.compute.gpu.device import open_device

    monkeypatch.setenv("F5PY_PLAYED_LANES", "descending")
    reads = [made_read(np.random.default_rng(3), 200, 4)]
    assert_joined_by(open_device(0), pool, joins_of(reads, ONT, pool))


def test_several_rounds_and_reads_for_the_cpu_threads(device, pool, monkeypatch):
    from f5py.mapping.chain.joins import JOINED, TO_JOIN

    monkeypatch.setattr(gpu_joins, "_FEWEST_ANCHORS", 500)
    monkeypatch.setattr(gpu_joins, "_MOST_ANCHORS", 500)
    rng = np.random.default_rng(1)
    joins = joins_of([made_read(rng, n, 1) for n in (600, 400, 300, 200, 100)], ONT, pool)
    joins.cut.work[3] = 1 << 40
    gpu = GpuJoins(device, joins.parameters, pool, 1 << 30, _ROOM)
    gpu.join(joins)
    gpu.close()
    assert joins.cut.states.tolist() == [TO_JOIN, JOINED, JOINED, TO_JOIN, JOINED]
    joins.reads = joins.reads[joins.cut.states[joins.reads] == JOINED]
    assert are_joined_alike(joins)


def test_few_anchors_are_left_to_the_cpu_threads(device, pool, monkeypatch):
    joins = joins_of([made_read(np.random.default_rng(1), 50, 1)], ONT, pool)
    gpu = GpuJoins(device, joins.parameters, pool, 1 << 30, _ROOM)
    monkeypatch.setattr(gpu_joins, "_FEW_ANCHORS", 1000)
    gpu.join(joins)
    gpu.close()
    assert gpu.n_joined == 0


def test_a_device_that_joins_in_another_way_is_not_used(device, pool, monkeypatch):
    monkeypatch.setattr(gpu_joins, "INNER_DISTANCE", 10)
    with pytest.raises(GpuUnavailableError, match="joins chains in another way than the CPU"):
        GpuJoins(device, parameters(ONT, 11), pool, 1 << 30, _ROOM)
