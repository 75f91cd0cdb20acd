"""Numba's shortcuts: all fit this version, the machine code is the same, and Numba is as before."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from f5py.jit.kernel import FASTMATH
from f5py.jit.shortcuts import _Hidden, _places, shortcuts


class _Columns(NamedTuple):
    levels: np.ndarray
    places: np.ndarray
    name: str
    scale: float


def _in_turn(n):
    i = 0
    while i < n:
        yield i
        i += 2


_in_turn = numba.njit(_in_turn)


def _sums(columns, table, found):
    """Read, write and cut arrays of one and two dimensions, from both ends, with numbers of all kinds."""
    last, n = 0.0, np.uint64(3)
    for i in _in_turn(len(columns.places)):
        place = columns.places[i]
        if place < 0:
            last = columns.levels[place]
            continue
        last = last * columns.scale + columns.levels[place]
        found[i] = max(last, columns.levels[-1]) + found[n]
        table[i, place % 2] += found[i // 2]
    rest = found[1:-1]
    made = np.zeros(len(rest) + 1, np.float32)
    made[1:] = rest
    if last < -1000.0:
        raise ValueError("too small")
    return made, (_Columns(columns.levels, columns.places, columns.name, last), table.sum())


def _inputs() -> tuple[Any, ...]:
    columns = _Columns(np.arange(6.0), np.array([3, -2, 1, 0, 5, 2, 4], np.int32), "six", 0.5)
    return columns, np.ones((7, 2)), np.arange(7.0).astype(np.float32)


def _code(kernel: Any) -> str:
    """Machine code, but for the entry, without the names that Numba gives to what it compiles, which have a number."""
    (assembly,) = kernel.inspect_asm().values()
    (own,) = (part for part in assembly.split("\t.globl\t") if part.startswith("_ZN") and "7cpython" not in part[:20])
    instructions = [line for line in own.splitlines() if line.startswith("\t") and not line.startswith("\t.")]
    assert len(instructions) > 100
    return re.sub(r"[\w.$]*(_ZN|v\d)[\w.$]*|\.L\w+", "name", "\n".join(instructions))


@pytest.fixture(autouse=True)
def numba_as_it_was():
    """Check that what is replaced for a compilation is as before after it, however it ends."""
    before = [getattr(owner, name) for owner, name, _ in _places()]
    yield
    assert all(getattr(owner, name) is old for (owner, name, _), old in zip(_places(), before, strict=True))


def test_all_fit_this_version_of_numba():
    assert {name for _, name, _ in _places()} >= {
        "start_event", "end_event", "trigger_event", "_cblist", "_rec_list_vars", "run", "get_call_type",
        "get_meminfos", "storevar", "delvar", "make_array", "basic_indexing", "build", "_runPass",
        "get_abi_sizeof", "dependency_analysis", "__eq__", "__hash__",
    }  # fmt: skip


@pytest.mark.parametrize("fastmath", [False, FASTMATH])
def test_the_machine_code_is_the_same(fastmath):
    plain, short = (numba.njit(fastmath=fastmath, error_model="numpy")(_sums) for _ in range(2))
    expected = plain(*_inputs())
    with global_compiler_lock, shortcuts():
        found = short(*_inputs())
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1][0].scale == expected[1][0].scale
    assert found[1][1] == expected[1][1]
    assert _code(short) == _code(plain)


def test_types_have_the_size_that_llvm_says():
    context = cpu_target.target_context
    inner = ir.LiteralStructType([ir.IntType(8), ir.IntType(64)])
    kinds = [ir.IntType(1), ir.IntType(32), ir.DoubleType(), inner, ir.ArrayType(inner, 3), inner.as_pointer()]
    expected = [context.get_abi_sizeof(kind) for kind in kinds]
    with shortcuts():
        for _ in range(2):
            assert [context.get_abi_sizeof(kind) for kind in kinds] == expected
    assert expected == [1, 4, 8, 16, 48, 8]


def test_what_is_taken_out_is_given_back():
    with global_compiler_lock, shortcuts():
        kernel = numba.njit(_sums)
        kernel(*_inputs())
    inputs = _inputs()
    counts = [sys.getrefcount(array) for array in (*inputs[0][:2], *inputs[1:])]
    for _ in range(5):
        kernel(*inputs)
    assert [sys.getrefcount(array) for array in (*inputs[0][:2], *inputs[1:])] == counts


def test_functions_that_are_compiled_follow_the_options_of_each_caller():
    def product(values):
        return np.prod(values)

    strict, loose = (numba.njit(fastmath=fastmath)(product) for fastmath in (False, True))
    with global_compiler_lock, shortcuts():
        for kernel in (strict, loose):
            assert kernel(np.array([2.0, 3.0])) == 6.0
    assert ["fmul fast" in next(iter(kernel.inspect_llvm().values())) for kernel in (strict, loose)] == [False, True]


def test_numba_is_as_before_after_an_error():
    def wrong(values):
        return values.nothing_of_that_name

    with pytest.raises(numba.TypingError, match="nothing_of_that_name"), global_compiler_lock, shortcuts():
        numba.njit(wrong)(np.zeros(1))


_WITHOUT_SCIPY = """
import sys
import numba, numpy as np
from f5py.jit.kernel import exact_kernel

@exact_kernel
def total(values):
    return values.sum()

assert total(np.arange(4.0)) == 6
assert "scipy.linalg" not in sys.modules
assert numba.njit(lambda a: a @ a)(np.arange(3.0)) == 5
assert "scipy.linalg" in sys.modules
"""


def test_scipy_is_imported_by_those_who_use_it(tmp_path):
    pytest.importorskip("scipy.linalg")
    (tmp_path / "program.py").write_text(_WITHOUT_SCIPY)
    ended = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("has_settings", [False, True])
def test_numba_is_imported_without_what_it_does_not_need(tmp_path: Path, has_settings: bool) -> None:
    """SciPy, whose version it looks at, and YAML, if there are no settings; both are there for others."""
    (tmp_path / "scipy.py").write_text('__version__ = "1.11.0"\n')
    (tmp_path / "yaml.py").write_text("def safe_load(file): return {}\n")
    if has_settings:
        (tmp_path / ".numba_config.yaml").touch()
    program = (
        "import sys, f5py.jit.kernel; print(*(name in sys.modules for name in ('numba', 'scipy', 'yaml')))\n"
        "import scipy, yaml; print(scipy.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"True False {has_settings}", "1.11.0"]


def test_only_the_thread_that_imports_numba_finds_nothing() -> None:
    hidden = _Hidden(["scipy"])
    with pytest.raises(ModuleNotFoundError):
        hidden.find_spec("scipy")
    assert hidden.find_spec("numba") is None
    with ThreadPoolExecutor(1) as other:
        assert other.submit(hidden.find_spec, "scipy").result() is None
