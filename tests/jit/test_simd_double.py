"""The vectors of doubles against NumPy."""

import numpy as np
import pytest

from f5py.jit import simd_double
from f5py.jit.kernel import kernel

N = simd_double.LANES


@kernel
def _arithmetic(a, b, floats, lanes, out):
    x = simd_double.load(a, 1)
    y = simd_double.load(b, 0)
    simd_double.store(out, 0, x + y)
    simd_double.store(out, 8, x - y)
    simd_double.store(out, 16, x * y)
    simd_double.store(out, 24, x / y)
    simd_double.store(out, 32, simd_double.madd(x, y, simd_double.splat(1.0)))
    simd_double.store(out, 40, simd_double.maximum(x, y))
    simd_double.store(out, 48, simd_double.floor(x))
    simd_double.store(out, 56, simd_double.select(simd_double.ge(x, y), x, simd_double.splat(0.0)))
    simd_double.store(out, 64, simd_double.select(simd_double.lanes_of(lanes), x, y))
    simd_double.store(out, 72, simd_double.widened(floats, 1))
    simd_double.store(out, 80, simd_double.swapped_1(x))
    simd_double.store(out, 88, simd_double.swapped_2(x))
    simd_double.store(out, 96, simd_double.swapped_4(x))


@kernel
def _powers(a, out):
    x = simd_double.load(a, 0)
    simd_double.store(out, 0, simd_double.exp2(x))
    simd_double.store(out, 8, simd_double.power2(simd_double.floor(x)))
    simd_double.store(out, 16, simd_double.exponent(simd_double.load(out, 0)))


def test_arithmetic_is_lane_by_lane() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=N + 1), rng.normal(size=N)
    b[3] = a[4]  # a tie
    floats = rng.normal(size=N + 1).astype(np.float32)
    out = np.full(13 * N, np.nan)
    lanes = 0b01001101
    _arithmetic(a, b, floats, lanes | 1 << N, out)
    x, lane = a[1:], np.arange(N)
    found = out.reshape(-1, N)
    for row, expected in enumerate((x + b, x - b, x * b, x / b)):
        np.testing.assert_array_equal(found[row], expected)
    np.testing.assert_allclose(found[4], x * b + 1, rtol=1e-15, atol=1e-15)
    np.testing.assert_array_equal(found[5], np.maximum(x, b))
    np.testing.assert_array_equal(found[6], np.floor(x))
    np.testing.assert_array_equal(found[7], np.where(x >= b, x, 0))
    np.testing.assert_array_equal(found[8], np.where(lanes >> lane & 1, x, b))
    np.testing.assert_array_equal(found[9], floats[1:])
    for row, bit in ((10, 1), (11, 2), (12, 4)):
        np.testing.assert_array_equal(found[row], x[lane ^ bit])


@pytest.mark.parametrize("seed", range(3))
def test_powers_of_two(seed: int) -> None:
    a = np.random.default_rng(seed).uniform(-1021, 1023, N)
    a[:3] = 0.0, -700.5, 1023.0
    out = np.empty(3 * N)
    _powers(a, out)
    np.testing.assert_allclose(out[:N], np.exp2(a), rtol=2e-15)
    np.testing.assert_array_equal(out[N : 2 * N], np.exp2(np.floor(a)))
    np.testing.assert_array_equal(out[2 * N :], np.floor(np.log2(out[:N])))


def test_powers_beyond_the_range_of_doubles() -> None:
    a = np.array([-1e30, -5000.0, -1023.0, -1030.5, 1023.0, 1023.0, 0.0, 1.0])
    out = np.empty(3 * N)
    _powers(a, out)
    assert (out[:4] == 0).all()
    assert (out[N : N + 4] == 0).all()
    assert (out[2 * N : 2 * N + 4] == -1023).all()
    a[4:] = 1e30
    _powers(a, out)
    assert (out[N + 4 : 2 * N] == 2.0**1023).all()
