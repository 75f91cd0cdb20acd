"""Stages of a first run are compiled once, whoever does it."""

from __future__ import annotations

import fcntl
import threading
from functools import partial
from pathlib import Path

import pytest

from f5py.errors import F5pyError
from f5py.jit import warm_up as module
from f5py.jit.warm_up import warm_up
from f5py.mapping.run.compiled_stages import STAGES as MAPPING_STAGES
from f5py.messages import console
from f5py.runs.compiled_stages import STAGES


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of the stages that are compiled in this process, on one core, with an empty cache."""
    done: list[str] = []
    monkeypatch.setattr(module, "code_folder", lambda: str(tmp_path))
    monkeypatch.setattr(module, "usable_cores", lambda: 1)
    return done


def _stages(compiled: list[str], *names: str) -> dict[str, partial[None]]:
    return {name: partial(compiled.append, name) for name in names}


def test_stages_are_compiled_once(compiled: list[str], capfd: pytest.CaptureFixture[str]):
    with warm_up(_stages(compiled, "b", "a")):
        assert compiled == []
    assert compiled == ["b", "a"]
    (line,) = capfd.readouterr().err.splitlines()
    assert "compiling for this processor, which takes up to a minute, once" in line
    with warm_up(_stages(compiled, "a", "c", "b")):
        pass
    assert compiled == ["b", "a", "c"]
    with warm_up(_stages(compiled, "a", "c", "b")):
        pass
    assert compiled == ["b", "a", "c"]


def test_a_stage_that_another_process_compiles_is_waited_for(compiled: list[str], tmp_path: Path):
    mark = Path(module._mark(str(tmp_path), "a"))
    with open(f"{mark}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def finish() -> None:
            mark.touch()
            fcntl.flock(lock, fcntl.LOCK_UN)

        with warm_up(_stages(compiled, "a", "b")):
            threading.Timer(0.2, finish).start()
    assert compiled == ["b"]


def test_what_a_process_fails_with_is_compiled_here(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(module, "usable_cores", lambda: 3)
    monkeypatch.setattr(module, "python_command", lambda program: [str(tmp_path / "missing")])
    with warm_up(_stages(compiled, "a", "b")):
        pass
    monkeypatch.setattr(module, "python_command", lambda program: ["false"])
    with warm_up(_stages(compiled, "c")):
        pass
    assert compiled == ["a", "b", "c"]


def test_an_error_before_the_run_ends_the_processes(compiled: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "usable_cores", lambda: 3)
    monkeypatch.setattr(module, "python_command", lambda program: ["sleep", "1000"])

    def fail() -> None:
        with console.recorded_warnings(), warm_up(_stages(compiled, "a", "b")):
            raise F5pyError("no such file")

    with pytest.raises(F5pyError, match="no such file"):
        fail()
    assert compiled == []


@pytest.mark.parametrize("stage", STAGES | MAPPING_STAGES)
def test_every_stage_can_be_called_without_reads(stage: str):
    (STAGES | MAPPING_STAGES)[stage]()
