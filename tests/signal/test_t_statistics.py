"""t-statistics without divisions against f5c's formula, operation by operation, to the last bit."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from f5py.jit import vectors
from f5py.jit.instructions import processor_has_fused_sums
from f5py.jit.kernel import exact_kernel
from f5py.signal import t_statistics as module
from f5py.signal.peaks import CHUNK
from f5py.signal.t_statistics import _FLOATS, CumulativeSums, _IrVector, t_statistics

from ..compiled import compiled

t_statistics = compiled(t_statistics)

WINDOWS = 2, 3, 6, 7, 14
TINY = np.finfo(np.float32).tiny


def _expected(sums, square_sums, window):
    """f5c's formula for the positions from `window` on, and where its sums are numbers; a float is a float here."""

    def means(values):
        differences = values[window:] - values[:-window]
        left, right = differences[:-window], differences[window:]
        return left / np.float64(window), right.astype(np.float32) / np.float32(window)

    with np.errstate(all="ignore"):
        parts = *means(sums), *means(square_sums)
        left, right, left_square, right_square = parts[0].astype(np.float32), *parts[1:]
        variance = left_square - left * left + right_square - right * right
        variance = variance.astype(np.float32)
        variance = np.where(variance < TINY, TINY, variance)
        statistics = abs(right - left) / np.sqrt((variance / np.float32(window)).astype(np.float64))
        return statistics.astype(np.float32), np.isfinite([*parts, variance]).all(0)


def _check(sums, square_sums, window, compute=t_statistics):
    """Compare; return the statistics, NaN where sums are infinite or none: there it does not matter what they are."""
    count = (len(sums) - 2 * window) // CHUNK * CHUNK
    expected, is_number = _expected(sums, square_sums, window)
    expected = np.where(is_number, expected, np.float32(np.nan))[:count]
    found = np.full(count, -1, np.float32)
    begins = np.arange(0, count, CHUNK)
    compute(CumulativeSums(sums, square_sums, 0), 0, begins, window, window, len(sums), found, 0)
    found[~is_number[:count]] = np.nan
    np.testing.assert_array_equal(found, expected)
    return expected


def _sums(x):
    return np.cumsum(x, dtype=np.float64), np.cumsum(x * x, dtype=np.float64)


@intrinsic
def _divide_by_root(typingctx, differences, squares, quotients, at):
    """Fill 32 quotients; return the mask of those that may be wrong."""

    def generate(context, builder, signature, arguments):
        places = [
            vectors.pointer(context, builder, signature.args[i], arguments[i], arguments[3], _FLOATS) for i in range(3)
        ]
        lanes = [_IrVector(builder, builder.load(place)) for place in places[:2]]
        for one in lanes:
            one.value.align = 4
        quotient, is_unsure = module._divide_by_root(*lanes)
        builder.store(quotient.value, places[2]).align = 4
        return builder.bitcast(is_unsure, ir.IntType(32))

    return types.uint32(differences, squares, quotients, types.intp), generate


@exact_kernel
def _divide_all(differences, squares, quotients, unsure):
    for i in range(0, len(quotients), 32):
        mask = _divide_by_root(differences, squares, quotients, i)
        for lane in range(32):
            unsure[i + lane] = (mask >> np.uint32(lane)) & np.uint32(1)


@pytest.fixture(params=[True, False], ids=["fused", "not fused"])
def compute(request, monkeypatch):
    """Compile for processors with fused multiply-add, and without."""
    if request.param:
        yield t_statistics
        return
    asked = []
    monkeypatch.setattr(module, "has_fused_sums", asked.append)  # which returns nothing
    yield numba.njit(module.t_statistics)
    assert asked


@pytest.mark.parametrize("window", WINDOWS)
def test_signals(window, compute):
    rng = np.random.default_rng(window)
    levels = np.repeat(rng.normal(500, 80, 20_000), rng.integers(2, 20, 20_000))
    noisy = (np.rint(rng.normal(levels, 10)).astype(np.float32) + np.float32(10)) * np.float32(0.17)
    for x in (noisy, noisy[:10_000] * np.float32(1e-3), noisy[:10_000] - np.float32(95)):
        assert (_check(*_sums(x), window, compute) > 1).mean() > 0.3


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("exponent", [1, 10, 40, 90])
def test_sums_of_all_sizes(window, exponent, compute):
    rng = np.random.default_rng(100 + exponent)
    sums, squares = rng.normal(size=(2, 20_000)) * 2.0 ** rng.integers(-exponent, exponent, (2, 20_000))
    _check(sums, squares, window, compute)
    with np.errstate(over="ignore"):
        _check(sums, np.cumsum(abs(squares)), window, compute)


@pytest.mark.parametrize("window", WINDOWS)
def test_silence_ramps_and_what_is_no_number(window, compute):
    n = 1000 + 2 * window
    assert not _check(np.arange(n) * 96.0, np.arange(n) * 96.0**2, window, compute).any()
    # no variance, but a difference
    assert (_check(np.arange(n) ** 2 * 1.0, np.zeros(n), window, compute) > 1e18).all()
    rng = np.random.default_rng(window)
    for wrong in (np.nan, np.inf, -np.inf, 1e300):
        sums, squares = rng.integers(0, 4, (2, n)).cumsum(1).astype(float)
        sums[rng.integers(0, n, 20)] = wrong
        squares[rng.integers(0, n, 20)] = wrong
        assert 0.02 < np.isnan(_check(sums, squares, window, compute)).mean() < 0.9


@pytest.mark.skipif(not processor_has_fused_sums(), reason="divides")
@pytest.mark.parametrize("exponent", [-30, 0, 1, 90])
def test_quotients_are_right_or_said_to_be_unsure(exponent):
    """Among them the nearest to halfway between two floats of two millions, where a last digit more or less counts."""
    rng = np.random.default_rng(100 + exponent)
    n = 1 << 21
    squares = np.ldexp(rng.uniform(1, 2, n).astype(np.float32), exponent)
    differences = np.ldexp(rng.uniform(1, 2, n).astype(np.float32), rng.integers(-29, 29, n))
    differences[:1000] = 0
    squares[: n // 2] = np.rint(rng.uniform(1, 4096, n // 2)) ** 2  # roots are numbers
    exact = differences / np.sqrt(squares.astype(np.float64))
    expected = exact.astype(np.float32)
    found, unsure = np.empty(n, np.float32), np.zeros(n, bool)
    _divide_all(differences, squares, found, unsure)
    np.testing.assert_array_equal(found[~unsure], expected[~unsure])
    assert 0 < unsure.sum() < n * 2e-4
    assert not unsure[:1000].any()
    bits = exact.view(np.int64) & ((1 << 29) - 1)  # what a double has more than a float
    nearest = np.argsort(abs(bits - (1 << 28)))[:10]
    assert unsure[nearest].all()


@given(
    st.sampled_from(WINDOWS), arrays.arrays(np.float32, CHUNK + 28, elements=st.floats(width=32)), st.floats(-1e6, 1e6)
)
def test_any_samples(window, x, before):
    with np.errstate(all="ignore"):
        sums, squares = _sums(x)
        _check(sums + before, squares + abs(before), window)
