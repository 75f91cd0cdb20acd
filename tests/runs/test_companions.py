"""Runs whose batches several processes load and compute: the same bytes, whatever happens to a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from f5py.commands.call_methylation import CALL_METHYLATION
from f5py.compute.gpu import opening
from f5py.io.signals.helper_process import spares
from f5py.options.declaration import Options
from f5py.options.signal_commands import CallOptions
from f5py.runs import run as run_module
from f5py.runs.companions import choice, companions
from f5py.runs.companions.choice import companions_ahead, options_of_processes

from ..made_data import ReadSet, rows_by_read, run_command, run_main


@pytest.fixture
def shared_by_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all runs over alignments share their work with another process, as if there were two GPUs."""
    monkeypatch.setattr(run_module, "options_of_processes", lambda recipe, options: [replace(options, threads=1)] * 2)


def _outputs(folder: Path, *command: object) -> dict[str, bytes]:
    folder.mkdir()
    assert run_command(*(str(word).replace("OUT", str(folder)) for word in command)) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith((".html", ".bai"))}


def test_the_same_bytes(made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    """Whatever is written: what the other process has not computed, and what only some outputs take, is there."""
    sent: list[int] = []
    send_cut = companions._Companion.send_cut

    def counted(self: Any, awaited: Any) -> None:
        sent.append(awaited.number)
        send_cut(self, awaited)

    calls = "call-methylation", *made.options(), "-K", "1", "--gpu", "off", "--per-site", "-o", "OUT/calls.tsv"
    calls = *calls, "--bedmethyl", "OUT/sites.bed", "--failed-reads", "OUT/failed.tsv"
    calls = *calls, "--report", "OUT/report.html", "--print-scaling=yes"
    alone = _outputs(tmp_path / "alone", *calls)
    expected = capfd.readouterr().err
    monkeypatch.setattr(companions._Companion, "send_cut", counted)
    monkeypatch.setattr(run_module, "options_of_processes", lambda recipe, options: [replace(options, threads=1)] * 2)
    assert _outputs(tmp_path / "shared", *calls) == alone
    assert 0 < len(sent) < 16
    told = capfd.readouterr().err
    for line in (line for line in expected.splitlines() if "total" in line or "skipped" in line):
        assert line in told
    assert "WARNING" not in told


@pytest.mark.parametrize(
    ("more", "are_made_there"),
    [
        ([], True),
        (["--per-site", "--print-scaling=yes"], True),
        (["-w", "simulated:1-2000"], True),
        (["--skip-overlaps"], False),
    ],
)
def test_rows_are_made_by_the_process_that_computes_them(
    made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], are_made_there: bool
) -> None:
    """Unless some calls are dropped when the turn of their batch comes."""
    have_rows: list[bool] = []
    batch_of = companions.Companions.batch_of

    def looked_at(self: Any, awaited: Any) -> Any:
        batch = batch_of(self, awaited)
        have_rows.append(batch.row_text is not None)
        return batch

    command = "call-methylation", *made.options(), "-K", "1", "--gpu", "off", *more, "-o", "OUT/calls.tsv"
    alone = _outputs(tmp_path / "alone", *command)
    monkeypatch.setattr(companions.Companions, "batch_of", looked_at)
    monkeypatch.setattr(run_module, "options_of_processes", lambda recipe, options: [replace(options, threads=1)] * 2)
    assert _outputs(tmp_path / "shared", *command) == alone
    assert set(have_rows) == {are_made_there}


@pytest.mark.parametrize("more", [[], ["--debug-break", "5"]], ids=["all", "some"])
def test_processes_end_by_themselves(
    made: ReadSet, tmp_path: Path, shared_by_two, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    """They are told that there are no more batches, and have ended when the run has."""
    others: list[companions._Companion] = []
    begin = companions._Companion.begin

    def noted(self: Any, *given: Any) -> None:
        others.append(self)
        begin(self, *given)

    monkeypatch.setattr(companions._Companion, "begin", noted)
    assert run_main(*made.options(), "-K", "1", "--gpu", "off", *more, "-o", tmp_path / "calls.tsv") == 0
    assert [other._process.status for other in others] == [0]


def test_what_is_wrong_with_reads_is_told_once(made: ReadSet, tmp_path: Path, monkeypatch, capfd) -> None:
    """Wherever they are loaded."""
    damaged = made.with_slow5(tmp_path, [name for i, name in enumerate(made.names) if i not in (3, 4, 9)])
    command = "call-methylation", *damaged.options(), "-K", "1", "--gpu", "off", "-o", "OUT/calls.tsv"
    alone = _outputs(tmp_path / "alone", *command)
    expected = sorted(line for line in capfd.readouterr().err.splitlines() if "WARNING" in line)
    assert expected
    monkeypatch.setattr(run_module, "options_of_processes", lambda recipe, options: [replace(options, threads=1)] * 2)
    assert _outputs(tmp_path / "shared", *command) == alone
    assert sorted(line for line in capfd.readouterr().err.splitlines() if "WARNING" in line) == expected


def test_events_and_samples_come_along(made: ReadSet, tmp_path: Path, shared_by_two, monkeypatch) -> None:
    options = "-K", "2", "--gpu", "off", "--samples", "--signal-index", "--summary", "OUT/sums.tsv"
    command = "eventalign", *made.options(), *options, "-o", "OUT/events.tsv"
    shared = _outputs(tmp_path / "shared", *command)
    monkeypatch.setattr(run_module, "options_of_processes", lambda recipe, options: [])
    assert _outputs(tmp_path / "alone", *command) == shared


def test_batches_of_a_process_that_dies_are_computed_here(
    made: ReadSet, made_calls: bytes, tmp_path: Path, shared_by_two, monkeypatch, capfd
) -> None:
    send_cut = companions._Companion.send_cut

    def kill_after_sending(self: Any, awaited: Any) -> None:
        send_cut(self, awaited)
        self._process.kill()

    monkeypatch.setattr(companions._Companion, "send_cut", kill_after_sending)
    assert run_main(*made.options(), "-K", "1", "--gpu", "off", "-o", tmp_path / "calls.tsv") == 0
    assert (tmp_path / "calls.tsv").read_bytes() == made_calls
    messages = capfd.readouterr().err
    assert messages.count("WARNING") == 1
    assert "has ended (status -9); the others do its work" in messages


@pytest.mark.parametrize("here", [True, False])
def test_an_error_ends_the_run_with_what_was_before_it(
    made: ReadSet, made_calls: bytes, tmp_path: Path, shared_by_two, monkeypatch, capfd, here
) -> None:
    """Wherever a batch with an unusable signal is loaded."""
    damaged = made.with_slow5(tmp_path, [name for name in made.names if name != made.names[9]])
    take = companions.Companions.take

    def choose(self: Any, cut: Any) -> Any:
        if here == (cut.number == 9):
            with self._changed:
                self._n_here += 1
            return None
        return take(self, cut) if not here or self._others[0].fullness < 1 else None

    monkeypatch.setattr(companions.Companions, "take", choose)
    table = tmp_path / "calls.tsv"
    command = *damaged.options(), "-K", "1", "--gpu", "off", "--skip-unreadable=no", "-o", table
    assert run_main(*command) == 1
    rows = (tmp_path / ".unfinished-calls.tsv").read_bytes()
    assert made_calls.startswith(rows)
    assert len(rows_by_read(rows)) == 9
    errors = [line for line in capfd.readouterr().err.splitlines() if "ERROR" in line]
    assert len(errors) == 1
    assert "--skip-unreadable=no" in errors[0]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that lets the machine seem to have GPUs."""

    def have(n: int) -> None:
        monkeypatch.setattr(opening, "is_present", lambda: n > 0)
        monkeypatch.setattr(opening.importlib.util, "find_spec", lambda name: name)
        monkeypatch.setattr(choice, "n_devices_likely", lambda: n)

    return have


def _choose(made: ReadSet, **options: Any) -> list[tuple[str, int]]:
    given = {"bam": str(made.bam), "genome": str(made.genome), "reads": str(made.reads), "gpu": "on", "threads": 7}
    found = options_of_processes(CALL_METHYLATION, CallOptions(**{**given, **options}))
    return [(one.cuda_dev_id, one.threads) for one in found]


def test_each_gpu_gets_a_process_and_its_share_of_the_threads(made: ReadSet, machine) -> None:
    machine(3)
    assert _choose(made, cuda_dev_id="all") == [("0", 3), ("1", 2), ("2", 2)]
    assert _choose(made, cuda_dev_id="0,2") == [("0", 4), ("2", 3)]
    assert _choose(made, cuda_dev_id="2,0,1", threads=1) == [("2", 1), ("0", 1), ("1", 1)]


def test_processes_begin_before_the_command_is_imported(made: ReadSet, machine) -> None:
    machine(3)
    given = {"bam": str(made.bam), "genome": str(made.genome), "reads": str(made.reads), "cuda_dev_id": "all"}
    module = "f5py.commands.call_methylation"
    with companions_ahead(CallOptions(**given, gpu="on"), module):
        assert len(spares) == 2
    assert spares == []
    for options in (CallOptions(**given, gpu="off"), CallOptions(**{**given, "bam": None}, gpu="on"), Options()):
        with companions_ahead(options, module):
            assert spares == []


@pytest.mark.parametrize(
    "options",
    [
        {}, {"cuda_dev_id": "1"}, {"gpu": "off"}, {"gpu": "auto"}, {"bam": "-"}, {"bam": "missing.bam"},
        {"reads": "https://example.org/reads.fasta"}, {"reads": "in_memory.fasta", "slow5": "reads.blow5"},
    ],
    ids=str,
)  # fmt: skip
def test_one_process_does_it_alone(made: ReadSet, machine, options) -> None:
    """With one GPU or none, little to do, or inputs that only one can read."""
    machine(2)
    assert _choose(made, **({"cuda_dev_id": "all"} if options else {}) | options) == []
    machine(0)
    assert _choose(made, cuda_dev_id="all") == []
