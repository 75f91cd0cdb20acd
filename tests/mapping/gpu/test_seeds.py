"""Seeds on a GPU, one that is played on the CPU and a real one, are those of the CPU threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f5py.compute.gpu.device import GpuDevice, GpuUnavailableError
from f5py.compute.gpu.self_check import without_cache
from f5py.mapping.gpu import seeds
from f5py.mapping.gpu.seeds import GpuSeeds, trial_reads
from f5py.mapping.index.seeds import find_anchors, suits_gpu
from f5py.mapping.settings import PRESETS, MapSettings, parameters
from f5py.threads.pool import WorkerPool

from ...examples import examples
from ..real_sets import Sequences, batch_of, index_of

ONT = PRESETS["map-ont"]
#: Bases of a batch: an arena for more takes the played device long to fill.
_ROOM = 1 << 15
_MEMORY = 1 << 30


@pytest.fixture(autouse=True)
def small_batches_too(monkeypatch):
    """Send small batches to the GPU, though the CPU threads alone would be faster."""
    monkeypatch.setattr(seeds, "_FEW_BASES", -1)


def compared(
    device: GpuDevice, pool: WorkerPool, contigs: Sequences, reads: Sequences, these: MapSettings = ONT,
    room: int = _ROOM, zero_copy: bool = False,
) -> tuple[int, int]:  # fmt: skip
    """Find seeds on the CPU threads and on the GPU; return how many reads the kernels had, and anchors."""
    index = index_of(contigs, these, pool)
    numbers = parameters(these, index.mid_occ(these))
    expected, found = batch_of(reads), batch_of(reads)
    find_anchors(expected, index, numbers, pool)
    gpu = GpuSeeds(device, index, numbers, pool, _MEMORY, room, zero_copy)
    gpu.find(found)
    n_found = gpu.n_found
    gpu.find(found)  # what the first batch left in the arena does no harm
    gpu.close()
    assert expected.anchors is not None
    assert found.anchors is not None
    for name, ours, theirs in zip(found.anchors._fields, found.anchors, expected.anchors, strict=True):
        assert ours.tolist() == theirs.tolist(), name
    return n_found, len(expected.anchors.x)


def made(n_reads: int = 12, seed: int = 7) -> tuple[Sequences, Sequences]:
    """Contigs with repeats and unknown bases, and reads of them with mistakes."""
    rng = np.random.default_rng(seed)
    unit = "".join(rng.choice(list("ACGT"), 700))
    contigs = [unit + "N" * 40 + unit[100:400] * 13 + "".join(rng.choice(list("ACGT"), 900)), unit[::-1] + unit[:350]]
    text, reads = "".join(contigs), []
    for i in range(n_reads):
        begin = int(rng.integers(0, len(text) - 400))
        letters = np.array(list(text[begin : begin + int(rng.integers(0, 1500))].replace("N", "A")))
        wrong = rng.integers(0, 25, len(letters)) == 0
        letters[wrong] = rng.choice(list("ACGT"), int(wrong.sum()))
        reads.append((f"r{i}", "".join(letters)))
    reads[n_reads // 2] = ("unknown bases", text[500:900])
    return [(f"c{i}", contig) for i, contig in enumerate(contigs)], reads


@pytest.mark.parametrize("zero_copy", [False, True])
def test_equals_the_cpu_threads(device, pool, zero_copy):
    n_found, n_anchors = compared(device, pool, *made(20), zero_copy=zero_copy)
    assert n_found == 19  # one has unknown bases
    assert n_anchors > 200


@pytest.mark.parametrize(
    "changes",
    [{"k": 5, "w": 4}, {"k": 19, "w": 19, "max_mid_occ": 50}, {"k": 27, "w": 1}, {"k": 11, "w": 200},
     {"occ_dist": 0}, {"occ_dist": 50, "mid_occ_frac": 2.0}, {"mid_occ_frac": 1.0, "max_max_occ": 4, "occ_dist": 10},
     {"mid_occ_frac": 1000.0}, {"k": 7, "w": 3, "q_occ_frac": 0.5, "mid_occ_frac": 3.0}],
    ids=str,
)  # fmt: skip
def test_other_settings(device, pool, changes):
    n_found, _ = compared(device, pool, *made(16, seed=3), ONT._replace(**changes))
    assert n_found > 0


def test_several_rounds_and_reads_for_the_cpu_threads(device, pool, monkeypatch):
    monkeypatch.setattr(seeds, "_FEWEST_BASES", 1200)
    monkeypatch.setattr(seeds, "_MOST_BASES", 1200)
    contigs, reads = made(24)
    n_found, _ = compared(device, pool, contigs, reads)
    assert 0 < n_found < sum(len(bases) <= 1200 for _, bases in reads)


def test_more_anchors_than_there_is_room_for(device, pool, monkeypatch):
    monkeypatch.setattr(seeds, "_BASES_OF_ANCHOR", 300)
    n_found, n_anchors = compared(device, pool, *made(24), room=30_000)
    assert n_anchors > 100
    assert n_found > 0


def test_the_order_of_the_lanes_does_not_matter(played_gpu, pool, monkeypatch):
    from f5py.compute.gpu.device import open_device

    monkeypatch.setenv("F5PY_PLAYED_LANES", "descending")
    compared(open_device(0), pool, *made(8))


@st.composite
def contigs_and_reads(draw) -> tuple[Sequences, Sequences]:
    """Sequences of few different bases, so that there are ties and repeats, and pieces of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    letters = list(draw(st.sampled_from(["ACGT", "AC", "AAAAAAAT", "ACGTN"])))
    contigs = ["".join(rng.choice(letters, int(rng.integers(30, 400)))) for _ in range(2)]
    reads = []
    for i in range(6):
        contig = contigs[i % 2]
        first, end = sorted(rng.integers(0, len(contig) + 1, 2).tolist())
        repeated = contig[first:end] * int(rng.integers(1, 4))
        reads.append((f"r{i}", repeated + "".join(rng.choice(letters, int(rng.integers(0, 20))))))
    return [(f"c{i}", contig) for i, contig in enumerate(contigs)], reads


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(these=contigs_and_reads(), k=st.sampled_from([3, 5, 9]), w=st.integers(1, 12), limit=st.sampled_from([1, 4, 99]))
def test_any_reads(device, pool, these, k, w, limit):
    compared(device, pool, *these, ONT._replace(k=k, w=w, mid_occ_frac=float(limit), occ_dist=20), room=1 << 13)


def test_other_seeds_on_the_device_are_not_taken(device, pool, monkeypatch):
    find = GpuSeeds._find_round

    def broken(self, part, batch, some, index, sums, marks, results):
        find(self, part, batch, some, index, sums, marks, results)
        results[0][2][:] += 1

    monkeypatch.setattr(GpuSeeds, "_find_round", broken)
    with without_cache(), pytest.raises(GpuUnavailableError, match="finds other seeds than the CPU"):
        compared(device, pool, *made(4))


def test_the_check_meets_all_that_there_is(pool):
    """Otherwise a device's mistake there would not show."""
    numbers = parameters(ONT, 10)
    index, batch = trial_reads(numbers, pool)
    find_anchors(batch, index, numbers, pool)
    assert batch.anchors is not None
    n = np.diff(batch.anchors.offsets)
    assert n.min() == 0
    assert (n > 64).sum() > 3
    assert (batch.anchors.rep_len > 0).any()
    assert (batch.anchors.y >> 42 & 1).any()
    assert (batch.anchors.x >> 63).any()


def test_what_suits(pool):
    assert suits_gpu(parameters(ONT, 10))
    for name in ("rna", "map-pb", "ava-ont"):
        assert not suits_gpu(parameters(PRESETS[name], 10)), name
    assert not suits_gpu(parameters(ONT._replace(strands=1), 10))
