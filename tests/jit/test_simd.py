"""The explicit vectors against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.jit import simd
from f5py.jit.c_memory import borrow_array
from f5py.jit.kernel import kernel

_ONE = np.float32(1.0)


@kernel
def _arithmetic(a, b, lanes, out):
    x = simd.load(a, 1)
    y = simd.load(b, 0)
    simd.store(out, 0, x + y)
    simd.store(out, 16, x - y)
    simd.store(out, 32, x * y)
    simd.store(out, 48, simd.madd(x, y, simd.splat(_ONE)))
    simd.store(out, 64, simd.maximum(x, y))
    simd.store(out, 80, simd.select(simd.ge(y, x), x, y))
    simd.store(out, 96, simd.floor(x))
    simd.store(out, 112, simd.select(simd.gt(x, y), x, y))
    simd.store(out, 128, x / y)
    simd.store(out, 144, simd.select(simd.lanes_of(lanes), x, y))
    simd.store(out, 160, simd.select(simd.both(simd.lanes_of(lanes), simd.gt(x, y)), x, y))
    simd.store(out, 176, simd.mixed_low(x, y))
    simd.store(out, 192, simd.mixed_high(x, y))
    simd.store(out, 208, simd.select(simd.either(simd.lanes_of(lanes), simd.gt(x, y)), x, y))
    simd.store(out, 224, simd.select(simd.but_not(simd.lanes_of(lanes), simd.gt(x, y)), x, y))
    simd.store(out, 240, simd.load_twice(a, 2))
    return simd.bits(simd.ge(x, y)), simd.bits(simd.gt(x, y))


@kernel
def _functions(a, out):
    x = simd.load(a, 0)
    simd.store(out, 0, simd.exp2(x))
    simd.store(out, 16, simd.reciprocal(x))
    simd.store(out, 32, simd.exponent(x))


def _of_each(x):
    """Return exp2, reciprocal and exponent of 16 numbers, as rows."""
    out = np.empty(48, np.float32)
    _functions(np.asarray(x, np.float32), out)
    return out.reshape(3, 16)


def test_arithmetic_is_lane_by_lane():
    rng = np.random.default_rng(1)
    a = rng.normal(size=17).astype(np.float32)
    b = rng.normal(size=16).astype(np.float32)
    b[3] = a[4]  # a tie
    out = np.full(256, np.nan, np.float32)
    at_least, greater = _arithmetic(a, b, np.int64(0b1010_0000_1100_0001), out)
    x = a[1:]
    np.testing.assert_array_equal(out[:16], x + b)
    np.testing.assert_array_equal(out[240:256], np.tile(a[2:10], 2))
    np.testing.assert_array_equal(out[16:32], x - b)
    np.testing.assert_array_equal(out[32:48], x * b)
    np.testing.assert_allclose(out[48:64], x * b + 1, rtol=3e-7, atol=1e-7)
    np.testing.assert_array_equal(out[64:80], np.maximum(x, b))
    np.testing.assert_array_equal(out[80:96], np.minimum(x, b))
    np.testing.assert_array_equal(out[96:112], np.floor(x))
    np.testing.assert_array_equal(out[112:128], np.where(x > b, x, b))
    np.testing.assert_array_equal(out[128:144], x / b)
    weights = 1 << np.arange(16)
    chosen = (0b1010_0000_1100_0001 & weights) > 0
    np.testing.assert_array_equal(out[144:160], np.where(chosen, x, b))
    np.testing.assert_array_equal(out[160:176], np.where(chosen & (x > b), x, b))
    np.testing.assert_array_equal(out[176:208], np.stack([x, b], axis=1).ravel())
    np.testing.assert_array_equal(out[208:224], np.where(chosen | (x > b), x, b))
    np.testing.assert_array_equal(out[224:240], np.where(chosen & ~(x > b), x, b))
    assert (chosen & (x > b)).any()
    assert (chosen & (x < b)).any()
    assert at_least == ((x >= b) * weights).sum()
    assert greater == ((x > b) * weights).sum()
    assert at_least != greater


@kernel
def _of_four(a, b, out):
    x, y = simd.load4(a, 1), simd.load4(b, 0)
    simd.store4(out, 0, x + y * simd.splat4(_ONE))
    simd.store4(out, 4, x - y)
    simd.store4(out, 8, x / y)
    simd.store4(out, 12, simd.select(simd.ge(x, y), x, y))
    return simd.bits(simd.ge(x, y))


def test_vectors_of_four_are_lane_by_lane():
    a, b = np.array([9, 1, 5, -2, 8], np.float32), np.array([3, 5, 7, -np.inf], np.float32)
    out = np.full(18, np.nan, np.float32)
    x = a[1:]
    assert _of_four(a, b, out) == 0b1010
    np.testing.assert_array_equal(out[:16].reshape(4, 4), [x + b, x - b, x / b, np.maximum(x, b)])
    assert np.isnan(out[16:]).all()


def test_minus_infinity_is_an_ordinary_value():
    a = np.full(17, -np.inf, np.float32)
    b = np.zeros(16, np.float32)
    out = np.zeros(256, np.float32)
    at_least, _ = _arithmetic(a, b, np.int64(0b1010_0000_1100_0001), out)
    assert at_least == 0
    np.testing.assert_array_equal(out[:16], -np.inf)
    np.testing.assert_array_equal(out[64:80], 0)


@pytest.mark.parametrize("seed", range(20))
def test_exp2_and_reciprocal_are_accurate(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-125, 127, 16).astype(np.float32)
    np.testing.assert_allclose(_of_each(x)[0], 2.0 ** x.astype(np.float64), rtol=3e-7)
    x = (2.0 ** rng.uniform(-40, 120, 16)).astype(np.float32)
    np.testing.assert_allclose(_of_each(x)[1], 1 / x.astype(np.float64), rtol=2.5e-7)


def test_exp2_of_integers_is_exact_and_of_very_small_numbers_zero():
    x = np.array([-126, -100, -1, 0, 1, 2, 60, 127, -127, -128, -200, -1e30, -np.inf, 3, 4, 5], np.float32)
    expected = np.where(x < -126, 0, 2.0 ** x.astype(np.float64))
    np.testing.assert_array_equal(_of_each(x)[0], expected.astype(np.float32))


def test_exponent():
    x = np.array([1, 1.5, 2, 3.99, 4, 0.5, 0.49, 1e-30, 1e30, 2**-126, 7, 8, 9, 1e3, 1e-3, 0], np.float32)
    expected = [*np.floor(np.log2(x[:15].astype(np.float64))), -127]
    np.testing.assert_array_equal(_of_each(x)[2], expected)


@kernel
def _halve(a, out, flush):
    mode = simd.flush_denormals() if flush else 0
    simd.store(out, 0, simd.load(a, 0) * simd.splat(np.float32(0.5)))
    if flush:
        simd.restore_mode(mode)
    simd.store(out, 16, simd.load(a, 0) * simd.splat(np.float32(0.5)))


def test_denormals_are_flushed_only_between_the_two_calls():
    a = np.full(16, np.finfo(np.float32).tiny, np.float32)
    out = np.full(32, np.nan, np.float32)
    _halve(a, out, False)
    assert (out > 0).all()
    _halve(a, out, True)
    assert (out[:16] == 0).all()
    assert (out[16:] > 0).all()


@kernel
def _double(array):
    view = borrow_array(array)
    for i in range(view.shape[0]):
        view[i] *= 2.0
    return view[1:].sum()


def test_an_array_without_owner_is_the_same_memory():
    array = np.arange(5.0)
    owner = array.base
    assert _double(array) == 20.0
    np.testing.assert_array_equal(array, [0.0, 2.0, 4.0, 6.0, 8.0])
    assert array.base is owner
