"""Of several processes one compiles a kernel, and the others find its code."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from numba import types

from f5py.jit import compile_lock
from f5py.jit import kernel as kernel_module
from f5py.jit.kernel import kernel
from f5py.jit.lazy_kernel import LazyKernel

_MODULE = """
from f5py.jit.kernel import kernel


@kernel
def inner(x):
    return x + 1


@kernel
def outer(x):
    total = 0
    for i in range(x):
        total += inner(i)
    return total
"""
_PROGRAM = """
import os, sys
from some_kernels import inner, outer
print("ready", flush=True)
sys.stdin.readline()
assert (outer(3), inner(3)) == (6, 4)
print(*(sum(each.values()) for one in (outer, inner) for each in (one.stats.cache_hits, one.stats.cache_misses)))
sys.stdout.flush()
os._exit(0)  # to take Numba apart takes a third of a second
"""


def test_each_kernel_is_compiled_once(tmp_path: Path) -> None:
    (tmp_path / "some_kernels.py").write_text(_MODULE)
    paths = (str(tmp_path), str(Path(compile_lock.__file__).parents[1]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=pipe, stdout=pipe, text=True, env=environment)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    found = [tuple(map(int, process.communicate("go\n")[0].split())) for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert sorted(hits_and_misses[:2] for hits_and_misses in found) == [(0, 1), (1, 0), (1, 0)]
    assert sorted(hits_and_misses[2:] for hits_and_misses in found) == [(0, 1), (1, 0), (1, 0)]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LazyKernel:
    """Make a kernel that is not kept."""
    monkeypatch.setattr(kernel_module, "_is_kept_for", lambda *_: False)

    @kernel
    def plus_one(x):
        return x + 1

    return plus_one


def lock_file(made: LazyKernel) -> str:
    path = f"{made._cache._cache_file._index_path}.lock"
    with suppress(FileNotFoundError):
        os.unlink(path)  # of an earlier test
    return path


def test_a_process_that_stands_still_is_waited_for_no_longer(made: LazyKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_lock, "_PATIENCE_SECONDS", 0.2)
    with open(lock_file(made), "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert made(1) == 2


def test_the_cache_is_looked_into_until_something_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads come here until the first of them has loaded a kernel."""
    looks = []

    def is_kept(_: LazyKernel, signature: tuple) -> bool:
        looks.append(signature)
        return len(looks) > 1

    monkeypatch.setattr(kernel_module, "_is_kept_for", is_kept)

    @kernel
    def plus_two(x):
        return x + 2

    for signature in (types.int64,), (types.float64,), (types.float64,), (types.int64,):
        plus_two.compile(signature)
    assert looks == [(types.int64,), (types.float64,), (types.int64,)]
    assert (plus_two(1), plus_two(1.5)) == (3, 3.5)


def test_types_that_nothing_is_kept_for_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    alone = compile_lock._alone
    monkeypatch.setattr(compile_lock, "_alone", lambda path: waits.append(path) or alone(path))

    def function(x):
        return x + 4

    first, later = kernel(function), kernel(function)
    first._cache.flush()  # kept by an earlier run of this test
    assert first(1) == 5
    assert len(waits) == 1
    assert later(1) == 5
    assert len(waits) == 1
    assert later(1.5) == 5.5
    assert len(waits) == 2


def test_a_kernel_that_is_compiled_although_it_is_kept_does_not_wait_for_those_that_it_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is compiled under Numba's lock, for which another thread may be waiting that has the lock of such a kernel."""
    monkeypatch.setattr(kernel_module, "_is_kept_for", lambda one, _: one.py_func.__name__ == "outer")
    waits = []
    alone = compile_lock._alone
    monkeypatch.setattr(compile_lock, "_alone", lambda path: waits.append(path) or alone(path))

    @kernel
    def inner(x):
        return x + 3

    @kernel
    def outer(x):
        return inner(x)

    monkeypatch.setattr(outer._cache, "load_overload", lambda *_: None)  # as if it were damaged
    assert outer(1) == 4
    assert waits == []
    assert inner(1.5) == 4.5
    assert len(waits) == 1


def test_no_locks(made: LazyKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(compile_lock.fcntl, "flock", refuse)
    assert made(1) == 2


def test_no_lock_file(made: LazyKernel) -> None:
    path = lock_file(made)
    os.mkdir(path)
    try:
        assert made(1) == 2
    finally:
        os.rmdir(path)
