"""Whole runs with GPUs, which are played on the CPU: the same bytes, and no fault of a GPU fails a run."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import f5py
from f5py.compute.gpu import backend as backend_module
from f5py.compute.gpu import device as opening
from f5py.compute.gpu import selection
from f5py.compute.gpu.results.site_scores import GpuSites
from f5py.core.batch import StoredSamples
from f5py.pipeline import inputs
from f5py.runs import map_then_run, recipe

from ..made_data import N_READS, ReadSet, last_of_each, rows_by_read, run_command, run_main


@pytest.fixture(autouse=True)
def machine(played_machine, monkeypatch: pytest.MonkeyPatch):
    """Return a function that sets up the played machine. Its GPUs take batches that are as small as these."""
    monkeypatch.setattr(backend_module, "_SMALL_RATIO", 0.0)
    monkeypatch.setattr(opening, "is_starting", _wait_for_starts)
    monkeypatch.setattr(recipe, "may_be_there", lambda _: False)  # other processes would not have what is played

    def set_up(**variables: object) -> None:
        played_machine(**variables)
        if "devices" in variables:
            monkeypatch.setattr(selection.AutoGpuScheduler, "compute", _compute_when_all_are_there)

    return set_up


_compute = selection.AutoGpuScheduler.compute


def _compute_when_all_are_there(self, batch) -> None:
    """So small a run would be over when the second GPU has come."""
    _wait_for_starts()
    _compute(self, batch)


def _wait_for_starts() -> bool:
    """Wait for GPUs that are being started, whose start the command would not wait for."""
    for thread in threading.enumerate():
        if thread.name == opening.START_THREAD:
            thread.join()
    return False


#: A played GPU fills all memory that a batch could take, and more bases are in none of these.
_SMALL_BATCHES = ["-B", "20K"]


@pytest.fixture(scope="module")
def short_calls(short: ReadSet) -> bytes:
    out = short.folder / "calls.tsv"
    assert run_main(*short.options(), "-o", out, "--gpu", "off") == 0
    assert len(rows_by_read(out.read_bytes())) > 10
    return out.read_bytes()


def _batches_by(messages: str) -> dict[str, int]:
    found = re.search(r"batches computed: (.*)", messages)
    assert found is not None, messages
    return {name: int(number) for number, name in re.findall(r"(\d+) by ([^,]+)", found[1])}


def test_the_same_bytes(made: ReadSet, made_calls: bytes, tmp_path: Path, capfd):
    assert run_main(*made.options(), "-o", tmp_path / "calls.tsv", "-K", "4", "--gpu", "on") == 0
    assert (tmp_path / "calls.tsv").read_bytes() == made_calls
    messages = capfd.readouterr().err
    assert _batches_by(messages) == {"GPU 0": 4, "the CPU threads": 0}
    assert "WARNING" not in messages
    assert "Load :" not in messages


@pytest.mark.parametrize("subcommand", ["eventalign", "resquiggle"])
def test_the_same_bytes_of_other_commands(short: ReadSet, tmp_path: Path, capfd, subcommand):
    inputs = short.options()
    if subcommand == "resquiggle":
        inputs = [str(short.reads), str(short.folder / "fast5"), "-t", "2"]
    for use in ("off", "on"):
        assert run_command(subcommand, *inputs, "-o", tmp_path / use, "-K", "5", "--gpu", use) == 0
    assert (tmp_path / "on").read_bytes() == (tmp_path / "off").read_bytes()
    assert _batches_by(capfd.readouterr().err)["GPU 0"] == 4


@pytest.mark.parametrize(
    "options",
    [
        ["-q", "cpg,gpc"],
        ["--accurate", "--rescale=yes"],
        ["--per-site", "--accurate", "--rescale=yes"],
        ["--print-banded-aln=yes"],
        ["--print-events=yes"],
    ],
    ids=" ".join,
)
def test_the_same_bytes_with_other_options(short: ReadSet, tmp_path: Path, options):
    """As Parquet, which has the log-likelihoods to the last bit, if that is possible."""
    suffix = "tsv" if options[0].startswith("--print") else "parquet"
    for use in ("off", "on"):
        table = tmp_path / f"{use}.{suffix}"
        assert run_main(*short.options(), *_SMALL_BATCHES, "-o", table, "-K", "5", "--gpu", use, *options) == 0
    assert (tmp_path / f"on.{suffix}").read_bytes() == (tmp_path / f"off.{suffix}").read_bytes()


@pytest.mark.parametrize(
    "options",
    [[], ["--accurate"], ["-q", "cpg,gpc"], ["--min-separation", "30"], ["--min-separation", "4", "--accurate"]],
    ids=" ".join,
)
def test_single_sites(short: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options):
    """As Parquet, which has the log-likelihoods to the last bit."""
    scored = []
    begin = GpuSites.begin
    n_reads = lambda scores: len(set(scores.groups[1][:, 0].tolist()))  # noqa: E731
    monkeypatch.setattr(GpuSites, "begin", lambda self, *given: scored.append(n_reads(given[1])) or begin(self, *given))
    given = [*short.options(), *_SMALL_BATCHES, "-K", "5", "--per-site", *options]
    for use in ("off", "on"):
        assert run_main(*given, "-o", tmp_path / f"{use}.parquet", "--gpu", use) == 0
    assert (tmp_path / "on.parquet").read_bytes() == (tmp_path / "off.parquet").read_bytes()
    assert sum(scored) > 5


@pytest.mark.parametrize("fault", ["launch@18", "launch@27", "lost@17", "memory@9"])
def test_a_fault_at_single_sites_is_one_warning(short: ReadSet, machine, tmp_path: Path, capfd, fault):
    """The launches of the check are nine, and so are those of each batch, of which the last one is that of sites."""
    expected, table = tmp_path / "expected.tsv", tmp_path / "calls.tsv"
    options = ["--per-site", "-K", "4"]
    assert run_main(*short.options(), *_SMALL_BATCHES, "-o", expected, *options, "--gpu", "off") == 0
    machine(fault=fault)
    assert run_main(*short.options(), *_SMALL_BATCHES, "-o", table, *options, "--gpu", "on") == 0
    assert table.read_bytes() == expected.read_bytes()
    assert capfd.readouterr().err.count("WARNING") == 1


@pytest.mark.parametrize(("choice", "n_gpus"), [("0,1", 2), ("1", 1), ("all", 3)])
def test_several_gpus(short: ReadSet, short_calls: bytes, machine, tmp_path: Path, capfd, choice, n_gpus):
    machine(devices=3)
    options = ["-K", "2", "--gpu", "on", "--cuda-dev-id", choice]
    assert run_main(*short.options(), *_SMALL_BATCHES, "-o", tmp_path / "calls.tsv", *options) == 0
    assert (tmp_path / "calls.tsv").read_bytes() == short_calls
    shares = _batches_by(capfd.readouterr().err)
    assert shares.pop("the CPU threads") == 0
    assert len(shares) == n_gpus
    assert sum(shares.values()) == 8
    assert min(shares.values()) > 0


@pytest.mark.parametrize("fault", ["", "launch@9:1"])
def test_a_process_for_each_gpu(
    short: ReadSet, short_calls: bytes, machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd, fault
):
    """Each finds its GPU; if that of one fails, its CPU threads do the rest of what it has taken."""
    machine(devices=2, fault=fault)
    each = lambda recipe, options: [replace(options, cuda_dev_id=str(i), threads=1) for i in range(2)]  # noqa: E731
    monkeypatch.setattr(map_then_run, "options_of_workers", each)
    options = ["-K", "1", "--gpu", "on", "--cuda-dev-id", "all"]
    assert run_main(*short.options(), *_SMALL_BATCHES, "-o", tmp_path / "calls.tsv", *options) == 0
    assert (tmp_path / "calls.tsv").read_bytes() == short_calls
    messages = capfd.readouterr().err
    assert "by GPU 0" in messages
    assert messages.count("WARNING") <= (fault != ""), messages


@pytest.mark.parametrize("use", [[], ["--disable-cuda=no"], ["--gpu", "auto"]], ids=" ".join)
def test_short_runs_do_not_start_a_gpu_of_themselves(made: ReadSet, machine, tmp_path: Path, capfd, use):
    machine(fault="import")
    assert run_main(*made.options(), "-o", tmp_path / "calls.tsv", *use) == 0
    messages = capfd.readouterr().err
    assert "a GPU would not have paid" in messages
    assert "WARNING" not in messages


def test_a_gpu_joins_in_a_run_that_will_be_long(
    made: ReadSet, made_calls: bytes, machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = []
    start_pays = selection.AutoGpuScheduler._start_pays

    def asking(backend, share):
        asked.append(share)
        return start_pays(backend, share)

    monkeypatch.setattr(selection, "_START_SECONDS", 1e-9)
    monkeypatch.setattr(selection.AutoGpuScheduler, "_start_pays", asking)
    # not by the command line, which ends the process when a GPU is being started
    inputs = {"reads": made.reads, "bam": made.bam, "genome": made.genome}
    f5py.call_methylation(**inputs, output=tmp_path / "calls.tsv", batchsize=2, threads=2)
    for thread in threading.enumerate():
        if thread.name == opening.START_THREAD:  # the run has not waited for it
            thread.join()
    assert (tmp_path / "calls.tsv").read_bytes() == made_calls
    assert len(asked) == 1
    assert asked[0] in {2 * i / len(made.names) for i in range(1, len(made.names) // 2)}


@pytest.mark.parametrize("use", [["--gpu", "off"], ["--disable-cuda=yes"], ["-x", "hpc-cpu", "-t", "2"]], ids=" ".join)
def test_off(made: ReadSet, machine, tmp_path: Path, capfd, use):
    machine(fault="import")
    assert run_main(*last_of_each([*made.options(), "-o", tmp_path / "calls.tsv", *use])) == 0
    assert "GPU" not in capfd.readouterr().err


FAULTS = {
    "import": ["cupy cannot be loaded (libcudart.so.12: ", "pip install cupy-cuda12x"],
    "broken": ["cupy cannot be loaded (module 'numpy' has no attribute", "install it again"],
    "driver": ["the NVIDIA driver is missing, or too old", "update it"],
    "devices": ["there is no CUDA device"],
    "busy": ["another program has the GPU for itself", "nvidia-smi"],
    "nvrtc": ["CUDA's run-time compiler is missing", "pip install cupy-cuda12x"],
    "compile": ["the kernels do not compile: events.cu(1): error"],
    "memory": ["too little free", "-B"],
    "memory@9": ["too little free", "-B"],
    # when the device is checked: eight launches, seven times waiting
    "launch": ["Played GPU does not work: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"],
    "launch@8": ["Played GPU does not work: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"],
    "lost": ["Played GPU does not work: cudaErrorLaunchFailure", "dmesg"],
    "lost@3": ["Played GPU does not work: cudaErrorLaunchFailure", "dmesg"],
    # and later: at the events, at what follows, at the scores, of the first batches and of later ones
    "launch@9": ["GPU 0 failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"],
    "launch@12": ["GPU 0 failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"],
    "launch@16": ["GPU 0 failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"],
    "launch@30": ["GPU 0 failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"],
    "lost@8": ["GPU 0 failed: cudaErrorLaunchFailure", "dmesg"],
    "lost@9": ["GPU 0 failed: cudaErrorLaunchFailure", "dmesg"],
    "lost@10": ["GPU 0 failed: cudaErrorLaunchFailure", "dmesg"],
    "lost@14": ["GPU 0 failed: cudaErrorLaunchFailure", "dmesg"],
    "free": ["GPU 0 could not be closed: cudaErrorLaunchFailure"],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_warning(short: ReadSet, short_calls: bytes, machine, tmp_path: Path, capfd, fault):
    """The run goes on with the CPU threads, and everything is written."""
    machine(fault=fault)
    table, report = tmp_path / "calls.tsv", tmp_path / "report.json"
    assert run_main(*short.options(), *_SMALL_BATCHES, "-o", table, "-K", "4", "--gpu", "on", "--report", report) == 0
    assert table.read_bytes() == short_calls
    messages = capfd.readouterr().err
    warnings = [line for line in messages.splitlines() if "WARNING" in line]
    assert len(warnings) == 1, messages
    for phrase in FAULTS[fault]:
        assert phrase in warnings[0]
    told = json.loads(report.read_text())["run"]["warnings"]
    assert len(told) == (fault != "free")  # that is after the report


@pytest.mark.parametrize("fault", ["busy:1", "memory:1", "launch:1", "launch@20:1", "lost:1", "lost@9:1", "lost@12:0"])
def test_one_of_two_gpus_fails(short: ReadSet, short_calls: bytes, machine, tmp_path: Path, capfd, fault):
    """The other one goes on, and does the rest."""
    machine(devices=2, fault=fault)
    options = ["-K", "1", "--gpu", "on", "--cuda-dev-id", "0,1"]
    assert run_main(*short.options(), *_SMALL_BATCHES, "-o", tmp_path / "calls.tsv", *options) == 0
    assert (tmp_path / "calls.tsv").read_bytes() == short_calls
    messages = capfd.readouterr().err
    assert messages.count("WARNING") == 1, messages
    shares = _batches_by(messages)
    assert shares["the CPU threads"] == 0
    broken = f"GPU {fault[-1]}"
    assert shares.get(broken, 0) < max(shares.values())


def test_a_gpu_that_is_not_there(short: ReadSet, short_calls: bytes, tmp_path: Path, capfd):
    options = ["--gpu", "on", "--cuda-dev-id", "0,7"]
    assert run_main(*short.options(), *_SMALL_BATCHES, "-o", tmp_path / "calls.tsv", *options) == 0
    assert (tmp_path / "calls.tsv").read_bytes() == short_calls
    assert "there is no CUDA device 7 (--cuda-dev-id); there are 1" in capfd.readouterr().err


@pytest.mark.parametrize("memory", [1 << 18, 72 << 20])
def test_little_memory(made: ReadSet, made_calls: bytes, machine, tmp_path: Path, capfd, memory):
    """The arena shrinks; what does not fit into it is aligned by the CPU threads."""
    machine(memory=memory)
    assert run_main(*made.options(), "-o", tmp_path / "calls.tsv", "--gpu", "on") == 0
    assert (tmp_path / "calls.tsv").read_bytes() == made_calls
    assert capfd.readouterr().err.count("WARNING") == (memory == 1 << 18)


def test_per_batch_lines_with_v(short: ReadSet, tmp_path: Path, capfd):
    assert run_main(*short.options(), *_SMALL_BATCHES, "-o", tmp_path / "calls.tsv", "--gpu", "on", "-v", "1") == 0
    assert "Load : CPU 0 entries" in capfd.readouterr().err


@pytest.mark.parametrize("command", ["call-methylation", "eventalign"])
@pytest.mark.parametrize("use", ["on", "auto"])
def test_samples_stay_packed_until_they_are_needed(
    made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, use: str
):
    """They are expanded where they are copied for the GPU or events are looked for; before, if they are an output."""
    read_set = made.with_slow5(tmp_path)
    more = ["--samples", "--signal-index"] if command == "eventalign" else []
    outputs = [tmp_path / name for name in ("off.tsv", "packed.tsv")]
    assert run_command(command, *read_set.options(), *more, "-o", outputs[0], "--gpu", "off") == 0
    n_expanded: list[int] = []
    expand = StoredSamples.expand
    monkeypatch.setattr(
        StoredSamples, "expand", lambda self, reads, *more: (n_expanded.append(len(reads)), expand(self, reads, *more))
    )
    monkeypatch.setattr(inputs, "is_present", lambda: True)
    assert run_command(command, *read_set.options(), *more, "-o", outputs[1], "--gpu", use, "-K", "4") == 0
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    assert sum(n_expanded) == N_READS or (use == "auto" and command == "call-methylation")
