"""Compiled code that is kept on disk is that of the present sources."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import numba
import pytest

from f5py.errors import F5pyError
from f5py.jit import kernel

from ..made_data import ReadSet
from .numba_forks import NumbaForks

_CALLER = """
from f5py.jit.kernel import kernel
from f5py.callee import VALUE, value


@kernel
def answer():
    return value() + VALUE
"""
_CALLEE = """
from f5py.jit.kernel import kernel

VALUE = {constant}


@kernel
def value():
    return {result}
"""


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(path.read_bytes())


def test_code_is_compiled_anew_when_a_function_that_it_calls_has_changed(numba_forks: NumbaForks, tmp_path: Path):
    package = tmp_path / "f5py"
    package.mkdir()
    source = Path(kernel.__file__).parents[1]
    for name in ("__init__", "errors", "messages/__init__", "messages/console"):
        _copy(source / f"{name}.py", package / f"{name}.py")
    for path in (source / "jit").glob("*.py"):
        _copy(path, package / "jit" / path.name)
    (package / "caller.py").write_text(_CALLER)

    def answer(result: int, constant: int) -> tuple[int, int]:
        (package / "callee.py").write_text(_CALLEE.format(result=result, constant=constant))
        program = "from f5py.caller import answer; print(answer(), sum(answer.stats.cache_hits.values()))"
        environment = {
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",  # Python does not see either that a file changes twice in a second
        }
        done = numba_forks.run(program, tmp_path, environment)
        assert done.returncode == 0, done.stderr
        value, hits = done.stdout.split()
        return int(value), int(hits)

    assert answer(result=1, constant=10) == (11, 0)
    assert answer(result=1, constant=10) == (11, 1)
    assert answer(result=2, constant=10) == (12, 0)
    assert answer(result=2, constant=20) == (22, 0)
    assert answer(result=2, constant=20) == (22, 1)


def test_all_ways_to_import_are_seen(tmp_path: Path):
    source = tmp_path / "kernels.py"
    source.write_text(
        "import f5py.a.b\nimport f5py.c as c\nfrom f5py import simd, console as shown\n"
        "from f5py.d import (\n    e,\n    f as g,\n)\nimport numpy\nif True:\n    from f5py.h import i  # why\n"
    )
    assert {
        "f5py.a.b", "f5py.c", "f5py", "f5py.simd", "f5py.console", "f5py.d", "f5py.d.e", "f5py.d.f",
        "f5py.h", "f5py.h.i",
    } <= kernel._about(source)[1]  # fmt: skip


def test_stamps_know_the_imports_of_imports():
    package = Path(kernel.__file__).parents[1]
    found = kernel._with_imports(package / "methylation" / "_calls_numba.py")
    sources = {source.relative_to(package).as_posix() for source in found}
    assert {"methylation/_calls_numba.py", "methylation/_hmm_numba.py", "jit/simd.py", "jit/kernel.py"} <= sources
    assert "text/_format_numba.py" not in sources


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


def test_without_compilation_there_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    spec = importlib.util.spec_from_file_location("another_kernel", kernel.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(F5pyError, match="NUMBA_DISABLE_JIT is set"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
