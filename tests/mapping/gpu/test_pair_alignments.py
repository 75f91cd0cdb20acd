"""Stretches that a GPU aligns, one that is played on the CPU and a real one, are aligned as by the CPU threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f5py.compute.gpu.device import GpuDevice, open_device
from f5py.core.names import Names
from f5py.mapping.align._pair_alignment_numba import (
    EXTEND,
    EXTEND_BACKWARDS,
    GLOBAL,
    KnownAlignments,
    Stretch,
    align_pair,
    new_room,
)
from f5py.mapping.batch import MappingBatch
from f5py.mapping.gpu import pair_alignments
from f5py.mapping.gpu.pair_alignments import GpuAlignments, strands_of_one, trial_stretches
from f5py.mapping.hits.planned import Stretches
from f5py.mapping.index.packed_bases import pack
from f5py.mapping.settings import PRESETS, Parameters, parameters
from f5py.threads.pool import WorkerPool

from ...examples import examples
from ..real_sets import nothing_made
from ..test_alignment import pairs

_MEMORY = 64 << 20
_ROOM = 1 << 15
_BAND = 751


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    """Stretches that the CPU threads would align where they need them; here they go to the GPU all the same."""
    monkeypatch.setenv("F5PY_PLAYED_MEMORY", str(1 << 36))  # what is freed there is not counted
    monkeypatch.setattr(pair_alignments, "_MOST_SLOTS", 8)
    monkeypatch.setattr(pair_alignments, "_FEWEST_SLOTS", 1)
    monkeypatch.setattr(pair_alignments, "_FEWEST_CELLS", 0)


def stretches_of(
    pool: WorkerPool, these: list[tuple[np.ndarray, np.ndarray]], kind: int, zdrop: int, reverse: bool,
    band: int = _BAND,
) -> Stretches:  # fmt: skip
    """Stretches of one read, which has all queries on one of its strands."""
    made = trial_stretches(pool)
    reference = np.concatenate([target for target, _ in these]).astype(np.uint8)
    read = np.concatenate([query for _, query in these]).astype(np.uint8)
    n = len(read)
    keys, r, s = [], 0, n if reverse else 0
    for target, query in these:
        keys.append([r, len(target), s, len(query), kind, band, -1 if kind == GLOBAL else zdrop])
        r, s = r + len(target), s + len(query)
    codes = np.where(read < 4, 3 - read, 4)[::-1].astype(np.uint8) if reverse else read
    nothing = np.empty(0, np.uint8)
    batch = MappingBatch(
        Names.of(["a"]), nothing, np.array([0, n]), nothing, nothing, np.zeros(2, np.int64), codes=codes
    )
    index = made.index._replace(bases=pack(reference), offsets=np.array([0, len(reference)]))
    return Stretches(batch, index, pool, np.array(keys, np.int64), np.array([0, len(keys)]))


def assert_as_by_the_cpu(gpu: GpuAlignments, stretches: Stretches, numbers: Parameters) -> np.ndarray:
    """Compare all results that the GPU has; return which stretches it has aligned."""
    gpu.keep_reference(stretches.index)
    before = gpu.n_aligned
    keys, results, ops, offsets = gpu.align(stretches)
    there = KnownAlignments(keys, results, ops, offsets, np.array([0, len(keys)]))
    strands = strands_of_one(stretches)
    room = new_room()
    for key in keys.tolist():
        found, expected = (
            align_pair(
                stretches.index.bases, strands, Stretch(*key), numbers.integers, np.empty(2, np.int64), 0, made, room,
            )
            for made in (there, nothing_made())
        )  # fmt: skip
        assert found[1:] == expected[1:], key
        assert found[0][: found[1]].tolist() == expected[0][: found[1]].tolist(), key
    is_there = results[:, 5] >= 0
    assert is_there.sum() <= gpu.n_aligned - before
    return is_there


@pytest.mark.parametrize("zero_copy", [False, True])
@pytest.mark.parametrize("preset", ["map-ont", "map-hifi"])
def test_made_stretches(device, pool, preset, zero_copy):
    numbers = parameters(PRESETS[preset], 10)
    gpu = GpuAlignments(device, numbers, _MEMORY, _ROOM, zero_copy)
    gpu.check(numbers, pool)
    for _ in range(2):  # what the first ones have left does no harm
        assert assert_as_by_the_cpu(gpu, trial_stretches(pool), numbers).all()
    gpu.close()


def test_the_order_of_the_lanes_does_not_matter(played_gpu, pool, monkeypatch):
    monkeypatch.setenv("F5PY_PLAYED_LANES", "descending")
    numbers = parameters(PRESETS["map-ont"], 10)
    gpu = GpuAlignments(open_device(0), numbers, _MEMORY, _ROOM)
    assert assert_as_by_the_cpu(gpu, trial_stretches(pool), numbers).all()


def test_several_rounds(device: GpuDevice, pool: WorkerPool, monkeypatch):
    monkeypatch.setattr(pair_alignments, "_FEWEST_PACKED", 512)
    monkeypatch.setattr(pair_alignments, "_FEWEST_SLOTS", 1)
    numbers = parameters(PRESETS["map-ont"], 10)
    gpu = GpuAlignments(device, numbers, 4 << 20, 256)
    rng = np.random.default_rng(1)
    these = [(rng.integers(0, 4, n), rng.integers(0, 4, m)) for n, m in rng.integers(1, 200, (20, 2))]
    stretches = stretches_of(pool, these, GLOBAL, -1, False)
    is_there = assert_as_by_the_cpu(gpu, stretches, numbers)
    assert is_there.sum() > 10  # unrelated sequences have more operations than there is room for
    gpu.close()


def test_what_the_gpu_leaves_to_the_cpu(device, pool):
    """Gaps that are wider than their band, empty ones, and those of bands that are too wide for a block."""
    numbers = parameters(PRESETS["map-ont"], 10)
    gpu = GpuAlignments(device, numbers, _MEMORY, _ROOM)
    lengths = [(1025, 10), (10, 1025), (900, 100), (0, 10), (10, 0), (740, 720), (200, 210)]
    rng = np.random.default_rng(2)
    target = rng.integers(0, 4, 2000)
    these = [(target[:n], target[:m]) for n, m in lengths]
    stretches = stretches_of(pool, these, GLOBAL, -1, True)
    assert assert_as_by_the_cpu(gpu, stretches, numbers).tolist() == [False] * 5 + [True, True]
    stretches = stretches_of(pool, [(target[:1600], target[10:1610])], EXTEND, 400, False, 1599)
    assert assert_as_by_the_cpu(gpu, stretches, numbers).tolist() == [False]
    gpu.close()


def with_errors(rng: np.random.Generator, bases: np.ndarray, n: int) -> np.ndarray:
    """Bases with `n` deletions, insertions and other bases each."""
    read = np.delete(bases, rng.integers(0, len(bases), n))
    read = np.insert(read, rng.integers(0, len(read), n), rng.integers(0, 4, n))
    read[rng.integers(0, len(read), n)] = rng.integers(0, 4, n)
    return read


@pytest.mark.parametrize("kind", [EXTEND, EXTEND_BACKWARDS])
def test_long_ends(device, pool, kind):
    """Ends that reach the last base, that drop, and whose band ends before the longer of both does."""
    numbers = parameters(PRESETS["map-ont"], 10)
    gpu = GpuAlignments(device, numbers, _MEMORY, _ROOM)
    rng = np.random.default_rng(3)
    target = rng.integers(0, 4, 1900)
    good = with_errors(rng, target, 80)
    dropping = np.concatenate([good[:700], rng.integers(0, 4, 1100)])
    step = -1 if kind == EXTEND_BACKWARDS else 1
    these = [(target[::step], query[::step]) for query in (good, dropping, good[:600])]
    stretches = stretches_of(pool, these, kind, 400, False)
    assert assert_as_by_the_cpu(gpu, stretches, numbers).all()
    assert stretches.results[:, 4].tolist() == [0, 1, 1]
    assert (stretches.results[:, 5] > 50).all()
    gpu.close()


def test_gaps_within_a_narrower_band(device, pool):
    """The better the alignment the narrower the band that proves it; others are left to the CPU."""
    numbers = parameters(PRESETS["map-ont"], 10)
    gpu = GpuAlignments(device, numbers, _MEMORY, _ROOM)
    rng = np.random.default_rng(4)
    target = rng.integers(0, 4, 1200)
    shifted = np.concatenate([rng.integers(0, 4, 300), target[:900]])
    these = [(target, with_errors(rng, target, 50)), (target, rng.integers(0, 4, 1200)), (target, shifted)]
    stretches = stretches_of(pool, these, GLOBAL, -1, False, 30001)
    assert assert_as_by_the_cpu(gpu, stretches, numbers).tolist() == [True, False, True]
    gpu.close()


@pytest.mark.parametrize("lanes", ["ascending", "descending"])
def test_the_order_of_threads_and_rounds_do_not_matter(played_gpu, pool, monkeypatch, lanes):
    """Only so many rounds are taken; the shortest ones are left to the CPU then."""
    monkeypatch.setenv("F5PY_PLAYED_LANES", lanes)
    monkeypatch.setattr(pair_alignments, "_CELLS_ROOM", 1 << 14)
    numbers = parameters(PRESETS["map-ont"], 10)
    gpu = GpuAlignments(open_device(0), numbers, _MEMORY, _ROOM)
    rng = np.random.default_rng(5)
    target = rng.integers(0, 4, 400)
    these = [(target[:n], with_errors(rng, target, 20)[:n]) for n in (390, 210, 380, 200, 370)]
    stretches = stretches_of(pool, these, EXTEND, 400, True, 61)
    assert assert_as_by_the_cpu(gpu, stretches, numbers).tolist() == [True, False, True, False, False]
    gpu.close()


class TestAnyStretches:
    @pytest.mark.parametrize("kind", [EXTEND, EXTEND_BACKWARDS, GLOBAL])
    @settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        these=st.lists(pairs(), min_size=1, max_size=6), zdrop=st.sampled_from([5, 20, 400]),
        preset=st.sampled_from(["map-ont", "map-hifi"]), reverse=st.booleans(),
    )  # fmt: skip
    def test_as_by_the_cpu(self, device, pool, kind, these, zdrop, preset, reverse):
        numbers = parameters(PRESETS[preset], 10)
        gpu = GpuAlignments(device, numbers, _MEMORY, 256)
        assert_as_by_the_cpu(gpu, stretches_of(pool, these, kind, zdrop, reverse), numbers)
        gpu.close()

    @pytest.mark.parametrize("kind", [EXTEND, EXTEND_BACKWARDS, GLOBAL])
    @settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        these=st.lists(st.lists(pairs(), min_size=1, max_size=5), min_size=1, max_size=3),
        band=st.sampled_from([0, 1, 3, 10, 40, 127, 128, 200, _BAND]), zdrop=st.sampled_from([5, 20, 60, 400]),
        preset=st.sampled_from(["map-ont", "map-hifi"]), reverse=st.booleans(),
    )  # fmt: skip
    def test_within_any_band(self, device, pool, monkeypatch, kind, these, band, zdrop, preset, reverse):
        """All of them by blocks, in bands that are much narrower than the stretches and in others."""
        monkeypatch.setattr(pair_alignments, "_MOST_BASES", 1)
        numbers = parameters(PRESETS[preset], 10)
        gpu = GpuAlignments(device, numbers, _MEMORY, 2048)
        joined = [tuple(np.concatenate(parts) for parts in zip(*some, strict=True)) for some in these]
        assert_as_by_the_cpu(gpu, stretches_of(pool, joined, kind, zdrop, reverse, band), numbers)
        gpu.close()
