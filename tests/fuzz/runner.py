"""Runs cases in forked processes and judges them."""

from __future__ import annotations

import os
import random
import re
import resource
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from ..readers_here import readers_here
from . import corpus, map_targets, part_targets, result_targets, targets
from .base import Base
from .targets import Target, Touched

#: Outcomes, the good ones first.
OUTCOMES = ("same", "told", "other", "error", "traceback", "signal", "hang", "silent", "unclear", "harness")
GOOD = frozenset({"same", "told", "other", "error"})
_MEMORY = 4 << 30
#: Seconds after which a run hangs; before one that is judged by reader processes, and before those have given up.
_PATIENCE, _SHORT_PATIENCE = 60.0, 6.0
#: Cases that a process runs, because a fork costs more than a case.
_TOGETHER = 16
_COUNTS = re.compile(rb"(skipped unmapped|total entries|failed reads).*")
TARGETS = (*targets.TARGETS, *result_targets.TARGETS, *part_targets.TARGETS, *map_targets.TARGETS)
_BY_NAME = {target.name: target for target in TARGETS}


@dataclass(frozen=True)
class Run:
    """Remains of a run: its exit status or minus the signal, None after a hang; its output and messages."""

    status: int | None
    output: bytes
    messages: bytes


@dataclass(frozen=True)
class Outcome:
    """Fate of a case; `detail` is for those that failed."""

    target: str
    seed: int
    kind: str
    detail: str = ""


class Runner:
    """Runs cases on sound inputs.

    Parameters
    ----------
    base : Base
    folder : Path
        Where cases get their folders.
    """

    def __init__(self, base: Base, folder: Path) -> None:
        self._base = base
        self._folder = folder
        self._sound: dict[str, Run] = {}
        self._inputs = _states(base.folder)

    def prepare(self, targets: list[Target]) -> None:
        """Run each target's command on sound inputs, here: all cases then find the compiled code in memory."""
        for target in targets:
            folder = self._linked(f"sound-{len(self._sound)}")
            part_targets.relocate(self._base, folder)
            output, messages = redirected(folder, target.command, target.output)
            status = 0 if b"ERROR]" not in messages else 1
            self._sound[target.name] = Run(status, output, messages)
            if status or (target.by_read is not None and len(output.splitlines()) < 4):
                raise RuntimeError(f"{target.name}: fails on sound inputs: {messages.decode('utf-8', 'replace')}")
            shutil.rmtree(folder)

    def case(self, target: Target, seed: int, keep: Path | None = None, save: bool = False) -> Outcome:
        """Run one case in a process of its own; copy its folder, or put it into the corpus."""
        rng = random.Random(f"{target.name}:{seed}")
        folder = self._linked(f"case-{os.getpid()}")
        try:
            touched = _damage_in_child(target, rng, self._base, folder)
        except RuntimeError as problem:
            shutil.rmtree(folder, ignore_errors=True)
            return Outcome(target.name, seed, "harness", str(problem))
        if save:
            corpus.save(folder, self._base.folder, target.name, seed)
        return self._judged(target, seed, folder, touched, keep)

    def kept_case(self, path: Path) -> Outcome:
        target = _BY_NAME[corpus.target_of(path)]
        folder = self._linked(f"case-{os.getpid()}")
        corpus.restore(path, folder)
        return self._judged(target, 0, folder, None, None)

    def _judged(self, target: Target, seed: int, folder: Path, touched: Touched, keep: Path | None) -> Outcome:
        run = _forked(folder, target, _SHORT_PATIENCE if target.in_process else _PATIENCE)
        kind, detail = self._judge(target, run, touched)
        if target.in_process and kind not in GOOD:
            for name in (target.output, "messages"):
                (folder / name).unlink(missing_ok=True)
            run = _forked(folder, target, 2 * _PATIENCE, target.command)
            kind, detail = self._judge(target, run, touched)
        if _states(self._base.folder) != self._inputs:
            raise RuntimeError(f"{target.name}, seed {seed}: a sound input was written over")
        if keep is not None:
            shutil.copytree(folder, keep, symlinks=False, dirs_exist_ok=True, ignore_dangling_symlinks=True)
        shutil.rmtree(folder, ignore_errors=True)
        return Outcome(target.name, seed, kind, detail)

    def cases(self, chosen: list[tuple[Target, int]]) -> Iterator[Outcome]:
        """Run many cases, some of them in one process; one that fails there is judged by a run of its own."""
        waiting = list(chosen)
        while waiting:
            done = self._together(waiting)
            for (target, seed), outcome in zip(waiting, done, strict=False):
                yield outcome if outcome.kind in GOOD else self.case(target, seed)
            waiting = waiting[len(done) :]
            if waiting and len(done) < _TOGETHER:  # the next one has ended the process, or hangs
                yield self.case(*waiting.pop(0))

    def _together(self, chosen: list[tuple[Target, int]]) -> list[Outcome]:
        """Outcomes of the first cases that a single process has got through."""
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            try:
                os.setpgid(0, 0)
                os.close(reading)
                _limit_memory()
                for target, seed in chosen[:_TOGETHER]:
                    folder = self._linked(f"together-{os.getpid()}")
                    touched = target.damage(random.Random(f"{target.name}:{seed}"), self._base, folder)
                    with _unguarded(target):
                        status = run_here(folder, target.command)
                    run = Run(status, _content(folder / target.output), _content(folder / "messages"))
                    kind, _ = self._judge(target, run, touched)
                    os.chdir(self._folder)
                    shutil.rmtree(folder, ignore_errors=True)
                    os.write(writing, f"{kind}\n".encode())
            finally:
                os._exit(0)
        os.close(writing)
        kinds = b""
        while select.select([reading], [], [], _SHORT_PATIENCE)[0]:
            piece = os.read(reading, 4096)
            kinds += piece
            if not piece:
                break
        os.close(reading)
        with suppress(OSError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        shutil.rmtree(self._folder / f"together-{process}", ignore_errors=True)
        pairs = zip(chosen, kinds.decode().split(), strict=False)
        return [Outcome(target.name, seed, kind) for (target, seed), kind in pairs]

    def _linked(self, name: str) -> Path:
        """Make a folder with links to all sound inputs."""
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._base.folder, folder, copy_function=os.link)
        return folder

    def _judge(self, target: Target, run: Run, touched: Touched) -> tuple[str, str]:
        sound = self._sound[target.name]
        messages = run.messages.decode("utf-8", "replace")
        last = messages.strip().splitlines()[-1:] or [""]
        if run.status is None:
            return "hang", last[0]
        if b"Traceback" in run.messages or b"Exception ignored" in run.messages:
            return "traceback", messages[-3000:]
        if run.status < 0:
            return "signal", f"{signal.Signals(-run.status).name} {messages[-3000:]}"
        if touched is not None and not touched and run.output != sound.output:
            return "silent", f"an input that holds the same was read otherwise: {messages[-2000:]}"
        errors = messages.count("::ERROR]")
        if run.status in (1, 2):
            if errors != 1 and not messages.startswith("Usage:"):
                return "unclear", messages[-2000:]
            lost = _changed_rows(target, sound.output, run.output, touched, only_present=True)
            return ("silent", lost) if lost else ("error", last[0])
        if run.status != 0 or errors:
            return "unclear", f"status {run.status}: {messages[-2000:]}"
        if run.output == sound.output:
            return "same", ""
        told = _said(run.messages) != _said(sound.messages)
        if (lost := _changed_rows(target, sound.output, run.output, touched, only_present=False)) and not told:
            return "silent", lost
        if target.is_checked and not told:
            return "silent", "the output differs without a word"
        return ("told" if told else "other"), ""


def _states(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def _said(messages: bytes) -> list[bytes]:
    counts = [match.group() for match in _COUNTS.finditer(messages)]
    return counts + [line for line in messages.splitlines() if b"WARNING]" in line]


def _changed_rows(target: Target, sound: bytes, output: bytes, touched: Touched, only_present: bool) -> str:
    """Find a row of a read that the damage cannot touch, and that is not as it was; "" if there is none."""
    if touched is None or target.by_read is None:
        return ""
    before, after = (_by_read(table, target.by_read) for table in (sound, output))
    for name, rows in before.items():
        if name in touched or (only_present and name not in after):
            continue
        found = after.get(name, [])
        if found != rows[: len(found)] or (not only_present and len(found) != len(rows)):
            return f"rows of read {name} differ"
    return ""


def _by_read(table: bytes, column: int) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for line in table.splitlines():
        fields = line.split(b"\t")
        if len(fields) > column and not line.startswith(b"@"):
            found.setdefault(fields[column].decode("latin-1"), []).append(line)
    return found


def _damage_in_child(target: Target, rng: random.Random, base: Base, folder: Path) -> Touched:
    """Damage in this process, but for HDF5, which must not be used before a fork."""
    if not target.name.startswith("fast5"):
        return target.damage(rng, base, folder)
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            touched = target.damage(rng, base, folder)
            os.write(writing, "\t".join(touched or ()).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as pipe:
        names = pipe.read().decode().split("\t")
    if os.waitpid(process, 0)[1]:
        raise RuntimeError("the input could not be damaged")
    return frozenset(filter(None, names))


def _forked(folder: Path, target: Target, patience: float, command: tuple[str, ...] = ()) -> Run:
    """Run the command of a target, or another one with guarded readers, in a forked process."""
    process = os.fork()
    if process == 0:
        os.setpgid(0, 0)
        _limit_memory()
        status = 70
        try:
            with nullcontext() if command else _unguarded(target):
                status = run_here(folder, command or target.command)
        finally:
            os._exit(status)
    with suppress(OSError):
        os.setpgid(process, process)
    descriptor = os.pidfd_open(process)
    try:
        ended = select.select([descriptor], [], [], patience)[0]
    finally:
        os.close(descriptor)
    if not ended:
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    with suppress(OSError):
        os.killpg(process, signal.SIGKILL)  # what it has left running
    number = os.waitstatus_to_exitcode(status) if ended else None
    return Run(number, _content(folder / target.output), _content(folder / "messages"))


def _unguarded(target: Target) -> AbstractContextManager[None]:
    """Let a target's signals be read in this process, which is many times as fast as one beside it for every case."""
    return readers_here(lambda n_processes: True) if target.in_process else nullcontext()


def without_gpu() -> None:
    """Hide the GPUs: processes that fork may not use them, and a run that still waits for one ends its process."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def run_here(folder: Path, command: tuple[str, ...]) -> int:
    """Run a command in this process, its messages going into a file."""
    from f5py.cli import main

    with open(folder / "messages", "wb") as file, open(os.devnull) as nothing:
        os.dup2(file.fileno(), 2)
        os.dup2(file.fileno(), 1)
        os.dup2(nothing.fileno(), 0)
    os.chdir(folder)
    try:
        main(list(command))
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    return 71


def redirected(folder: Path, command: tuple[str, ...], output: str = "out") -> tuple[bytes, bytes]:
    """`run_here`, and everything as it was afterwards."""
    kept = [os.dup(number) for number in (0, 1, 2)]
    before = os.getcwd()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        run_here(folder, command)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in enumerate(kept):
            os.dup2(copy, number)
            os.close(copy)
        os.chdir(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return _content(folder / output), _content(folder / "messages")


def _limit_memory() -> None:
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + _MEMORY, now + _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def chosen_targets(names: list[str] | None) -> list[Target]:
    return list(TARGETS) if not names else [_BY_NAME[name] for name in names]


def run_cases(runner: Runner, targets: list[Target], seeds: range, end: float | None = None) -> list[Outcome]:
    """Run a case for each seed, of targets by their weights; stop at a time of the monotonic clock."""
    outcomes: list[Outcome] = []
    weights = [target.weight for target in targets]
    for first in range(0, len(seeds), 64):
        if end is not None and time.monotonic() > end:
            break
        chosen = [(random.Random(seed).choices(targets, weights)[0], seed) for seed in seeds[first : first + 64]]
        for outcome in runner.cases(chosen):
            outcomes.append(outcome)
            if outcome.kind not in GOOD:
                print(f"{outcome.kind}: {outcome.target!r} seed {outcome.seed}", file=sys.stderr, flush=True)
    return outcomes
