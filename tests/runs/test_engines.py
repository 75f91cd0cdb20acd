"""Engines that work on the parts of a plan."""

from __future__ import annotations

import builtins
import logging
import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from f5py.runs import engines, in_parts

from ..forked import in_programs
from ..made_data import ReadSet, error_line, run_command
from ..patience import comes_true
from ..shared_memory import left_since, named, to_oneself


@pytest.fixture
def semaphores() -> Iterator[None]:
    """For clusters of dask, whose processes have named semaphores: those go before another test looks for such."""
    with to_oneself():
        before = named()
        yield
        left_since(before)


def command(made: ReadSet, *options: str) -> list[str]:
    return ["call-methylation", *made.options(), "-o", "calls.tsv", "--modbam", "m.bam", *options]


def expected(made: ReadSet) -> tuple[bytes, bytes]:
    assert run_command(*command(made)) == 0
    return outputs()


def outputs() -> tuple[bytes, bytes]:
    found = Path("calls.tsv").read_bytes(), Path("m.bam").read_bytes()
    Path("calls.tsv").unlink()
    return found


@pytest.mark.parametrize(("least", "n_parts"), [(512, 1), (1, 16)])
def test_workers_that_are_known_get_several_parts_each(
    made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch, least: int, n_parts: int
):
    planned = []
    monkeypatch.setattr(in_parts, "_LEAST_RECORDS", least)
    monkeypatch.setattr(in_parts, "work_on", lambda recipe, options, plan, *_: planned.append(len(plan)))
    assert run_command(*command(made, "--plan", "p", "--engine", "dask", "--workers", "2")) == 1  # no part is done
    assert planned == [n_parts]


@pytest.mark.usefixtures("semaphores")
def test_dask_on_this_machine(made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch):
    distributed = pytest.importorskip("distributed")
    levels = []

    class Client(distributed.Client):
        def close(self, *arguments: Any, **options: Any) -> Any:
            if self.status == "running":
                levels.extend(self.run(lambda: logging.getLogger("distributed.worker").level).values())
            return super().close(*arguments, **options)

    monkeypatch.setattr(distributed, "Client", Client)
    one = expected(made)
    assert run_command(*command(made, "--plan", "p", "--partitions", "5", "--engine", "dask", "--workers", "2")) == 0
    assert outputs() == one
    assert levels == [logging.CRITICAL] * 2  # a heartbeat that meets the cluster's end would show a traceback


@pytest.mark.usefixtures("semaphores")
@pytest.mark.parametrize("has_begun", [True, False])
def test_an_interrupt_while_a_cluster_starts(
    made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch, has_begun: bool
):
    """It ends when it has started; an interrupt that comes before its thread is there leaves nothing to wait for."""
    distributed = pytest.importorskip("distributed")
    closed = []

    class Client(distributed.Client):
        def close(self, *arguments: Any, **options: Any) -> Any:
            closed.append(self.status)
            return super().close(*arguments, **options)

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(distributed, "Client", Client)
    if has_begun:
        monkeypatch.setattr(in_parts, "make_plan", interrupted)
    else:
        monkeypatch.setattr(in_parts.Cluster, "start", interrupted)
    assert run_command(*command(made, "--plan", "p", "--partitions", "2", "--engine", "dask", "--workers", "1")) == 130
    assert closed[:1] == ["running"] * has_begun


@pytest.mark.usefixtures("semaphores")
def test_parts_that_a_lost_worker_had_taken(made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch):
    """They are done when the others have been; one of two workers is killed while it works."""
    distributed = pytest.importorskip("distributed")

    class WithLost(engines.Claims):
        def __enter__(self) -> Any:
            super().__enter__()
            for number in (0, 4):
                (here / "p" / "parts" / self.name / str(number)).mkdir()
            return self

    class Client(distributed.Client):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            victim = next(iter(self.cluster.workers.values())).process.pid
            killer.append(threading.Thread(target=kill, args=(victim,)))
            killer[0].start()

    def kill(victim: int) -> None:
        comes_true(lambda: any((here / "p" / "parts").glob("[0-9]*")))
        os.kill(victim, signal.SIGKILL)

    killer: list[threading.Thread] = []
    monkeypatch.setattr(distributed, "Client", Client)
    monkeypatch.setattr(engines, "Claims", WithLost)
    one = expected(made)
    assert run_command(*command(made, "--plan", "p", "--partitions", "12", "--engine", "dask", "--workers", "2")) == 0
    killer[0].join()
    assert outputs() == one
    left = {path.name for path in (here / "p" / "parts").iterdir()}
    assert {name for name in left if name.isdecimal()} == {str(number) for number in range(12)}
    assert not any(name.startswith(".claims") for name in left)


@pytest.mark.usefixtures("semaphores")
def test_dask_with_parts_that_must_know_each_other(made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("distributed")
    monkeypatch.delattr(engines, "Claims")
    table, _ = expected(made)
    given = ("--skip-overlaps", "--plan", "p", "--partitions", "3", "--engine", "dask", "--workers", "2")
    assert run_command(*command(made, *given)) == 0
    assert outputs()[0] == table  # the header of the other one has the options


@pytest.mark.usefixtures("semaphores")
@pytest.mark.parametrize(
    ("problem", "phrase"),
    [
        (ModuleNotFoundError("No module named 'distributed'", name="distributed"), "pip install"),
        (
            ModuleNotFoundError("No module named 'tornado'", name="tornado"),
            "cannot be loaded: No module named 'tornado'",
        ),
    ],
    ids=["missing", "broken"],
)
def test_what_of_dask_is_missing_is_said(made: ReadSet, here: Path, monkeypatch, capfd, problem, phrase):
    load = builtins.__import__

    def broken(name: str, *rest: object):
        if name == "distributed":
            raise problem
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", broken)
    assert run_command(*command(made, "--plan", "p", "--partitions", "2", "--engine", "dask")) == 1
    assert phrase in error_line(capfd.readouterr().err)


def test_dask_survives_the_loss_of_a_worker(made: ReadSet, here: Path):
    """A cluster of two workers in folders of their own, one of which is killed while it works."""
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    one = expected(made)
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),  # three of them import all else
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
    ):
        victim = next(iter(cluster.workers.values())).process.pid

        def kill() -> None:
            comes_true(lambda: any((here / "p" / "parts").glob("[0-9]*")))
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        given = ("--plan", "p", "--partitions", "12", "--engine", "dask", "--scheduler", cluster.scheduler_address)
        assert run_command(*command(made, *given)) == 0
        killer.join()
    assert outputs() == one


@pytest.mark.usefixtures("semaphores")
def test_dask_on_two_machines(made: ReadSet, here: Path):
    """Workers with folders of their own, which share only the folder of the plan; found by a scheduler file."""
    pytest.importorskip("distributed")
    one = expected(made)
    say_nothing: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--scheduler-file", "s.json", "--port", "0"]
    processes = [subprocess.Popen([*scheduler, "--no-dashboard"], **say_nothing)]
    try:
        assert comes_true((here / "s.json").exists)
        for machine in ("a", "b"):
            (here / machine).mkdir()
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(here / "s.json")]
            environment = {**os.environ, "TMPDIR": str(here / machine)}
            processes.append(
                subprocess.Popen(
                    [*worker, "--nthreads", "1", "--no-dashboard", "--local-directory", str(here / machine)],
                    cwd=here / machine, env=environment, **say_nothing,
                )
            )  # fmt: skip
        given = ("--plan", "p", "--partitions", "4", "--engine", "dask", "--scheduler", "s.json")
        assert run_command(*command(made, *given)) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert outputs() == one


@pytest.mark.usefixtures("semaphores")
def test_dask_tells_of_parts_that_fail(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    pytest.importorskip("distributed")
    bam = here / "bad.bam"
    content = bytearray(made.bam.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 50] = bytes(50)
    shutil.copy(made.bam, bam)
    bad = replace(made, bam=bam)
    assert run_command(*command(bad, "--plan", "p", "--partitions", "3")) == 0
    bam.write_bytes(content)
    capfd.readouterr()
    assert run_command(*command(bad, "--plan", "p", "--engine", "dask", "--workers", "1")) == 1
    assert "bad.bam: has changed" in error_line(capfd.readouterr().err)


@pytest.mark.usefixtures("semaphores")
def test_dask_tells_of_what_is_wrong_with_parts_in_one_line(
    made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]
):
    """Without a traceback of dask's for each time that one was tried, or a word of another cluster's server."""
    pytest.importorskip("distributed")
    for old in made.reads.parent.glob(f"{made.reads.name}*"):
        shutil.copy(old, here)
    index = here / f"{made.reads.name}.index"
    content = bytearray(index.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 50] = bytes(50)
    index.write_bytes(content)
    bad = replace(made, reads=here / made.reads.name)
    with socket.socket() as server:
        with suppress(OSError):  # another one has it already
            server.bind(("127.0.0.1", 8787))
            server.listen()
        assert run_command(*command(bad, "--plan", "p", "--partitions", "3", "--engine", "dask", "--workers", "2")) == 1
    messages = capfd.readouterr().err
    line = error_line(messages)
    assert "parts could not be done (part " in line
    assert line.count(f"{index}: has no block where its .gzi says; run f5py index again") == 1
    assert "Traceback" not in messages


@pytest.fixture
def slurm(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that puts stand-ins for Slurm's commands on the path.

    That for sbatch runs all jobs of an array one after the other, the last one first, and then a line of Python. All
    jobs but that one are forked.
    """

    def make(end: str) -> None:
        stand_in(
            here / "bin" / "sbatch",
            f"""
import os, re, subprocess, sys, time
text = sys.stdin.read()
open({str(here / "script.sh")!r}, "w").write(text)
assert sys.argv[1:] == ["--wait", "--parsable"], sys.argv
print("4711;cluster", flush=True)
runs = [run.split("-") for run in re.search(r"--array=([\\d,-]+)", text).group(1).split(",")]
jobs = [i for run in runs for i in range(int(run[0]), int(run[-1]) + 1)]
threads = re.search(r"--cpus-per-task=(\\d+)", text).group(1)
for i in jobs[:{"0" if end else ""}:-1]:
    env = {{**os.environ, "SLURM_ARRAY_TASK_ID": str(i), "SLURM_CPUS_PER_TASK": threads}}
    subprocess.run(["bash"], input=text, text=True, env=env, check=True)
    text = text.replace({shlex.join([sys.executable, "-m", "f5py"])!r}, "f5py")
{end}
""",
        )
        cancelled = str(here / "cancelled")
        stand_in(here / "bin" / "scancel", f"import sys\nopen({cancelled!r}, 'w').write(' '.join(sys.argv[1:]))\n")
        monkeypatch.setenv("PATH", f"{here / 'bin'}:{path}")

    with in_programs(os.environ) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        path = os.environ["PATH"]
        yield make


def stand_in(path: Path, program: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{program}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_slurm(made: ReadSet, here: Path, slurm: Callable[[str], None]):
    slurm("")
    one = expected(made)
    given = ("--plan", "p q", "--partitions", "3", "--engine", "slurm", "--workers", "2")
    assert run_command(*command(made, *given)) == 0
    assert outputs() == one
    script = (here / "script.sh").read_text()
    assert "#SBATCH --array=0-2%2\n" in script
    assert "#SBATCH --cpus-per-task=2\n" in script


def test_slurm_that_fails(made: ReadSet, here: Path, slurm: Callable[[str], None], capfd: pytest.CaptureFixture[str]):
    """The first job is not done; after that an array has only what is not done."""
    slurm("sys.exit('a node is gone')")
    given = ("--plan", "p", "--partitions", "3", "--engine", "slurm")
    assert run_command(*command(made, *given)) == 1
    assert "sbatch: a node is gone" in error_line(capfd.readouterr().err)
    shutil.rmtree(here / "p" / "parts" / "2")
    slurm("")
    assert run_command(*command(made, "--plan", "p", "--engine", "slurm")) == 0
    assert "#SBATCH --array=0,2\n" in (here / "script.sh").read_text()
    assert outputs() == expected(made)


@pytest.mark.parametrize("is_there", [True, False])
def test_interrupted_slurm(
    made: ReadSet, here: Path, slurm: Callable[[str], None], capfd: pytest.CaptureFixture[str], is_there: bool
):
    slurm("import signal\nos.kill(os.getppid(), signal.SIGTERM)\ntime.sleep(60)")
    if not is_there:
        stand_in(here / "bin" / "scancel", "raise SystemExit(1)")
    assert run_command(*command(made, "--plan", "p", "--partitions", "2", "--engine", "slurm")) == 143
    messages = capfd.readouterr().err
    if is_there:
        assert "job 4711 of Slurm is cancelled" in messages
        assert (here / "cancelled").read_text() == "4711"
    else:
        assert "job 4711 of Slurm could not be cancelled" in messages
    assert run_command(*command(made, "--plan", "p")) == 0


def test_no_slurm(made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    monkeypatch.setenv("PATH", str(here))
    assert run_command(*command(made, "--plan", "p", "--partitions", "3", "--engine", "slurm")) == 1
    assert "--print-slurm" in error_line(capfd.readouterr().err)


def test_the_printed_script_is_one(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    assert run_command(*command(made, "--plan", "p", "--partitions", "2345")) == 0
    capfd.readouterr()
    assert run_command("plan", "p", "--print-slurm") == 0
    script = capfd.readouterr().out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert "#SBATCH --array=0-781\n" in script  # three parts each
    for job, parts in ((0, "0-2"), (780, "2340-2342"), (781, "2343-2344")):
        lines = script.replace("f5py run-part", "echo")
        env = {**os.environ, "SLURM_ARRAY_TASK_ID": str(job), "SLURM_CPUS_PER_TASK": "2"}
        said = subprocess.run(["bash"], input=lines, text=True, env=env, capture_output=True, check=True).stdout
        assert said.split()[1:] == [parts, "-t", "2"]


def test_estimate_of_alignments_without_places(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    """SAM is divided by numbers of records."""
    sam = here / "reads.sam"
    subprocess.run(["samtools", "view", "-h", "-o", str(sam), str(made.bam)], check=True)
    assert run_command(*command(replace(made, bam=sam), "--plan", "p", "--partitions", "4")) == 0
    assert run_command("run-part", "p", "0-1") == 0
    known = told(capfd, "p", "--estimate")
    assert float(known["Mbases to do"].split()[0]) == pytest.approx(8 * 1200 / 1e6, rel=0.2)
    assert run_command(*command(replace(made, bam=sam), "--plan", "p2", "--partitions", "4")) == 0
    unknown = told(capfd, "p2", "--estimate")
    assert float(unknown["Mbases to do"].split()[0]) == pytest.approx(16 * 1200 / 1e6, rel=0.2)


def test_plan_tells_how_far_it_is(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    assert run_command(*command(made, "--plan", "p", "--partitions", "4")) == 0
    assert told(capfd, "p") == {"command": "call-methylation", "parts": "4", "done": "0", "not done": "4: 0 1 2 3"}
    assert told(capfd, "p", "--estimate")["time"].startswith("not known")
    given = told(capfd, "p", "--estimate", "--speed", "0.001", "--jobs", "2", "--price", "3600")
    bases = float(given["Mbases to do"].split()[0])
    assert bases == pytest.approx(16 * 1200 / 1e6, rel=0.5)
    assert float(given["price"]) == pytest.approx(bases * 1000 * 1.0, rel=0.01)
    assert float(given["hours of 2 jobs"]) <= bases * 1000 / 3600
    assert run_command("run-part", "p", "1") == 0
    known = told(capfd, "p", "--estimate")
    assert known["not done"] == "3: 0 2 3"
    assert "measured" in known["Mbases in a second, of a job"]
    assert run_command("run-part", "p") == 0
    assert "not done" not in told(capfd, "p", "--estimate")
    assert run_command("plan", "p", "--price", "3") == 2


def told(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    capfd.readouterr()
    assert run_command("plan", *arguments) == 0
    return dict(line.split("\t") for line in capfd.readouterr().out.splitlines())
