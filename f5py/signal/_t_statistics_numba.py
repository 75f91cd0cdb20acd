"""Jitted t-statistics of event detection, 32 positions at a time, each the float that f5c comes to.

f5c divides a difference by a square root in double precision and rounds the quotient to a float. Where the divider is
slow that would take most of the time of event detection. Here the quotient is the sum of two floats, which is off by
little enough to tell, nearly always, what the float is; vectors in which one of them is in doubt are divided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import vectors
from f5py.jit.fused_sums import has_fused_sums
from f5py.jit.instructions import intrinsic, ir, types
from f5py.jit.kernel import exact_inner
from f5py.signal._peaks_numba import CHUNK

_SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
#: Differences and variances from here on are divided without a division; of smaller ones only the difference 0 is.
_SMALLEST = 2.0**-30
#: Less half the bits of a float, those of about the reciprocal of its square root, and what two steps of Newton's
#: method begin with, instead of 1.5: what comes out is at most 7.3e-7 of it off (Walczyk, Moroz and Cieslinski,
#: Entropy 23:86, 2021).
_ROOT_BITS = 0x5F376908
_STEPS = 1.50087896, 1.50000057
#: How far off quotients may be, of themselves. Three eighths of the square of twice 7.3e-7 are left out, which is
#: 2 ** -40.2; roundings of corrections, none of which is more than 2 ** -20.3, come to 2 ** -43; and f5c's square root
#: and quotient are rounded to double before the latter is to float, which is 2 ** -52.
_NEAR = 2.0**-39

#: Positions that are computed at a time: with two registers of floats, or more, nothing waits for what is before it.
_LANES = 32
_FLOATS, _DOUBLES, _INTS = (ir.VectorType(kind, _LANES) for kind in (ir.FloatType(), ir.DoubleType(), ir.IntType(32)))


class _Lanes:
    """Floats or doubles of all lanes while code is generated for them; each operator rounds."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value

    def __add__(self, other: _Lanes) -> _Lanes:
        return self.of(self.builder.fadd(self.value, other.value))

    def __sub__(self, other: _Lanes) -> _Lanes:
        return self.of(self.builder.fsub(self.value, other.value))

    def __mul__(self, other: _Lanes) -> _Lanes:
        return self.of(self.builder.fmul(self.value, other.value))

    def __truediv__(self, other: _Lanes) -> _Lanes:
        return self.of(self.builder.fdiv(self.value, other.value))

    def __neg__(self) -> _Lanes:
        return self.of(self.builder.fneg(self.value))

    def of(self, value: Any) -> _Lanes:
        return _Lanes(self.builder, value)

    def constant(self, value: float) -> _Lanes:
        return self.of(vectors.constant(self.value.type, value))

    def fused(self, factor: _Lanes, summand: _Lanes) -> _Lanes:
        return self.call("fma", factor, summand)

    def call(self, name: str, *others: _Lanes) -> _Lanes:
        return self.of(vectors.call(self.builder, name, self.value, *(other.value for other in others)))

    def single(self) -> _Lanes:
        return self.of(self.builder.fptrunc(self.value, _FLOATS))

    def double(self) -> _Lanes:
        return self.of(self.builder.fpext(self.value, _DOUBLES))

    def at_least(self, value: float) -> _Lanes:
        limit = self.constant(value).value  # NaN stays
        return self.of(self.builder.select(self.builder.fcmp_ordered("<", self.value, limit), limit, self.value))


class _Width:
    """What sums are divided by: a number of samples."""

    def __init__(self, builder: Any, width: Any, is_fused: bool) -> None:
        single = builder.sitofp(width, ir.FloatType())
        double = builder.sitofp(width, ir.DoubleType())
        self._is_fused = is_fused
        self._by_kind = {}
        for kind, scalar in ((_FLOATS, single), (_DOUBLES, double)):
            inverse = builder.fdiv(ir.Constant(scalar.type, 1.0), scalar)
            self._by_kind[str(kind)] = [
                _Lanes(builder, vectors.broadcast(builder, one, kind)) for one in (scalar, inverse)
            ]

    def divide(self, dividend: _Lanes) -> _Lanes:
        """Divide to the last bit, in a third of a division's time.

        The rounded product with the reciprocal is off by less than one in its last digit, and the remainder, which is
        exact, says by how much (Markstein, IBM Journal of Research and Development 34:111, 1990). That takes sums of
        products that are rounded once; a processor without them divides.
        """
        divisor, inverse = self._by_kind[str(dividend.value.type)]
        if not self._is_fused:
            return dividend / divisor
        product = dividend * inverse
        return (-divisor).fused(product, dividend).fused(inverse, product)


def _divide_by_root(difference: _Lanes, square: _Lanes) -> tuple[_Lanes, Any]:
    """Divide a difference by the square root of a square; return that, and the lanes in which it may be wrong.

    Where anything is infinite or no number, it may be.
    """
    builder, half = difference.builder, square * square.constant(0.5)
    bits = builder.lshr(builder.bitcast(square.value, _INTS), vectors.constant(_INTS, 1))
    inverse = square.of(builder.bitcast(builder.sub(vectors.constant(_INTS, _ROOT_BITS), bits), _FLOATS))
    for begin in _STEPS:
        inverse = inverse * (-(half * inverse)).fused(inverse, square.constant(begin))
    # Products are kept with what their rounding has left out, so that half the error of the square is nearly exact.
    product = half * inverse
    left_out = half.fused(inverse, -product)
    correction = (-left_out).fused(inverse, (-product).fused(inverse, square.constant(0.5)))
    quotient = difference * inverse
    left_out = difference.fused(inverse, -quotient)
    correction = quotient.fused(correction, left_out)
    least = quotient + quotient.fused(square.constant(-_NEAR), correction)
    most = quotient + quotient.fused(square.constant(_NEAR), correction)
    return most, builder.fcmp_unordered("!=", least.value, most.value)


@intrinsic
def _fill(typingctx, sums, square_sums, at, window, out, to):
    """Fill `out` from element `to` on with the t-statistics of the positions from that of ``sums[at]`` on."""

    def generate(context, builder, signature, arguments):
        is_fused = has_fused_sums(context)
        at, window = arguments[2:4]

        def place(which: int, index: Any, kind: ir.VectorType) -> Any:
            return vectors.pointer(context, builder, signature.args[which], arguments[which], index, kind)

        def load(which: int, index: Any) -> _Lanes:
            value = builder.load(place(which, index, _DOUBLES))
            value.align = 8
            return _Lanes(builder, value)

        places = builder.sub(at, window), at, builder.add(at, window)
        before, here, after = (load(0, index) for index in places)
        squares_before, squares_here, squares_after = (load(1, index) for index in places)
        width = _Width(builder, window, is_fused)
        # The mixture of single and double precision is f5c's: peaks compare these values exactly.
        left = width.divide(here - before).single()
        right = width.divide((after - here).single())
        left_square = width.divide(squares_here - squares_before)
        right_square = width.divide((squares_after - squares_here).single())
        variance = left_square - (left * left).double() + right_square.double() - (right * right).double()
        difference, variance = (right - left).call("fabs"), variance.single()

        def divide() -> Any:
            square = width.divide(variance.at_least(_SMALLEST_NORMAL)).double()
            return (difference.double() / square.call("sqrt")).single().value

        result = _quotient(difference, variance, width, divide) if is_fused else divide()
        builder.store(result, place(4, arguments[5], _FLOATS)).align = 4
        return context.get_dummy_value()

    return types.void(sums, square_sums, types.intp, types.intp, out, types.intp), generate


def _quotient(difference: _Lanes, variance: _Lanes, width: _Width, divide: Callable[[], Any]) -> Any:
    """Divide without a division if the result is sure to be right in all lanes; else let `divide` do it."""
    builder = difference.builder
    result, is_unsure = _divide_by_root(difference, width.divide(variance.at_least(_SMALLEST)))
    is_less = builder.fcmp_ordered("<", difference.value, variance.value)
    smaller = builder.select(is_less, difference.value, variance.value)
    is_small = builder.and_(
        builder.fcmp_ordered("<", smaller, vectors.constant(_FLOATS, _SMALLEST)),
        builder.fcmp_ordered(">", difference.value, vectors.constant(_FLOATS, 0.0)),
    )
    lanes = builder.bitcast(builder.or_(is_unsure, is_small), ir.IntType(_LANES))
    fast = builder.block
    with builder.if_then(builder.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, 0)), likely=False):
        divided = divide()
        exact = builder.block
    chosen = builder.phi(_FLOATS)
    chosen.add_incoming(result.value, fast)
    chosen.add_incoming(divided, exact)
    return chosen


class Sums(NamedTuple):
    """Sums of the samples before each position of a block, of `lead` positions before that, and of some behind it."""

    values: NDArray[np.float64]
    squares: NDArray[np.float64]
    lead: int


@exact_inner
def t_statistics(sums, begin, begins, first, window, n_samples, out, to):
    """Fill `out` with t-statistics of a window, for `CHUNK` positions of each of several stretches.

    Parameters
    ----------
    sums : Sums
        Of a block.
    begin : int
        The first position of the block.
    begins : int64, shape (n,)
        First positions of the stretches.
    first : int
        From which position of each stretch on.
    window : int
        In samples.
    n_samples : int
        Of the read; where the window does not fit in, statistics are 0. Stretches behind its end are left out.
    out : float32, shape (>= to + n * CHUNK,)
    to : int
        Where in `out` those of the first stretch begin.
    """
    at = sums.lead - begin
    for stretch in range(begins.shape[0]):
        position = begins[stretch] + first
        if position >= n_samples:
            continue
        target = to + stretch * CHUNK
        fits = n_samples >= 2 * window and window >= 2
        if fits:
            for i in range(0, CHUNK, _LANES):
                _fill(sums.values, sums.squares, at + position + i, window, out, target + i)
        for i in range(min(window - position, CHUNK) if fits else CHUNK):
            out[np.uint64(target + i)] = np.float32(0.0)
        for i in range(max(n_samples - window + 1 - position, 0), CHUNK):
            out[np.uint64(target + i)] = np.float32(0.0)
