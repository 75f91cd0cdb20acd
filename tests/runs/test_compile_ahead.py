"""Compilation ahead of a run: that of what the run uses."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from f5py.runs import compile_ahead


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Put a program in the place of Python that notes the parts that it is given, and answers each when it may."""
    program = tmp_path / "compiler"
    program.write_text(
        f'#!/bin/sh\nwhile read -r part; do echo "$part" >> {tmp_path}/begun\n'
        f'while [ ! -e "{tmp_path}/may $part" ]; do sleep 0.02; done; echo "$part"; done\n'
    )
    program.chmod(0o700)
    monkeypatch.setattr(compile_ahead.sys, "executable", str(program))
    monkeypatch.setattr(compile_ahead, "usable_cores", lambda: 2)
    monkeypatch.setattr(compile_ahead, "_is_kept", lambda part: part == "alignment")
    return tmp_path


def test_one_part_after_the_other_and_none_twice(compiler: Path) -> None:
    """What another process has begun is waited for; what none has begun is left to this one, and to no other."""
    ahead = compile_ahead.CompileAhead(["calls", "calls table", "records", *compile_ahead.OF_SIGNALS])
    begun = compiler / "begun"
    while not begun.exists():
        time.sleep(0.01)
    for _ in range(2):  # the second batch does not wait for the first one
        ahead.wait("events")
        ahead.wait("alignment")
    waiting = threading.Thread(target=ahead.wait, args=("calls",))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    for part in ("calls", "calls table", "records"):
        (compiler / f"may {part}").touch()
    waiting.join()
    for part in ("calls table", "records"):
        ahead.wait(part)
    ahead.close()
    told = begun.read_text().splitlines()
    assert told[0] == "calls"
    assert len(set(told)) == len(told)
    assert set(told) <= {"calls", "calls table", "records"}


def test_a_process_that_dies_leaves_the_work_to_the_stages(compiler: Path) -> None:
    (compiler / "compiler").write_text(f"#!/bin/sh\nread -r part; echo $part >> {compiler}/begun; exit 1\n")
    ahead = compile_ahead.CompileAhead(["calls", *compile_ahead.OF_SIGNALS])
    for part in ("events", "alignment", "calls"):
        ahead.wait(part)
    ahead.close()
    assert (compiler / "begun").read_text().splitlines()[:1] == ["calls"]


def _waits_in_vain(ahead: compile_ahead.CompileAhead, part: str) -> bool:
    waiting = threading.Thread(target=ahead.wait, args=(part,), daemon=True)
    waiting.start()
    waiting.join(20)
    return waiting.is_alive()


def test_a_process_that_does_not_answer_is_waited_for_once(compiler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not again by every batch."""
    ahead = compile_ahead.CompileAhead(["calls", "events"])
    try:
        while not (compiler / "begun").exists():
            time.sleep(0.01)
        monkeypatch.setattr(compile_ahead, "_WAIT_SECONDS", 0.1)
        ahead.wait("calls")
        monkeypatch.setattr(compile_ahead, "_WAIT_SECONDS", 1000.0)
        assert not _waits_in_vain(ahead, "calls")
    finally:
        ahead.close()


def test_nobody_waits_for_what_is_not_begun_before_the_end(compiler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of an interrupted run may come to it after that."""
    monkeypatch.setattr(compile_ahead, "_WAIT_SECONDS", 1000.0)
    ahead = compile_ahead.CompileAhead(["calls", "events"])
    while not (compiler / "begun").exists():
        time.sleep(0.01)
    ahead.close()
    assert not _waits_in_vain(ahead, "events")


@pytest.mark.parametrize("has_file", [False, True])
def test_processes_of_a_first_run_start_before_numba_is_imported(
    compiler: Path, monkeypatch: pytest.MonkeyPatch, has_file: bool
) -> None:
    """They end where everything is kept after all."""
    program = compiler / "compiler"
    program.write_text(program.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\ntouch {compiler}/started\n"))
    monkeypatch.setattr(compile_ahead, "has_kept_file", lambda module, kernel: has_file)
    looked: list[str] = []

    def is_kept(part: str) -> bool:
        while not has_file and not (compiler / "started").exists():
            time.sleep(0.01)
        looked.append(part)
        return True

    monkeypatch.setattr(compile_ahead, "_is_kept", is_kept)
    ahead = compile_ahead.CompileAhead(["calls", "events"], loads=False)
    processes = list(ahead._processes)
    assert looked == ["calls", "events"]
    assert len(processes) == (not has_file)
    for process in processes:
        assert process.wait(10) == 0
    ahead.wait("calls")
    ahead.close()
    assert not (compiler / "begun").exists()
