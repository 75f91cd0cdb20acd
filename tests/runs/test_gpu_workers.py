"""Runs with a worker process for each GPU: the same bytes, whatever happens to a process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from f5py.commands.call_methylation import CALL_METHYLATION
from f5py.commands.eventalign import EVENTALIGN
from f5py.compute.gpu import device as opening
from f5py.options.signal_commands import CallOptions, EventalignOptions
from f5py.runs import map_then_run, recipe
from f5py.runs.gpu_workers import GpuWorkers
from f5py.runs.parts.plan import unfinished_folder

from ..made_data import ReadSet, run_command, run_main


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all runs over alignments divided between two processes, as if there were two GPUs."""
    of_two = lambda recipe, options: [replace(options, threads=1)] * 2  # noqa: E731
    monkeypatch.setattr(map_then_run, "options_of_workers", of_two)


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that has the following runs done by one process."""
    return lambda: monkeypatch.setattr(map_then_run, "options_of_workers", lambda recipe, options: [options])


def _outputs(folder: Path, *command: object) -> dict[str, bytes]:
    folder.mkdir()
    assert run_command(*(str(word).replace("OUT", str(folder)) for word in command)) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".html")}


_CALLS = [
    ("-o", "OUT/calls.tsv", "--per-site", "--bedmethyl", "OUT/sites.bed", "--failed-reads", "OUT/failed.tsv"),
    ("-o", "OUT/calls.tsv", "--report", "OUT/report.html"),
    ("-o", "OUT/calls.tsv.gz"),
    ("-o", "OUT/calls.parquet", "--modbam", "OUT/calls.bam"),
    ("-o", "OUT/calls.tsv", "-w", "simulated:1-2000"),
]
_EVENTS = [
    ("-o", "OUT/events.tsv", "--samples", "--signal-index", "--summary", "OUT/sums.tsv"),
    ("-o", "OUT/events.parquet"),
    ("-o", "OUT/events.bam"),
]


@pytest.mark.parametrize(
    ("command", "options"),
    [*(("call-methylation", options) for options in _CALLS), *(("eventalign", options) for options in _EVENTS)],
    ids=str,
)
def test_the_same_bytes(made: ReadSet, tmp_path: Path, two, one, capfd, command, options) -> None:
    whole = command, *made.options(), "-K", "2", "--gpu", "off", *options
    shared = _outputs(tmp_path / "out", *whole)
    told = capfd.readouterr().err
    assert "WARNING" not in told
    (tmp_path / "out").rename(tmp_path / "shared")
    one()
    assert _outputs(tmp_path / "out", *whole) == shared
    for line in (line for line in capfd.readouterr().err.splitlines() if "total" in line or "skipped" in line):
        assert line in told


def test_standard_output(made: ReadSet, made_calls: bytes, two, capfdbinary) -> None:
    assert run_main(*made.options(), "--gpu", "off") == 0
    assert capfdbinary.readouterr().out == made_calls


def test_both_work(made: ReadSet, tmp_path: Path, two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins with a part, and takes another one when that is done."""
    workers: list[GpuWorkers] = []
    begin = GpuWorkers.begin
    monkeypatch.setattr(GpuWorkers, "begin", lambda self, plan: (workers.append(self), begin(self, plan)))
    assert run_main(*made.options(), "-K", "1", "--gpu", "off", "-o", tmp_path / "calls.tsv") == 0
    assert len(workers) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["calls.tsv"]


def test_what_is_wrong_with_reads_is_told_once(made: ReadSet, tmp_path: Path, two, one, capfd) -> None:
    """Wherever they are loaded; the report has it, too."""
    damaged = made.with_slow5(tmp_path, [name for i, name in enumerate(made.names) if i not in (3, 4, 9)])
    command = "call-methylation", *damaged.options(), "-K", "1", "--gpu", "off", "-o", "OUT/calls.tsv"
    shared = _outputs(tmp_path / "shared", *command)
    told = sorted(line for line in capfd.readouterr().err.splitlines() if "WARNING" in line)
    one()
    assert _outputs(tmp_path / "alone", *command) == shared
    assert told == sorted(line for line in capfd.readouterr().err.splitlines() if "WARNING" in line)
    assert told


def test_parts_of_a_process_that_dies_are_done_by_others(
    made: ReadSet, made_calls: bytes, tmp_path: Path, two, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    begin = GpuWorkers.begin

    def begin_and_kill(self: Any, plan: Any) -> None:
        begin(self, plan)
        os.kill(next(iter(self._processes.values())).pid, signal.SIGKILL)

    monkeypatch.setattr(GpuWorkers, "begin", begin_and_kill)
    assert run_main(*made.options(), "-K", "1", "--gpu", "off", "-o", tmp_path / "calls.tsv") == 0
    assert (tmp_path / "calls.tsv").read_bytes() == made_calls
    messages = capfd.readouterr().err
    assert messages.count("WARNING") == 1
    assert "has ended (status -9); its parts are done by others" in messages


def test_an_error_of_a_worker_is_that_of_the_run(made: ReadSet, tmp_path: Path, two, capfd) -> None:
    damaged = made.with_slow5(tmp_path, [name for name in made.names if name != made.names[9]])
    (tmp_path / "out").mkdir()
    table = tmp_path / "out" / "calls.tsv"
    assert run_main(*damaged.options(), "-K", "1", "--gpu", "off", "--skip-unreadable=no", "-o", table) == 1
    assert list((tmp_path / "out").iterdir()) == []
    errors = [line for line in capfd.readouterr().err.splitlines() if "ERROR" in line]
    assert len(errors) == 1
    assert errors[0].endswith("(--skip-unreadable=no); no file was made")


def test_what_a_killed_run_has_left_goes(made: ReadSet, made_calls: bytes, tmp_path: Path, two) -> None:
    left = tmp_path / ".unfinished-calls.tsv.f5py-parts" / "run" / "parts"
    left.mkdir(parents=True)
    (left / "0").write_text("old")
    assert run_main(*made.options(), "--gpu", "off", "-o", tmp_path / "calls.tsv") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["calls.tsv"]
    assert (tmp_path / "calls.tsv").read_bytes() == made_calls


def test_two_runs_do_not_share_a_folder(made: ReadSet, tmp_path: Path, two, capfd) -> None:
    output = tmp_path / "calls.tsv"
    with unfinished_folder(str(output)) as folder:
        Path(folder).mkdir()
        assert run_main(*made.options(), "--gpu", "off", "-o", output) == 1
        assert Path(folder).is_dir()
    assert "another run is writing to it" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert run_main(*made.options(), "--gpu", "off", "-o", tmp_path / "none" / "calls.tsv") == 1
    assert "make its folder first" in capfd.readouterr().err


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, float | None], None]:
    """Return a function that lets the machine seem to have GPUs, and a run to have bases."""

    def have(n: int, bases: float | None = 1e12) -> None:
        monkeypatch.setattr(opening, "is_present", lambda: n > 0)
        monkeypatch.setattr(opening.importlib.util, "find_spec", lambda name: name)
        monkeypatch.setattr(recipe, "n_devices_likely", lambda: n)
        monkeypatch.setattr(recipe, "expected_bases", lambda options: bases)

    return have


def _chosen(made: ReadSet, **options: Any) -> list[tuple[str, int, str | None]]:
    given = {"bam": str(made.bam), "genome": str(made.genome), "reads": str(made.reads), "threads": 7}
    found = recipe.options_of_workers(CALL_METHYLATION, CallOptions(**{**given, **options}))
    return [(one.cuda_dev_id, one.threads, one.gpu) for one in found]


def test_each_gpu_gets_a_process_and_its_share_of_the_threads(made: ReadSet, machine) -> None:
    machine(3)
    assert _chosen(made, cuda_dev_id="all") == [("0", 3, "on"), ("1", 2, "on"), ("2", 2, "on")]
    assert _chosen(made, cuda_dev_id="0,2") == [("0", 4, "on"), ("2", 3, "on")]
    assert _chosen(made, cuda_dev_id="2,0,1", threads=1) == [("2", 1, "on"), ("0", 1, "on"), ("1", 1, "on")]
    given = EventalignOptions(bam=str(made.bam), genome=str(made.genome), cuda_dev_id="all", disable_cuda=False)
    assert [one.gpu_use for one in recipe.options_of_workers(EVENTALIGN, given)] == ["on"] * 3


@pytest.mark.parametrize(("bases", "n"), [(308e6, 1), (925e6, 2), (3e9, 3)])
def test_a_gpu_more_for_every_so_many_bases(made: ReadSet, machine, bases: float, n: int) -> None:
    machine(3, bases)
    assert [device for device, _, _ in _chosen(made, cuda_dev_id="1,0,2")] == ["1", "0", "2"][:n]
    machine(3, None)
    assert len(_chosen(made, cuda_dev_id="all")) == 1
    assert len(_chosen(made, cuda_dev_id="all", gpu="on")) == 3


@pytest.mark.parametrize(
    "options",
    [
        {}, {"cuda_dev_id": "1"}, {"gpu": "off"}, {"bam": "-"}, {"bam": "missing.bam"}, {"debug_break": 5},
        {"reads": "https://example.org/reads.fasta"}, {"reads": "in_memory.fasta", "slow5": ("reads.blow5",)},
        {"skip_overlaps": True}, {"print_scaling": True},
    ],
    ids=str,
)  # fmt: skip
def test_one_process_does_it_alone(made: ReadSet, machine, options) -> None:
    """With one GPU or none, inputs that only one can read, or what goes from part to part."""
    machine(2)
    (chosen,) = _chosen(made, **({"cuda_dev_id": "all"} if options else {}) | options)
    assert chosen[1] == 7
    machine(0)
    assert _chosen(made, cuda_dev_id="all") == [("all", 7, None)]
