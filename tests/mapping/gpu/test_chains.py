"""Chains of anchors on a GPU, one that is played on the CPU and a real one, are those of the CPU threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f5py.compute.gpu.device import GpuDevice, GpuUnavailableError
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.mapping.batch import Anchors, MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.chain.segments import Segments, nothing_stops
from f5py.mapping.gpu import chains
from f5py.mapping.gpu.chains import GpuChaining, trial_anchors
from f5py.mapping.settings import PRESETS, MapSettings, parameters
from f5py.threads.pool import WorkerPool

from ...examples import examples

ONT = PRESETS["map-ont"]
#: Where the search for a predecessor may stop, where nothing stops it, and where few anchors are tried.
SEARCHES = {
    "usual": {},
    "no skip": {"max_skip": 1_000_000},
    "skip 0": {"max_skip": 0},
    "skip 5, few tried": {"max_skip": 5, "max_iter": 50},
    "few tried": {"max_skip": 1_000_000, "max_iter": 50},
    "wide band": {"max_gap": 300, "bw": 1000},
}


#: Bases of a batch: an arena for more takes the played device long to fill.
_ROOM = 1 << 15


@pytest.fixture(autouse=True)
def all_goes_to_the_gpu(monkeypatch):
    """Send small batches and long segments to the GPU, though the CPU threads would be faster."""
    monkeypatch.setattr(chains, "_FEW_PAIRS", -1)
    monkeypatch.setattr(chains, "_CPU_NS", (1e9, 0))


def batch_with(anchors: Anchors) -> MappingBatch:
    n = len(anchors.offsets) - 1
    nothing, places = np.empty(0, np.uint8), np.zeros(n + 1, np.int64)
    return MappingBatch(
        Names.of([f"r{i}" for i in range(n)]), nothing, places, nothing, nothing, places, anchors=anchors
    )


def anchors_of(reads: list[tuple[np.ndarray, np.ndarray]]) -> Anchors:
    nothing, scores = np.empty(0, np.int64), np.empty(0, np.int32)
    return Anchors(
        np.concatenate([x for x, _ in reads]).astype(np.uint64), np.concatenate([y for _, y in reads]),
        offsets_of([len(x) for x, _ in reads]), nothing, nothing, nothing, scores, scores,
    )  # fmt: skip


def scored(batch: MappingBatch) -> tuple[list[int], list[int]]:
    assert batch.anchors is not None
    return batch.anchors.f.tolist(), batch.anchors.p.tolist()


def compared(
    device: GpuDevice, pool: WorkerPool, anchors: Anchors, these: MapSettings, n_times: int = 2, **more
) -> list[int]:
    """Score anchors on the CPU threads and on the GPU; return how many anchors were scored in each way.

    Where the search may stop, once with a block for each segment and once with a warp. What an earlier batch has left
    in the arena does no harm.
    """
    numbers = parameters(these, 10)
    expected, found = batch_with(anchors), batch_with(anchors)
    score_chains(expected, numbers, pool)
    n_scored = np.zeros(4, int)
    for wide in (chains._WIDE_BACK,) if nothing_stops(numbers) else (0, 1 << 40):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(chains, "_WIDE_BACK", wide)
            gpu = GpuChaining(device, numbers, pool, _ROOM, **more)
            for _ in range(n_times):
                gpu.compute(found)
            gpu.close()
        assert not gpu.is_broken
        assert scored(found) == scored(expected)
        n_scored += gpu.n_scored
    return n_scored.tolist()


@pytest.mark.parametrize("zero_copy", [False, True])
@pytest.mark.parametrize("search", SEARCHES)
def test_equals_the_cpu_threads(device, pool, search, zero_copy):
    n_scored = compared(device, pool, trial_anchors(), ONT._replace(**SEARCHES[search]), zero_copy=zero_copy)
    is_forward = search in ("no skip", "few tried")
    assert (sum(n_scored[:2]) > 0) == is_forward
    assert [count > 0 for count in n_scored[2:]] == 2 * [not is_forward]


@pytest.mark.parametrize("max_skip", [25, 200, 4000])
def test_predecessors_that_are_not_held_in_shared_memory(device, pool, monkeypatch, max_skip):
    """A warp that looks back has the last 256 anchors there, a block 2048; here they have fewer."""
    monkeypatch.setattr(chains, "_BACK_MACROS", ("-DHELD=32",))
    rng = np.random.default_rng(8)
    reads, n = [], 900
    for _ in range(2):
        x = np.sort(rng.choice(4 * n, n, replace=False)) + 100
        first = np.arange(n) < n // 3
        # in the middle there is nothing but what leads away from the chain
        on_read = np.where(first | (np.arange(n) > n - 200), x + rng.integers(-3, 4, n), 5000 - x)
        reads.append((x, np.int64(15) << 32 | on_read + 1000))
    anchors = anchors_of(reads)
    these = ONT._replace(max_skip=max_skip, max_gap=5000)
    n_scored = compared(device, pool, anchors, these, n_times=1)
    assert n_scored[2:] == 2 * [len(anchors.x)]
    batch = batch_with(anchors)
    score_chains(batch, parameters(these, 10), pool)
    assert batch.anchors is not None
    distance = np.tile(np.arange(n), 2) - batch.anchors.p
    assert (distance[batch.anchors.p >= 0] > 256).any()


def test_both_ways_to_share_the_work_of_a_forward_transform(device, pool, monkeypatch):
    for wide, n in ((0, 2), (1 << 20, 0)):
        monkeypatch.setattr(chains, "_WIDE", wide)
        found = compared(device, pool, trial_anchors(), ONT._replace(max_skip=5000))
        assert [count > 0 for count in found] == [n == 2, n == 0, False, False]


@pytest.mark.parametrize("search", ["usual", "no skip"])
def test_the_order_of_the_lanes_does_not_matter(played_gpu, pool, monkeypatch, search):
    from f5py.compute.gpu.device import open_device

    monkeypatch.setenv("F5PY_PLAYED_LANES", "descending")
    compared(open_device(0), pool, trial_anchors(), ONT._replace(**SEARCHES[search]), n_times=1)


def test_several_rounds_and_segments_for_the_cpu_threads(device, pool, monkeypatch):
    monkeypatch.setattr(chains, "_FEWEST_ANCHORS", 500)
    monkeypatch.setattr(chains, "_MOST_ANCHORS", 500)
    # six segments have 110 anchors, six have 100, and six have 90
    for name in ("_BLOCK_NS", "_WARP_NS"):
        monkeypatch.setattr(chains, name, (100, 0))
    monkeypatch.setattr(chains, "_CPU_NS", (100 / 12 * pool.n_threads, 0))
    assert compared(device, pool, trial_anchors(), ONT) == [0, 0, 2 * 6 * 190, 2 * 6 * 190]


def test_segments_that_do_not_fit_into_the_arena(device, pool, monkeypatch):
    monkeypatch.setattr(chains, "_FEWEST_ANCHORS", 120)
    monkeypatch.setattr(chains, "_MOST_ANCHORS", 120)
    x = 20 * np.arange(1, 131)
    anchors = anchors_of([(x[:n], np.int64(15) << 32 | x[:n]) for n in (130, 100)])
    assert compared(device, pool, anchors, ONT) == [0, 0, 200, 200]
    assert compared(device, pool, anchors, ONT._replace(max_skip=5000)) == [0, 200, 0, 0]


def test_cpu_threads_take_the_longest_segments_if_that_ends_sooner(device, pool, monkeypatch):
    """A thread is faster than a warp of the GPU and slower than a block."""
    monkeypatch.setattr(chains, "_CPU_NS", (220, 68))
    numbers = parameters(ONT, 10)
    gpu = GpuChaining(device, numbers, pool, _ROOM)
    x = np.arange(1, 8001)
    sparse = [(20 * x[:n], np.int64(15) << 32 | x[:n] * 20) for n in (50, 8000, 100)]
    dense = (x, np.int64(15) << 32 | x)
    for reads, by_threads, by_the_gpu in ((sparse, [1], [2, 0]), ([*sparse, dense], [], [3, 1, 2, 0])):
        segments = Segments.of(anchors_of(reads), numbers, pool, 0)
        kinds = gpu._kinds(segments)
        assert kinds.tolist() == ([chains._BACK_WARP] * 3 + [chains._BACK_BLOCK])[: len(reads)]
        here, elsewhere = gpu._shared_out(segments, kinds)
        assert (elsewhere.tolist(), here.tolist()) == (by_threads, by_the_gpu)
    gpu.close()


def test_few_pairs_are_left_to_the_cpu_threads(device, pool, monkeypatch):
    monkeypatch.setattr(chains, "_FEW_PAIRS", 1 << 40)
    assert compared(device, pool, trial_anchors(), ONT) == [0, 0, 0, 0]


def test_reads_too_long_for_the_gpu(device, pool):
    anchors = trial_anchors()
    batch, expected = batch_with(anchors), batch_with(anchors)
    batch.offsets = batch.offsets + np.array([0, 0, 1 << 24, 1 << 24, 1 << 24, 1 << 24, 1 << 24])
    score_chains(expected, parameters(ONT, 10), pool)
    gpu = GpuChaining(device, parameters(ONT, 10), pool, _ROOM)
    gpu.compute(batch)
    gpu.close()
    assert gpu.n_scored == [0, 0, 0, 0]
    assert scored(batch) == scored(expected)


def test_distances_too_long_for_the_gpu(device, pool):
    with pytest.raises(GpuUnavailableError, match="-g and -r are 1073741824 or more"):
        GpuChaining(device, parameters(ONT._replace(max_gap=1 << 30), 10), pool)


@st.composite
def random_anchors(draw: st.DrawFn) -> Anchors:
    """Anchors of reads on strands of two contigs: with repeats, equal places, gaps out of reach, ends of the range."""
    reads = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(0, 150))
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        step = draw(st.sampled_from([0, 3, 20, 400, 6000]))
        on_contig = np.cumsum(rng.integers(0, step + 1, n) * rng.integers(0, 2, n))
        on_contig += draw(st.sampled_from([0, 1 << 20, (1 << 31) - 1 - int(on_contig[-1]) if n else 0]))
        x = on_contig + (rng.integers(0, draw(st.integers(1, 3)), n) << 32)
        on_read = np.clip(on_contig - on_contig[:1].sum() + rng.integers(-50, 51, n) + 60, 20, (1 << 24) - 1)
        jumps = rng.integers(0, 4, n) == 0
        on_read = np.where(jumps, rng.integers(20, 3000, n), on_read)
        x = x.astype(np.uint64) | np.where(rng.integers(0, draw(st.integers(1, 2)), n), np.uint64(1 << 63), 0).astype(
            np.uint64
        )
        order = np.argsort(x, kind="stable")
        span = rng.integers(*draw(st.sampled_from([(15, 16), (4, 256)])), n)
        reads.append((x[order], (span << 32 | on_read)[order] | (rng.integers(0, 16, n) << 40)))
    return anchors_of(reads)


class TestAnyAnchors:
    """Serial, look-back and forward are the same."""

    @pytest.mark.parametrize("search", SEARCHES)
    @settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(anchors=random_anchors(), shape=st.sampled_from([(8, 2, 256), (2, 1, 16), (2, 2, 32)]))
    def test_of_the_gpu(self, device, pool, search, anchors, shape):
        """Few rows at a time and few anchors in shared memory, too: a search then takes several rounds."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(chains, "_BACK_WARPS", shape[0])
            names = ("BACK_WARPS", "AT_ONCE", "HELD")
            patched.setattr(
                chains, "_BACK_MACROS", tuple(f"-D{name}={n}" for name, n in zip(names, shape, strict=True))
            )
            compared(device, pool, anchors, ONT._replace(**SEARCHES[search]))

    @pytest.mark.parametrize("search", SEARCHES)
    @pytest.mark.parametrize("smallest", [1, 5, 300])
    @settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(anchors=random_anchors())
    def test_of_segments(self, pool, search, smallest, anchors):
        numbers = parameters(ONT._replace(**SEARCHES[search]), 10)
        expected = batch_with(anchors)
        score_chains(expected, numbers, pool)
        segments = Segments.of(anchors, numbers, pool, 0, smallest)
        assert (segments.sizes >= smallest).all()
        segments.score(np.arange(len(segments.table))[::-1].copy())
        assert (segments.f.tolist(), segments.p.tolist()) == scored(expected)
