"""Placement of reads on the GPU, and the size of the arena."""

import numpy as np
import pytest

from f5py.compute.gpu import placement as placement_module
from f5py.compute.gpu.arena import (
    INTEGRATED_FRACTION,
    ArenaSize,
    Density,
    capacity,
    memory_fraction,
    reclaimable_memory,
)
from f5py.compute.gpu.placement import PlacementReason, place
from f5py.options.profiles import PROFILES

from ...abea.batch_maker import made_batch


@pytest.fixture
def batch():
    return made_batch(np.random.default_rng(4), 60)


def _place(batch, reads=None, max_lf=3.0, bases=10**9, n_reads=512, samples=10**9, n_threads=2):
    reads = np.arange(len(batch)) if reads is None else reads
    placement = place(batch, reads, 6, max_lf, ArenaSize(bases, 10**9, n_reads, samples), n_threads)
    assert placement.reads.tolist() == reads.tolist()
    assert sum(placement.count(reason) for reason in PlacementReason) == len(reads)
    return placement


def test_long_reads_and_those_without_a_kmer_go_to_the_cpu(batch):
    reads = np.arange(1, len(batch), 2)
    placement = _place(batch, reads, n_threads=1000)
    lengths = batch.read_length
    may_go = (lengths[reads] >= 3 * lengths.mean()) | (lengths[reads] < 6)
    to_cpu = placement.reason == PlacementReason.LONG
    assert not (to_cpu & ~may_go).any()
    assert to_cpu[lengths[reads] < 6].all()
    assert to_cpu[lengths[reads] == lengths[reads].max()].all()
    assert _place(batch, reads, max_lf=1e9).count(PlacementReason.LONG) == (lengths[reads] < 6).sum()


@pytest.mark.parametrize("n_threads", [1, 4, 64])
@pytest.mark.parametrize("seed", range(4))
def test_both_end_as_early_as_they_can(seed, n_threads):
    """Against all ways of dividing the long reads by their length."""
    rng = np.random.default_rng(seed)
    lengths = np.sort(np.round(rng.lognormal(9, 1.3, 300)).astype(np.int64))
    is_long = lengths >= 3 * lengths.mean()

    def end(limit):
        cpu, gpu = lengths[lengths > limit], lengths[lengths <= limit]
        on_cpu = max(cpu.max(initial=0), cpu.sum() / n_threads)
        return max(on_cpu, placement_module.LATENCY_RATIO * gpu.max(), placement_module.THROUGHPUT_RATIO * gpu.sum())

    limit = placement_module._longest_for_gpu(lengths, is_long, n_threads)
    assert end(limit) == min(end(one) for one in [lengths[~is_long].max(), *lengths[is_long]])


@pytest.mark.parametrize("limit", [{"bases": 5000}, {"samples": 9000}, {"n_reads": 7}, {"bases": 1}], ids=str)
def test_what_does_not_fit_goes_to_the_cpu(batch, limit):
    batch.sample_offsets = 9 * batch.base_offsets
    placement = _place(batch, **limit)
    gpu, left = placement.having(PlacementReason.GPU), placement.having(PlacementReason.NO_MEMORY)
    assert (batch.read_length[gpu] + 1).sum() <= limit.get("bases", 10**9)
    assert batch.n_samples[gpu].sum() <= limit.get("samples", 10**9)
    assert len(gpu) <= limit.get("n_reads", 512)
    assert len(left) > 0
    assert len(gpu) == 0 or gpu.max() < left.min()


@pytest.mark.parametrize("density", [Density(2.0, 16.0), Density(2.0, 56.0, means_only=False)])
def test_the_capacity_fills_the_memory_and_no_more(density):
    memory = 2e9
    size = capacity(memory, density, 512, 2)
    assert size.events == 2 * size.bases
    assert size.samples == density.samples * size.bases
    assert 0.98 * memory < 2 * size.device_bytes <= memory
    assert capacity(1000.0, density, 512, 2).bases == 0


@pytest.mark.parametrize("gigabytes", [8, 16, 32])
@pytest.mark.parametrize("rna", [False, True])
def test_jetson_boards_have_room_for_batches_of_their_profiles(gigabytes, rna):
    """A quarter of the memory that they share is free, of which 0.7 is taken; batches shrink to what fits."""
    density = Density(2.0, 56.0 if rna else 16.0, means_only=not rna)
    profile = {8: "jetson-orin-nano", 16: "jetson-orin-nx", 32: "jetson-orin"}[gigabytes]
    size = capacity(INTEGRATED_FRACTION * gigabytes * 2**30 / 4, density, PROFILES[profile].batchsize, 2)
    assert size.bases > (1 if rna else 1.1) * PROFILES[profile].max_bases


def test_trace_words_hold_every_band_of_every_read():
    """The closed form of the kernels' header, against the sum over reads."""
    rng = np.random.default_rng(1)
    bases, events = rng.integers(1, 40, 200), rng.integers(1, 90, 200)
    p, q = np.cumsum(bases), np.cumsum(events)
    starts = (np.concatenate([[0], p + q]) // 4 + 3 * np.arange(201)) * 32
    needed = (bases + events + 2 + 3) // 4 * 32
    assert (starts[:-1] + needed <= starts[1:]).all()
    assert starts[-1] <= ArenaSize(int(p[-1]), int(q[-1]), 200).trace_words


@pytest.mark.parametrize(
    ("requested", "integrated", "expected"),
    [(None, False, 0.9), (None, True, 0.7), (0.5, True, 0.5), (0.0, False, 0.9), (1.0, True, 0.7), (-1, False, 0.9)],
)
def test_memory_fraction(requested, integrated, expected):
    assert memory_fraction(requested, integrated) == expected


def test_page_cache_counts_as_free_on_integrated_gpus():
    meminfo = "MemTotal: 8000000 kB\nMemFree: 100 kB\nBuffers:  20 kB\nCached: 300 kB\nSwapCached: 7 kB\n"
    assert reclaimable_memory(meminfo) == 320 * 1024
