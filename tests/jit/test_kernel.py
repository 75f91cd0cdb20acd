"""Kernels and what they call: how often it is compiled, and that processes share the code."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest
from numba.core import event

from f5py.errors import F5pyError
from f5py.jit import kernel
from f5py.jit.code_cache import CodeGuard
from f5py.jit.kernel import exact_inner, exact_kernel

from ..made_data import ReadSet

KERNELS = """
from f5py.jit.kernel import exact_inner, kernel

@exact_inner
def numbers(n):
    i = 0
    while i < n:
        yield i
        i += 1

@kernel
def total(n):
    found = 0
    for i in numbers(n):
        found += i
    return found

@kernel
def product(n):
    found = 1
    for i in numbers(n):
        found *= i + 1
    return found
"""
CALL = (
    "import sys, kernels; kernel = getattr(kernels, sys.argv[1]); print(kernel(4), dict(kernel.stats.cache_hits) != {})"
)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that calls a kernel in a process of its own, with a cache of the test's own."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}

    def call(name: str) -> str:
        command = [sys.executable, "-c", CALL, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
        assert done.stderr == ""
        return done.stdout.strip()

    return call


def test_a_generator_is_compiled_into_kernels_of_several_processes(run: Callable[[str], str]):
    assert run("total") == "6 False"
    assert run("product") == "24 False"
    assert run("total") == "6 True"
    assert run("product") == "24 True"


class _Compiled(event.Listener):
    """Names of functions that are compiled."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: event.Event) -> None:
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: event.Event) -> None:
        pass


def test_what_is_inside_is_compiled_once_for_all_constants(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernel, "_IS_CACHED", False)  # else an earlier run has compiled it

    @exact_inner
    def shifted(x, by):
        return x + by

    @exact_inner
    def member(of, i):
        return of[i]

    @exact_kernel
    def call(x):
        return shifted(x, 0) + shifted(x, 1) + shifted(x, x) + member((1, 2.5), 0) + member((1, 2.5), 1)

    with event.install_listener("numba:compile", _Compiled()) as compiled:
        assert call(3) == 3 + 4 + 6 + 1 + 2.5
    assert compiled.names.count("shifted") == 1
    assert shifted(3, 1) == 4


def test_one_process_saves_at_a_time(tmp_path: Path):
    """And what it has saved is noted before the next one saves."""
    place = tmp_path / "module"
    place.mkdir()
    (place / "code.1.nbc").write_bytes(b"code")
    some_kernel, done = SimpleNamespace(stats=SimpleNamespace(cache_path=str(place))), []
    first, second = CodeGuard(str(tmp_path)), CodeGuard(str(tmp_path))  # which remove what nobody has noted
    assert not list(place.iterdir())

    def save() -> None:
        second.begin_saving(some_kernel)
        done.append("second")
        second.end_saving()

    first.begin_saving(some_kernel)
    (place / "code.1.nbc").write_bytes(b"code")
    thread = threading.Thread(target=save)
    thread.start()
    time.sleep(0.1)
    done.append("first")
    first.end_saving()
    thread.join()
    assert done == ["first", "second"]
    CodeGuard(str(tmp_path))
    assert (place / "code.1.nbc").exists()


def test_a_memory_limit_that_leaves_too_little_to_compile(made: ReadSet, tmp_path: Path):
    """One line, where LLVM would end the process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "OPENBLAS_NUM_THREADS": "1"}
    command = made.command("--iop", "1", "-t", "1", "-o", str(tmp_path / "calls.tsv"))
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 680000; exec "$@"', "sh", *command],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if "ERROR" in line]
    assert len(errors) == 1
    assert "the limit on memory (ulimit -v) leaves" in errors[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("limit", [100_000, 450_000])
@pytest.mark.parametrize("options", [(), ("--plan", "parts")], ids=["run", "plan"])
def test_a_memory_limit_that_is_too_low_for_libraries(
    made: ReadSet, tmp_path: Path, limit: int, options: tuple[str, ...]
):
    command = made.command("-t", "1", "-o", str(tmp_path / "calls.tsv"), *options)
    done = subprocess.run(
        ["sh", "-c", f'ulimit -v {limit}; exec "$@"', "sh", *command],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"the limit on memory (ulimit -v) is {limit >> 10} MB" in line
    assert not (tmp_path / "parts").exists()


def test_without_compilation_there_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    spec = importlib.util.spec_from_file_location("another_kernel", kernel.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(F5pyError, match="NUMBA_DISABLE_JIT is set"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
