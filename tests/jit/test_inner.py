"""Kernels that other kernels call are compiled without entries for Python, and nobody notices."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from f5py.jit.inner import _NoEntry, leave_inner_entries_out
from f5py.jit.kernel import exact_kernel

from .numba_forks import NumbaForks


@pytest.fixture(autouse=True)
def numba_as_it_was():
    """Check that what is replaced for a compilation is as before after it, however it ends."""
    before = Dispatcher.get_call_template
    yield
    assert Dispatcher.get_call_template is before
    assert gc.isenabled()


def _plain_square(x):
    return x * x


def _plain_sum_of_squares(values):
    total = 0.0
    for value in values:
        total += square(value)
    return total


square = _plain_square  # compiled by `pair`


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> tuple[Dispatcher, Dispatcher]:
    """Make a kernel, and another one that calls it; neither is in the disk cache."""
    inner, outer = (numba.njit(function) for function in (_plain_square, _plain_sum_of_squares))
    for made in (inner, outer):
        leave_inner_entries_out(made)
    monkeypatch.setitem(_plain_sum_of_squares.__globals__, "square", inner)
    return inner, outer


def has_entries(function: Dispatcher) -> list[bool]:
    return [not isinstance(result.entry_point, _NoEntry) for result in function.overloads.values()]


def test_only_what_python_calls_has_an_entry(pair):
    inner, outer = pair
    assert outer(np.array([1.0, 2.0])) == 5.0
    assert has_entries(outer) == [True]
    assert has_entries(inner) == [False]


def test_python_calls_it_later(pair):
    inner, outer = pair
    assert outer(np.array([1.0, 2.0])) == 5.0
    assert inner(3.0) == 9.0
    assert has_entries(inner) == [True]
    assert outer(np.array([3.0])) == 9.0
    assert outer(np.array([1, 2])) == 5.0  # with whole numbers: both are compiled for these
    assert inner(3) == 9
    assert inner(3.0) == 9.0


def test_python_calls_it_first(pair):
    inner, outer = pair
    assert inner(3.0) == 9.0
    assert outer(np.array([1.0, 2.0])) == 5.0
    assert has_entries(inner) == [True]


def test_what_numba_compiles_for_others_has_entries(pair):
    """Also if its functions of NumPy were compiled without, for a kernel."""

    @exact_kernel
    def of_ours(n):
        return np.full(n, 2.0).sum() + np.zeros(n, np.int16).size

    @numba.njit
    def of_a_user(n):
        return np.full(n, 2.0).sum() + np.zeros(n, np.int16).size

    assert of_ours(3) == of_a_user(3) == 9.0
    inner, _ = pair

    @numba.njit
    def also_calls_it(x):
        return inner(x) + 1

    assert also_calls_it(2.0) == 5.0
    assert has_entries(inner) == [True]


def test_a_kernel_that_cannot_be_compiled(pair):
    inner, outer = pair
    with pytest.raises(numba.TypingError):
        outer(np.array(["a"]))
    assert outer(np.array([1.0, 2.0])) == 5.0
    assert has_entries(inner) == [False]


def test_threads_compile_at_the_same_time():
    def made(number: int) -> Callable[[float], float]:
        inner, outer = numba.njit(lambda x: x + number), numba.njit(lambda x: inner(x) * inner(2 * x))
        for function in (inner, outer):
            leave_inner_entries_out(function)
        return outer

    made_ones = [made(number) for number in range(4)]
    results = np.zeros(4)

    def work(number: int) -> None:
        results[number] = made_ones[number](1.0)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.tolist() == [2.0, 6.0, 12.0, 20.0]


def test_the_cache_keeps_what_python_calls(numba_forks: NumbaForks, tmp_path):
    """A second process loads that and needs nothing else."""
    (tmp_path / "made_kernels.py").write_text(
        "from f5py.jit.kernel import kernel\n"
        "@kernel\ndef half(x):\n    return x / 2\n"
        "@kernel\ndef quarter(x):\n    return half(half(x))\n"
    )
    program = (
        "from made_kernels import half, quarter\n"
        "print(quarter(8.0), sum(quarter.stats.cache_hits.values()))\n"
        "print(len(half.overloads))"
    )

    def run() -> list[str]:
        done = numba_forks.run(program, tmp_path, {"NUMBA_CACHE_DIR": str(tmp_path / "cache")})
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run() == ["2.0", "0", "1"]
    assert [path.name.split("-")[0] for path in (tmp_path / "cache").rglob("*.nbi")] == ["made_kernels.quarter"]
    assert run() == ["2.0", "1", "0"]


def _plain_power(x, n):
    product = 1.0
    for _ in range(n):
        product *= x
    return product


def _plain_polynomial(x, n):
    return power(x, 2) + power(x, 3) + power(x, n)


power = _plain_power  # compiled by the test


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_shared_kernel_is_compiled_once_for_all_constants(monkeypatch: pytest.MonkeyPatch, is_shared: bool):
    inner, outer = numba.njit(_plain_power), numba.njit(_plain_polynomial)
    for made in (inner, outer):
        leave_inner_entries_out(made)
    inner.is_shared = is_shared
    monkeypatch.setitem(_plain_polynomial.__globals__, "power", inner)
    assert outer(2.0, 4) == 4.0 + 8.0 + 16.0
    assert len(inner.overloads) == (1 if is_shared else 3)
