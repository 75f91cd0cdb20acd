"""``f5py map`` with GPUs, which are played on the CPU: the same bytes, and no fault of a GPU fails a run."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from unittest import mock

import pytest

from f5py.compute.gpu import selection, self_check
from f5py.mapping.gpu import chains, mems, pair_alignments, seeds
from f5py.mapping.run import mapper as mapping

from ..made_data import ReadSet, run_command
from ..patience import PATIENCE
from .gpu_runs import COMPUTE, FAULTS, assert_one_warning, batches_by, give_gpus_all, join_starts, wait_for_start
from .real_sets import sequences_of, text_of

ECOLI = ("ecoli_r94/ref.fa", "ecoli_r94/reads.fasta")
STRESS = ("map_ecoli/stress_ref.fa.gz", "map_ecoli/stress_reads.fa.gz")
PAFS = {
    "ecoli": (*ECOLI, ["--cs", "short"]),
    "ecoli.noskip": (*ECOLI, ["--cs", "short", "--max-chain-skip", "1000000"]),
    "stress": (*STRESS, []),
    "stress.noskip": (*STRESS, ["--max-chain-skip", "1000000"]),
    "stress.f2000.noskip": (*STRESS, ["-f", "2000", "--max-chain-skip", "1000000"]),
}


@pytest.fixture(autouse=True)
def machine(played_machine, monkeypatch: pytest.MonkeyPatch):
    """Return a function that sets up the played machine. Its GPUs take batches that are as small as these."""
    monkeypatch.setattr(chains, "_FEW_PAIRS", -1)
    monkeypatch.setattr(seeds, "_FEW_BASES", -1)
    # a large arena takes the played device long to fill
    monkeypatch.setattr(chains, "_MOST_ANCHORS", 1 << 16)
    monkeypatch.setattr(pair_alignments, "_MOST_SLOTS", 32)
    monkeypatch.setattr(pair_alignments, "_MOST_PACKED", 1 << 20)
    give_gpus_all(monkeypatch)
    return played_machine


@pytest.mark.shared
@pytest.mark.parametrize("name", PAFS)
def test_paf_is_that_of_minimap2(name: str, shared_data: Path, tmp_path: Path, capfd):
    """Of some of the reads: a played GPU is slow, and the CPU, whose bytes it has, maps them all."""
    reference, reads, options = PAFS[name]
    output, some = tmp_path / "out.paf", tmp_path / "reads.fasta"
    chosen = sequences_of(shared_data / reads)[2::10]
    some.write_text("".join(f">{read}\n{bases}\n" for read, bases in chosen))
    size = sum(len(bases) for _, bases in chosen) // 3
    inputs = "-t", 2, "-K", size, "--gpu", "on", *options, shared_data / reference, some
    assert run_command("map", *inputs, "-o", output) == 0
    names = {read for read, _ in chosen}
    lines = text_of(shared_data / "map_ecoli" / f"{name}.paf.gz").splitlines()
    expected = [line for line in lines if line.split("\t")[0] in names]
    assert len(expected) >= 5
    assert output.read_text().splitlines() == expected
    batches = batches_by(capfd.readouterr().err, "mapped")
    assert batches["GPU 0"] > 1
    assert batches["the CPU threads"] == 0


def mapped(made: ReadSet, output: Path, *options: object) -> bytes:
    assert run_command("map", "-t", 2, "-K", 3000, *options, made.genome, made.reads, "-o", output) == 0
    return output.read_bytes()


def test_batches_on_two_gpus_and_without(made: ReadSet, machine, tmp_path: Path, capfd):
    machine(devices=2)
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off")
    assert expected
    assert "GPU" not in capfd.readouterr().err
    assert mapped(made, tmp_path / "gpu.paf", "--gpu", "on", "--cuda-dev-id", "0,1") == expected
    shares = batches_by(capfd.readouterr().err, "mapped")
    assert shares["the CPU threads"] == 0
    assert sum(shares.values()) > 4


@pytest.mark.parametrize("seeds", ["minimizer", "mem"])
def test_the_cpu_maps_until_the_gpu_is_ready(made: ReadSet, tmp_path: Path, capfd, monkeypatch, seeds):
    monkeypatch.setattr(selection.AutoGpuScheduler, "compute", COMPUTE)  # nothing waits
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off", "--seeds", seeds)
    few_are_done, n_done = threading.Event(), itertools.count(1)
    open_device, compute = mapping.open_device, mapping.CpuMapping.compute

    def open_late(number):
        assert few_are_done.wait(PATIENCE)
        return open_device(number)

    def compute_and_wait(self, batch):
        compute(self, batch)
        if next(n_done) >= 2:
            few_are_done.set()
            join_starts()  # so that something is left for the GPU

    monkeypatch.setattr(mapping, "open_device", open_late)
    monkeypatch.setattr(mapping.CpuMapping, "compute", compute_and_wait)
    assert mapped(made, tmp_path / "gpu.paf", "--gpu", "on", "--seeds", seeds) == expected
    shares = batches_by(capfd.readouterr().err, "mapped")
    assert shares["the CPU threads"] >= 2
    assert shares["GPU 0"] > 0


def test_a_gpu_joins_when_chaining_takes_long(made: ReadSet, tmp_path: Path, monkeypatch):
    import f5py

    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off")
    given = {"output": tmp_path / "auto.paf", "threads": 2, "batch_bases": 3000}
    wait_for_start(lambda: f5py.map_reads(made.genome, [made.reads], **given), monkeypatch)
    assert (tmp_path / "auto.paf").read_bytes() == expected


@pytest.mark.parametrize(
    ("fault", "later"), [(fault, later) for fault in FAULTS for later in ((9, 10, 12) if "@" in fault else (0,))]
)
def test_no_fault_of_a_gpu_fails_a_run(made: ReadSet, machine, tmp_path: Path, capfd, fault, later):
    """Launches in the run come later than those of the checks when it begins."""
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off")
    what, _, number = fault.partition("@")
    machine(fault=f"{what}@{int(number) + later}" if number else what)
    capfd.readouterr()
    assert mapped(made, tmp_path / "gpu.paf", "--gpu", "on") == expected
    assert_one_warning(capfd.readouterr().err, fault)


@pytest.mark.parametrize("fault", ["", "import", "launch@40"])
def test_exact_matches(made: ReadSet, machine, tmp_path: Path, capfd, monkeypatch, fault):
    monkeypatch.setattr(mems, "_MOST_BASES", 1 << 13)
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off", "--seeds", "mem")
    if fault:
        machine(fault=fault)
    capfd.readouterr()
    assert mapped(made, tmp_path / "gpu.paf", "--gpu", "on", "--seeds", "mem") == expected
    messages = capfd.readouterr().err
    assert expected.count(b"tp:A:P") == 16
    assert ("batches searched: " in messages) == (fault != "import")
    assert ("WARNING" in messages) == bool(fault)
    if fault == "import":
        assert messages.count("WARNING") == 1, messages


def test_another_result_on_the_device_is_not_taken(made: ReadSet, tmp_path: Path, capfd, monkeypatch):
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off")
    unpack = chains.Segments.unpack

    def broken(self, chosen, places, packed):
        packed[0, 0] += 1
        unpack(self, chosen, places, packed)

    monkeypatch.setattr(chains.Segments, "unpack", broken)
    # it is checked, whatever an earlier one has passed
    with mock.patch.object(self_check, "_file_of", return_value=None):  # undone before what the fixture changed
        assert mapped(made, tmp_path / "gpu.paf", "--gpu", "on") == expected
    assert "scores chains in another way than the CPU" in capfd.readouterr().err


def test_the_same_calls_where_reads_are_mapped_in_the_same_run(made: ReadSet, tmp_path: Path, capfd):
    few = made.with_text_of_reads(tmp_path / "few.fasta", "".join(made.reads.read_text().splitlines(True)[:10]))
    inputs = ["-r", few.reads, "-g", made.genome, "-t", 2, "-K", 3]
    for use in ("off", "on"):
        assert run_command("call-methylation", *inputs, "--gpu", use, "-o", tmp_path / use) == 0
    messages = capfd.readouterr().err
    assert batches_by(messages, "mapped")["the CPU threads"] == 0
    assert (tmp_path / "on").read_bytes() == (tmp_path / "off").read_bytes() != b""


@pytest.mark.parametrize("what", ["score", "operation"])
def test_hits_are_made_of_what_the_gpu_has_aligned(made: ReadSet, tmp_path: Path, monkeypatch, what):
    """Otherwise a wrong result would not show."""
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off")
    align = pair_alignments.GpuAlignments.align

    def broken(self, stretches):
        keys, results, ops, offsets = align(self, stretches)
        if len(stretches.batch) > 1:  # not the one that the device is checked by
            if what == "score":
                results[:, 0] += 1
            else:
                ops ^= 3
        return keys, results, ops, offsets

    monkeypatch.setattr(pair_alignments.GpuAlignments, "align", broken)
    assert mapped(made, tmp_path / "gpu.paf", "--gpu", "on") != expected


def test_alignments_of_another_kind_on_the_device_are_not_taken(made: ReadSet, tmp_path: Path, capfd, monkeypatch):
    expected = mapped(made, tmp_path / "cpu.paf", "--gpu", "off")
    align = pair_alignments.GpuAlignments.align

    def broken(self, stretches):
        keys, results, ops, offsets = align(self, stretches)
        results[0, 3] += 1
        return keys, results, ops, offsets

    monkeypatch.setattr(pair_alignments.GpuAlignments, "align", broken)
    assert mapped(made, tmp_path / "gpu.paf", "--gpu", "on") == expected
    assert "aligns in another way than the CPU" in capfd.readouterr().err
