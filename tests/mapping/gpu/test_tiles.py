"""Tiles on a GPU, one that is played on the CPU and a real one, are those of the CPU threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f5py.compute.gpu.device import GpuDevice
from f5py.core.offsets import offsets_of
from f5py.mapping.darwin.darwin_settings import DarwinSettings, darwin_integers
from f5py.mapping.darwin.dsoft import strands_of
from f5py.mapping.darwin.extensions import COLUMNS, Extensions, Targets
from f5py.mapping.darwin.gact import extend_all
from f5py.mapping.gpu import tiles
from f5py.mapping.gpu.tiles import GpuTiles, trial_extensions
from f5py.threads.pool import WorkerPool

SCORES = (1, -1, -1, -1)
OURS, PAPER = DarwinSettings(), DarwinSettings(after_seed=False, spread=False)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Batches of these sizes go to the GPU, and its arena is small: the played device fills it slowly."""
    monkeypatch.setattr(tiles, "_FEW_CANDIDATES", -1)
    monkeypatch.setattr(tiles, "_MOST_CANDIDATES", 64)
    monkeypatch.setattr(tiles, "_FEWEST_CANDIDATES", 4)
    monkeypatch.setattr(tiles, "_FEWEST_PATHS", 1 << 14)
    monkeypatch.setattr(tiles, "_MORE_BASES", 1 << 13)


def compared(
    device: GpuDevice, pool: WorkerPool, made: Extensions, targets: Targets, these: DarwinSettings = OURS,
    scores: tuple[int, int, int, int] = SCORES, plain: bool = False, **more,
) -> GpuTiles:  # fmt: skip
    """Extend candidates on the CPU threads and on the GPU, also for their paths."""
    integers = darwin_integers(these, 14, scores, 0)

    def fresh() -> Extensions:
        return Extensions.of(made.strands, made.offsets, made.table)

    expected, found = fresh(), fresh()
    extend_all(expected, targets, integers, pool, plain)
    gpu = GpuTiles(device, targets, integers, pool, more.pop("n_bases", int(made.offsets[-1]) + 100), **more)
    gpu.compute(found)
    assert np.array_equal(found.results, expected.results)
    everything = np.arange(len(made.table))
    of_cpu, of_gpu = expected.with_paths(everything), found.with_paths(everything)
    extend_all(of_cpu, targets, integers, pool, plain)
    gpu.compute(of_gpu)
    gpu.close()
    assert not gpu.is_broken
    assert np.array_equal(of_gpu.results, expected.results)
    assert np.array_equal(of_cpu.results, expected.results)
    assert of_gpu.ops.tolist() == of_cpu.ops.tolist()
    return gpu


@pytest.mark.parametrize(
    ("these", "zero_copy", "plain"),
    [(OURS, False, False), (OURS, True, True), (PAPER, False, True), (PAPER, True, False)],
)
def test_equals_the_cpu_threads(device, pool, these, zero_copy, plain):
    made, targets = trial_extensions()
    gpu = compared(device, pool, made, targets, these, zero_copy=zero_copy, plain=plain)
    assert gpu.n_extended == 2 * len(made.table)
    integers = darwin_integers(these, 14, SCORES, 0)
    extend_all(made, targets, integers, pool)
    found = made.results[:, COLUMNS] > 0
    assert found.any()
    assert these is OURS or not found.all()


@pytest.mark.parametrize("scores", [(2, -1, -2, -2), (1, -3, -1, -1), (5, -4, -10, -1), (100, -60, -20, -3)])
def test_other_scores(device, pool, scores):
    compared(device, pool, *trial_extensions(), scores=scores)


def test_the_order_of_the_lanes_does_not_matter(played_gpu, pool, monkeypatch):
    from f5py.compute.gpu.device import open_device

    monkeypatch.setenv("F5PY_PLAYED_LANES", "descending")
    compared(open_device(0), pool, *trial_extensions())


def test_several_rounds_and_paths_for_the_cpu_threads(device, pool, monkeypatch):
    monkeypatch.setattr(tiles, "_MOST_CANDIDATES", 5)
    monkeypatch.setattr(tiles, "_FEWEST_PATHS", 800)
    monkeypatch.setattr(tiles, "_PATHS_OF_BASE", 0)
    monkeypatch.setattr(tiles.GpuTiles, "_check", lambda self: None)  # some of its paths are longer
    made, targets = trial_extensions()
    gpu = compared(device, pool, made, targets)
    assert len(made.table) < gpu.n_extended < 2 * len(made.table)


def test_what_is_left_to_the_cpu_threads(device, pool, monkeypatch):
    made, targets = trial_extensions()
    monkeypatch.setattr(tiles.GpuTiles, "_check", lambda self: None)
    monkeypatch.setattr(tiles, "_MORE_BASES", int(made.offsets[-1]))
    assert compared(device, pool, made, targets, n_bases=0).n_extended > 0
    monkeypatch.setattr(tiles, "_MORE_BASES", int(made.offsets[-1]) - 1)
    assert compared(device, pool, made, targets, n_bases=0).n_extended == 0
    monkeypatch.setattr(tiles, "_MORE_BASES", 1 << 13)
    monkeypatch.setattr(tiles, "_FEW_CANDIDATES", 1 << 40)
    assert compared(device, pool, made, targets).n_extended == 0


@st.composite
def random_extensions(draw: st.DrawFn) -> tuple[Extensions, Targets]:
    """Draw reads from pieces of targets, with errors, unknown bases and all lengths; candidates right and wrong."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    alphabet = draw(st.integers(1, 5))
    targets = [rng.integers(0, alphabet, draw(st.integers(15, 700))).astype(np.uint8) for _ in range(2)]
    reads, table = [], []
    for i in range(3):
        target = targets[i % 2]
        first = int(rng.integers(0, len(target)))
        piece = target[first:].copy()
        piece = piece[rng.random(len(piece)) > draw(st.sampled_from([0.0, 0.1, 0.4]))]
        reads.append(np.concatenate([piece, rng.integers(0, 5, 15).astype(np.uint8)]))
        for _ in range(2):
            t = int(rng.integers(0, 2))
            table.append(
                (
                    i,
                    int(rng.integers(0, 2)),
                    t,
                    rng.integers(0, len(targets[t]) - 13),
                    rng.integers(0, len(reads[i]) - 13),
                )
            )
        table.append((i, 0, i % 2, min(first, len(target) - 14), 0))
    offsets = offsets_of([len(read) for read in reads])
    strands = strands_of(np.concatenate(reads), offsets)
    there = Targets(np.concatenate(targets), offsets_of([len(target) for target in targets]))
    return Extensions.of(strands, offsets, np.array(table, np.int64)), there


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=random_extensions(), these=st.sampled_from([OURS, PAPER]))
def test_any_reads(device, pool, made, these):
    compared(device, pool, *made, these)
