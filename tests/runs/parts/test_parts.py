"""Runs in parts: whatever the parts, the outputs are the bytes of one run."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pysam
import pytest

from f5py.runs.parts.plan import Plan

from ...made_data import ReadSet, last_of_each, process_of, refused, run_command, start_process

CALLS = ("-o", "calls.tsv", "--modbam", "m.bam", "--bedmethyl", "s.bed", "--failed-reads", "failed.tsv")
CALL_FILES = ("calls.tsv", "m.bam", "s.bed", "failed.tsv")
N_PARTS = (1, 2, 7, 64)


def contents(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def one_run(command: str, made: ReadSet, options: tuple[str, ...], names: tuple[str, ...]) -> dict[str, bytes]:
    """Run without parts and return the outputs, which are taken away."""
    assert run_command(command, *made.options(), *options) == 0
    found = contents(Path.cwd(), names)
    for name in names:
        Path(name).unlink()
    return found


def in_parts(command: str, made: ReadSet, options: tuple[str, ...], n_parts: int, folder: str = "plan") -> None:
    assert run_command(command, *made.options(), *options, "--plan", folder, "--partitions", str(n_parts)) == 0
    numbers = list(range(n_parts))
    random.Random(n_parts).shuffle(numbers)
    for at in range(0, n_parts, 20):  # several at a time
        assert run_command("run-part", folder, *numbers[at : at + 20]) == 0
    assert run_command("finish", folder) == 0


@pytest.mark.parametrize("n_parts", N_PARTS)
def test_calls(made: ReadSet, here: Path, n_parts: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.argv", ["f5py", "call-methylation", "-b", "x.bam"])
    expected = one_run("call-methylation", made, CALLS, CALL_FILES)
    monkeypatch.setattr(
        "sys.argv", ["f5py", "call-methylation", "--plan=plan", "-b", "x.bam", "--partitions", str(n_parts)]
    )
    in_parts("call-methylation", made, CALLS, n_parts)
    assert contents(here, CALL_FILES) == expected
    assert b"--plan" not in (here / "m.bam").read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        "call-methylation -o calls.tsv.gz", "call-methylation -o calls.parquet",
        "call-methylation -o out.tsv -w windows.bed", "eventalign -o out.tsv -w windows.bed",
        "call-methylation -o calls.tsv --skip-ultra ultra.bam --ultra-thresh 1190",
        "eventalign -o e.tsv --summary sum.tsv", "eventalign -o e.tsv --print-read-names --samples",
        "eventalign -o e.tsv.gz --m6anet", "eventalign -o e.paf", "eventalign -o e.sam", "eventalign -o e.bam",
        "eventalign -o e.parquet",
    ],
)  # fmt: skip
def test_other_outputs(made: ReadSet, here: Path, line: str):
    command, *options = line.split()
    contig = made.records()[0].references[0]
    (here / "windows.bed").write_text("".join(f"{contig}\t{at}\n" for at in ("500\t3000", "4000\t4100", "9000\t11000")))
    names = tuple(word for word in options if "." in word and word != "windows.bed")
    expected = one_run(command, made, tuple(options), names)
    in_parts(command, made, tuple(options), 5)
    assert contents(here, names) == expected


def test_row_groups_do_not_depend_on_parts(made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("f5py.outputs.events.eventalign_arrow.ROWS_PER_GROUP", 1000)
    expected = one_run("eventalign", made, ("-o", "e.parquet"), ("e.parquet",))
    in_parts("eventalign", made, ("-o", "e.parquet"), 5)
    assert contents(here, ("e.parquet",)) == expected


def test_a_bam_without_index(made: ReadSet, here: Path):
    bam = here / "bare.bam"
    shutil.copy(made.bam, bam)
    bare = replace(made, bam=bam)
    expected = one_run("eventalign", bare, ("-o", "e.tsv"), ("e.tsv",))
    in_parts("eventalign", bare, ("-o", "e.tsv"), 5)
    assert contents(here, ("e.tsv",)) == expected


@pytest.mark.parametrize(("ending", "windows"), [("sam", None), ("cram", None), ("cram", "windows.bed")])
def test_alignments_that_are_read_from_the_beginning(made: ReadSet, here: Path, ending: str, windows: str | None):
    """Parts one after the other, and before one another; rows of events have the numbers of records."""
    other = replace(made, bam=here / f"reads.{ending}")
    pysam.view("-h", "-T", str(made.genome), "-o", str(other.bam), str(made.bam), catch_stdout=False)
    names = {"call-methylation": CALL_FILES, "eventalign": ("e.tsv",)}
    options = {"call-methylation": CALLS, "eventalign": ("-o", "e.tsv")}
    if windows is not None:
        pysam.index(str(other.bam))
        contig = made.records()[0].references[0]
        Path(windows).write_text(f"{contig}\t500\t3000\n{contig}\t9000\t11000\n")
        options = {command: (*given, "-w", windows) for command, given in options.items()}
    for command, given in options.items():
        expected = one_run(command, other, given, names[command])
        in_parts(command, other, given, 4, f"plan of {command}")
        assert contents(here, names[command]) == expected
        assert run_command(command, *other.options(), *given, "--resume") == 0
        assert contents(here, names[command]) == expected


def test_partition_tag(made: ReadSet, here: Path, tmp_path_factory: pytest.TempPathFactory):
    _, records = made.records()
    for i, record in enumerate(records):
        if i % 4:
            record.set_tag("HP", 2 - i % 4 % 2)
    tagged = made.with_records(tmp_path_factory.mktemp("tagged"), records)
    options = ("-o", "s.bed", "--partition-tag", "HP")
    names = ("s.1.bed", "s.2.bed", "s.ungrouped.bed")
    expected = one_run("call-methylation", tagged, options, names)
    in_parts("call-methylation", tagged, options, 5)
    assert contents(here, names) == expected


def test_the_report_is_that_of_one_run(made: ReadSet, here: Path):
    options = ("-o", "calls.tsv", "--report", "report.json")
    assert run_command("call-methylation", *made.options(), *options) == 0
    one = json.loads((here / "report.json").read_text())["run"]
    in_parts("call-methylation", made, options, 4)
    joined = json.loads((here / "report.json").read_text())["run"]
    assert joined["counts"] == one["counts"]
    assert joined["rates"]["passed_fraction"] == one["rates"]["passed_fraction"]
    for name in ("read_lengths", "contigs", "ratios", "contexts"):
        assert joined["distributions"][name] == one["distributions"][name]
    assert [entry["path"] for entry in joined["inputs"]] == [entry["path"] for entry in one["inputs"]]


def test_plan_alone_runs_everything_and_again(made: ReadSet, here: Path):
    expected = one_run("call-methylation", made, CALLS, CALL_FILES)
    for _ in range(2):
        assert run_command("call-methylation", *made.options(), *CALLS, "--plan", "plan") == 0
        assert contents(here, CALL_FILES[:1]) == {"calls.tsv": expected["calls.tsv"]}


@pytest.mark.parametrize("n_calls", range(0, 40, 3))
def test_an_end_while_the_parts_are_removed(made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch, n_calls: int):
    """The outputs are complete then; the next run does not take what is left for parts that are done."""
    expected = one_run("call-methylation", made, CALLS, CALL_FILES)
    options = [*made.options(), *CALLS, "--resume", "--partitions", "4"]
    left = n_calls

    class Killed(BaseException):
        pass

    def counted(function):
        def call(*arguments, **more):
            nonlocal left
            if (left := left - 1) < 0:
                raise Killed
            return function(*arguments, **more)

        return call

    def remove_parts(plan):
        with monkeypatch.context() as patched:
            for name in ("unlink", "rmdir", "rename"):
                patched.setattr(os, name, counted(getattr(os, name)))
            sound_remove(plan)

    sound_remove = Plan.remove_parts
    with monkeypatch.context() as patched:
        patched.setattr(Plan, "remove_parts", remove_parts)
        with suppress(Killed):
            run_command("call-methylation", *options)
    assert contents(here, CALL_FILES) == expected
    assert run_command("call-methylation", *options) == 0
    assert contents(here, CALL_FILES) == expected
    assert not list(here.glob("*.f5py-parts"))


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGXCPU", "SIGTERM"])
def test_a_batch_system_ends_a_run_in_time(
    made: ReadSet, here: Path, name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    """What is done is kept, and the same command goes on."""
    expected = one_run("call-methylation", made, ("-o", "calls.tsv"), ("calls.tsv",))
    command = ["call-methylation", *made.options(), "-o", "calls.tsv", "--plan", "plan", "--engine", "local"]
    n_written = 0

    def begin_part(plan: Plan, number: int) -> Path:
        nonlocal n_written
        n_written += 1
        if n_written == 3:
            signal.raise_signal(signal.Signals[name])
        return sound_begin(plan, number)

    sound_begin = Plan.begin_part
    with monkeypatch.context() as patched:
        patched.setattr(Plan, "begin_part", begin_part)
        assert run_command(*command, "--partitions", "4") == 128 + signal.Signals[name]
    told = capfd.readouterr().err
    assert f"ended by {name}" in told
    assert "the parts that are done are kept; the same command continues" in told
    n_done = len(Plan.load("plan").done())
    assert 0 < n_done < 4
    assert run_command(*command) == 0
    assert f"{n_done} of 4 parts are done; going on with the others" in capfd.readouterr().err
    assert contents(here, ("calls.tsv",)) == expected


def test_resume_does_what_is_left(made: ReadSet, here: Path):
    """A part that is done is not worked on again."""
    command = ["call-methylation", *made.options(), "-o", "calls.tsv", "--plan", "plan", "--partitions", "4"]
    assert run_command(*command) == 0
    assert run_command("run-part", "plan", "1", "3") == 0
    done = {number: os.stat(here / "plan" / "parts" / number).st_mtime_ns for number in ("1", "3")}
    assert run_command(*command[:-2]) == 0
    for number, when in done.items():
        assert os.stat(here / "plan" / "parts" / number).st_mtime_ns == when


@pytest.mark.parametrize("moment", [0, 2, 30])
def test_kill(made: ReadSet, here: Path, moment: int):
    """Runs that are killed at any moment leave nothing that the next one stumbles over."""
    expected = one_run("call-methylation", made, CALLS, CALL_FILES)
    options = [*made.options(), *CALLS, "-K", "1"]
    assert run_command("call-methylation", *options, "--plan", "plan", "--partitions", "8") == 0
    command = process_of("run-part", "plan")
    for _ in range(2):
        process = start_process(command, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        before = n_done(here)
        while n_done(here) <= before and process.poll() is None and time.monotonic() < until:
            time.sleep(0.001 * moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert run_command("run-part", "plan") == 0
    assert run_command("finish", "plan", "--remove") == 0
    assert not (here / "plan").exists()
    found = contents(here, CALL_FILES)
    assert found["calls.tsv"] == expected["calls.tsv"]
    assert found["s.bed"] == expected["s.bed"]


@pytest.mark.parametrize("name", ["calls.tsv", "calls.tsv.gz"])
def test_the_table_of_one_process_is_not_copied(made: ReadSet, here: Path, name: str):
    """A compressed one must be made."""
    expected = one_run("call-methylation", made, ("-o", name), (name,))
    planned(made, "-o", name, n_parts=5)
    assert run_command("run-part", "plan") == 0
    (table,) = (here / "plan" / "tables").iterdir()
    assert run_command("finish", "plan") == 0
    assert contents(here, (name,)) == expected
    assert table.samefile(name) == (name == "calls.tsv")


@pytest.mark.parametrize("parts", [("0-4",), ("0", "1-2", "3-4"), ("3-4", "0-2")])
def test_tables_with_rows_of_a_part_that_was_killed(made: ReadSet, here: Path, parts: tuple[str, ...]):
    expected = one_run("call-methylation", made, ("-o", "calls.tsv"), ("calls.tsv",))
    planned(made, n_parts=5)
    for numbers in parts:
        assert run_command("run-part", "plan", numbers) == 0
    tables = list((here / "plan" / "tables").iterdir())
    assert len(tables) == len(parts)
    for table in tables:
        with table.open("ab") as file:
            file.write(b"rows of a part that was killed")
    assert run_command("finish", "plan") == 0
    assert contents(here, ("calls.tsv",)) == expected


def n_done(folder: Path) -> int:
    return sum(entry.name.isdigit() for entry in (folder / "plan" / "parts").iterdir())


def test_two_processes_at_the_same_parts(made: ReadSet, here: Path):
    expected = one_run("call-methylation", made, ("-o", "calls.tsv"), ("calls.tsv",))
    assert (
        run_command("call-methylation", *made.options(), "-o", "calls.tsv", "--plan", "plan", "--partitions", "6") == 0
    )
    processes = [start_process(process_of("run-part", "plan"), stderr=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert run_command("finish", "plan") == 0
    assert contents(here, ("calls.tsv",)) == expected
    assert n_done(here) == len(list((here / "plan" / "parts").iterdir())) == 6


def planned(made: ReadSet, *options: str, n_parts: int = 3) -> None:
    output = () if "-o" in options else ("-o", "calls.tsv")
    given = [*made.options(), *output, *options, "--plan", "plan", "--partitions", str(n_parts)]
    assert run_command("call-methylation", *given) == 0


def test_the_signals_of_a_folder_are_better_indexed(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    """The advice is a command line that works."""
    shutil.copy(made.bam, "reads.bam")
    inputs = ("-b", "reads.bam", "-g", str(made.genome), "-t", "2", "--iop", "1")
    assert run_command("call-methylation", *inputs, "--fast5", str(made.signal_path), "-o", "one.tsv") == 0
    capfd.readouterr()
    planned = ("--plan", "named", "--partitions", "3", "-o", "calls.tsv")
    assert run_command("call-methylation", *inputs, "--fast5", str(made.signal_path), *planned) == 0
    advice = re.search(r"to list them once: f5py (index .*), and a plan with (-r .*)", capfd.readouterr().err)
    assert advice is not None
    assert run_command(*shlex.split(advice[1])) == 0
    indexed = replace(made, bam=Path("reads.bam"), reads=Path("reads.bam"))
    in_parts("call-methylation", indexed, ("-o", "calls.tsv"), 3)
    assert "to list them once" not in capfd.readouterr().err
    assert (here / "calls.tsv").read_bytes() == (here / "one.tsv").read_bytes()


def test_changed_options(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    planned(made)
    again = [*made.options(), "-o", "calls.tsv", "--plan", "plan"]
    line = refused(capfd, "call-methylation", *again, "--min-mapq", "0", status=2)
    assert "--min-mapq: 20 then, 0 now" in line
    assert "is the plan of f5py call-methylation" in refused(capfd, "eventalign", *again, status=2)
    assert "has a plan already" in refused(capfd, "call-methylation", *again, "--partitions", "3", status=2)
    assert run_command("call-methylation", *last_of_each([*again, "-t", "1", "-K", "3"])) == 0  # these change nothing


def test_changed_inputs(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    bam = here / "copy.bam"
    shutil.copy(made.bam, bam)
    changed = replace(made, bam=bam)
    planned(changed)
    content = bytearray(bam.read_bytes())
    os.utime(bam, ns=(0, 0))
    assert run_command("run-part", "plan", "0") == 0
    assert "has been written again" in capfd.readouterr().err
    content[-100] ^= 1
    bam.write_bytes(content)
    assert "copy.bam: has changed since the plan was made" in refused(capfd, "run-part", "plan", "1")
    bam.write_bytes(content[:-1])
    assert "bytes, then" in refused(capfd, "run-part", "plan", "1")
    bam.unlink()
    assert "no such file" in refused(capfd, "run-part", "plan")


def test_missing_and_damaged_parts(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    planned(made)
    assert run_command("run-part", "plan", "0-1") == 0
    assert "1 of 3 parts are not done (2)" in refused(capfd, "finish", "plan")
    assert not (here / "calls.tsv").exists()
    assert run_command("run-part", "plan") == 0
    name, _, end, _ = json.loads((here / "plan" / "parts" / "0" / "part.json").read_text())["table"]
    os.truncate(here / "plan" / "tables" / name, end - 1)
    assert "is damaged (the rows of its table are not there); remove it" in refused(capfd, "finish", "plan")
    assert not (here / "calls.tsv").exists()
    shutil.rmtree(here / "plan" / "parts" / "0")
    assert run_command("run-part", "plan", "0") == 0
    assert f"{here}/plan/parts/1: is damaged" in refused(capfd, "finish", "plan")  # its rows came after those
    shutil.rmtree(here / "plan" / "parts" / "1")
    assert run_command("run-part", "plan") == 0
    assert run_command("finish", "plan") == 0


def test_damaged_alignments_that_are_read_from_the_beginning(
    made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]
):
    cram = here / "reads.cram"
    pysam.view("-h", "-T", str(made.genome), "-o", str(cram), str(made.bam), catch_stdout=False)
    cram.write_bytes(cram.read_bytes()[:-1000])
    given = ["-r", made.reads, "-b", cram, "-g", made.genome, "-o", "calls.tsv", "--plan", "plan"]
    assert f"{cram}: " in refused(capfd, "call-methylation", *given)
    assert not (here / "plan").exists()


def test_alignments_from_pipes_are_refused(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    given = ["-r", made.reads, "-b", "-", "-g", made.genome, "-o", "calls.tsv", "--plan", "plan"]
    assert "-b -" in refused(capfd, "call-methylation", *given, status=2)
    os.mkfifo("pipe")
    given[3] = "pipe"
    with subprocess.Popen(["cp", str(made.bam), "pipe"]):
        assert "pipe cannot be worked on in parts" in refused(capfd, "call-methylation", *given)


def test_a_folder_without_a_plan(here: Path, capfd: pytest.CaptureFixture[str]):
    for command in ("run-part", "finish"):
        assert "has no plan" in refused(capfd, command, "nowhere")


def test_no_reads_at_all_is_said_at_the_end(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    planned(made, "--min-mapq", "100")
    assert run_command("run-part", "plan") == 0
    assert run_command("finish", "plan") == 0
    assert "::WARNING] no record of " in capfd.readouterr().err
    assert len((here / "calls.tsv").read_text().splitlines()) == 1


def test_folders_of_signals_with_odd_links(made: ReadSet, here: Path):
    """A link that leads back, and one that leads nowhere, as the search for signals passes over."""
    expected = one_run("call-methylation", made, ("-o", "calls.tsv"), ("calls.tsv",))
    shutil.copytree(made.signal_path, here / "signals")
    (here / "signals" / "back").symlink_to(".")
    (here / "signals" / "lost.fast5").symlink_to("nowhere")
    given = ("-b", made.bam, "-g", made.genome, "--fast5", "signals", "--iop", "1", "-t", "2", "-o", "calls.tsv")
    assert run_command("call-methylation", *given, "--plan", "plan", "--partitions", "2") == 0
    content = json.loads((here / "plan" / "plan.json").read_text())
    size = sum(path.stat().st_size for path in made.signal_path.iterdir())
    (of_folder,) = [one for name, one in content["inputs"].items() if name.endswith("signals")]
    assert of_folder["bytes"] == size
    assert run_command("run-part", "plan") == 0
    assert run_command("finish", "plan") == 0
    assert contents(here, ("calls.tsv",)) == expected
