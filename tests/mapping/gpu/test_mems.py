"""Maximal exact matches on a GPU, one that is played on the CPU and a real one, are those of the CPU threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from f5py.compute.gpu.device import GpuDevice, GpuUnavailableError
from f5py.mapping.gpu import mems
from f5py.mapping.gpu.mems import GpuMems
from f5py.mapping.mem.mem_seeds import MemSearch, find_mem_anchors
from f5py.mapping.settings import PRESETS, parameters
from f5py.threads.pool import WorkerPool

from ...examples import examples
from ..real_sets import Sequences, batch_of
from ..test_mems import codes, contigs_and_reads, index_of

#: Bases of a batch: an arena for more takes the played device long to fill.
_ROOM = 1 << 13


def compared(
    device: GpuDevice, pool: WorkerPool, contigs: list[str], reads: Sequences, min_length: int, limit: int = 12, **more
) -> tuple[int, int]:
    """Search on the CPU threads and on the GPU; return how many bases the kernels had, and the number of anchors."""
    index, offsets = index_of(contigs, pool, min_length)
    search = MemSearch(index, offsets, min_length, parameters(PRESETS["map-ont"], limit))
    expected, found = batch_of(reads), batch_of(reads)
    find_mem_anchors(expected, search, pool)
    gpu = GpuMems(device, search, codes("".join(contigs)), pool, _ROOM, **more)
    gpu.compute(found)
    gpu.compute(found)  # what the first batch left in the arena does no harm
    gpu.close()
    assert not gpu.is_broken
    assert expected.anchors is not None
    assert found.anchors is not None
    for ours, theirs in zip(found.anchors, expected.anchors, strict=True):
        assert ours.tolist() == theirs.tolist()
    return gpu.n_searched // 2, len(expected.anchors.x)


def made(n_reads: int = 12) -> tuple[list[str], Sequences]:
    """Contigs with repeats and unknown bases, and reads of them with mistakes."""
    rng = np.random.default_rng(7)
    unit = "".join(rng.choice(list("ACGT"), 700))
    contigs = [unit + "N" * 40 + unit[100:400] * 3 + "".join(rng.choice(list("ACGT"), 900)), unit[::-1] + unit[:350]]
    text, reads = "".join(contigs), []
    for i in range(n_reads):
        begin = int(rng.integers(0, len(text) - 400))
        letters = np.array(list(text[begin : begin + int(rng.integers(0, 400))]))
        wrong = rng.integers(0, 20, len(letters)) == 0
        letters[wrong] = rng.choice(list("ACGTN"), int(wrong.sum()))
        reads.append((f"r{i}", "".join(letters)))
    return contigs, reads


@pytest.mark.parametrize("zero_copy", [False, True])
def test_equals_the_cpu_threads(device, pool, zero_copy):
    contigs, reads = made()
    n_searched, n_anchors = compared(device, pool, contigs, reads, 17, zero_copy=zero_copy)
    assert n_searched == sum(len(bases) for _, bases in reads)
    assert n_anchors > 100


def test_several_rounds_and_reads_for_the_cpu_threads(device, pool, monkeypatch):
    monkeypatch.setattr(mems, "_FEWEST_BASES", 330)
    monkeypatch.setattr(mems, "_MOST_BASES", 330)
    contigs, reads = made()
    n_searched, _ = compared(device, pool, contigs, reads, 17)
    assert 0 < n_searched < sum(len(bases) for _, bases in reads)


@pytest.mark.parametrize("room", ["_BASES_OF_MATCH", "_BASES_OF_PLACE"])
def test_more_matches_than_there_is_room_for(device, pool, monkeypatch, room):
    monkeypatch.setattr(mems, room, 4000)
    contigs, reads = made()
    compared(device, pool, contigs, reads, 17)


def test_the_order_of_the_lanes_does_not_matter(played_gpu, pool, monkeypatch):
    from f5py.compute.gpu.device import open_device

    monkeypatch.setenv("F5PY_PLAYED_LANES", "descending")
    compared(open_device(0), pool, *made(6), 17)


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(these=contigs_and_reads())
@pytest.mark.parametrize(("min_length", "limit"), [(3, 2), (12, 1000)])
def test_any_reads(device, pool, these, min_length, limit):
    contigs, reads = these
    compared(device, pool, contigs, [(f"r{i}", read) for i, read in enumerate(reads)], min_length, limit)


def test_other_matches_on_the_device_are_not_taken(device, pool, monkeypatch):
    find = GpuMems._find

    def broken(self, *arguments):
        found = find(self, *arguments)
        found[0][0, 1] += 1
        return found

    monkeypatch.setattr(GpuMems, "_find", broken)
    contigs, reads = made(2)
    with pytest.raises(GpuUnavailableError, match="finds other matches than the CPU"):
        compared(device, pool, contigs, reads, 17)


def test_more_numbers_than_a_block_sums_up_at_a_time(device, pool, monkeypatch):
    monkeypatch.setattr(mems, "_FEWEST_BASES", 1 << 17)
    contigs, _ = made(1)
    rng = np.random.default_rng(2)
    reads = [(f"r{i}", "".join(rng.choice(list("ACGT"), 7000))) for i in range(10)] + made(40)[1]
    n_searched, n_anchors = compared(device, pool, contigs, reads, 17)
    assert n_searched > 4096 * 32 // 2  # words of marks, of both strands
    assert n_anchors > 0
