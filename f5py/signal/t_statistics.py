"""t-statistics of event detection, 32 positions at a time, bit for bit those of f5c.

f5c divides a difference by a square root in double precision and rounds the quotient to a float, which is slow. Here
the quotient is the sum of two floats, nearly always exact enough to decide the rounding. Vectors with a doubtful lane
are divided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit import vectors
from f5py.jit.instructions import has_fused_sums, intrinsic, ir, types
from f5py.jit.kernel import exact_inner
from f5py.signal.peaks import CHUNK

_SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
#: Smaller differences (but 0) and variances are always divided.
_SMALLEST = 2.0**-30
#: Fast reciprocal square root with modified constants of Newton's two steps; relative error at most 7.3e-7 (Walczyk,
#: Moroz and Cieslinski, Entropy 23:86, 2021).
_ROOT_BITS = 0x5F376908
_STEPS = 1.50087896, 1.50000057
#: Bound of the relative error of quotients: 2 ** -40.2 from the neglected three eighths of the square of twice 7.3e-7,
#: 2 ** -43 from rounding corrections of at most 2 ** -20.3, and 2 ** -52 from f5c's rounding to double.
_NEAR = 2.0**-39

#: Positions per vector: two or more registers of floats hide latency.
_LANES = 32
_FLOATS, _DOUBLES, _INTS = (ir.VectorType(kind, _LANES) for kind in (ir.FloatType(), ir.DoubleType(), ir.IntType(32)))


class _IrVector:
    """Vector of floats or doubles during code generation; each operator rounds."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value

    def __add__(self, other: _IrVector) -> _IrVector:
        return self.of(self.builder.fadd(self.value, other.value))

    def __sub__(self, other: _IrVector) -> _IrVector:
        return self.of(self.builder.fsub(self.value, other.value))

    def __mul__(self, other: _IrVector) -> _IrVector:
        return self.of(self.builder.fmul(self.value, other.value))

    def __truediv__(self, other: _IrVector) -> _IrVector:
        return self.of(self.builder.fdiv(self.value, other.value))

    def __neg__(self) -> _IrVector:
        return self.of(self.builder.fneg(self.value))

    def of(self, value: Any) -> _IrVector:
        return _IrVector(self.builder, value)

    def constant(self, value: float) -> _IrVector:
        return self.of(vectors.constant(self.value.type, value))

    def fused(self, factor: _IrVector, summand: _IrVector) -> _IrVector:
        return self.call("fma", factor, summand)

    def call(self, name: str, *others: _IrVector) -> _IrVector:
        return self.of(vectors.call(self.builder, name, self.value, *(other.value for other in others)))

    def single(self) -> _IrVector:
        return self.of(self.builder.fptrunc(self.value, _FLOATS))

    def double(self) -> _IrVector:
        return self.of(self.builder.fpext(self.value, _DOUBLES))

    def at_least(self, value: float) -> _IrVector:
        limit = self.constant(value).value  # NaN stays
        return self.of(self.builder.select(self.builder.fcmp_ordered("<", self.value, limit), limit, self.value))


def _divide(dividend: _IrVector, number: Any, is_fused: bool) -> _IrVector:
    """Divide by a whole number exactly.

    Markstein's method (IBM Journal of Research and Development 34:111, 1990): the remainder of the rounded product with
    the reciprocal is exact, and corrects it. Processors without fused multiply-add divide.
    """
    builder, kind = dividend.builder, dividend.value.type
    scalar = builder.sitofp(number, kind.element)
    divisor = dividend.of(vectors.broadcast(builder, scalar, kind))
    if not is_fused:
        return dividend / divisor
    inverse = dividend.of(vectors.broadcast(builder, builder.fdiv(ir.Constant(kind.element, 1.0), scalar), kind))
    product = dividend * inverse
    return (-divisor).fused(product, dividend).fused(inverse, product)


def _divide_by_root(difference: _IrVector, square: _IrVector) -> tuple[_IrVector, Any]:
    """Divide a difference by the square root of a square; also return the mask of doubtful lanes.

    Lanes with infinities or NaN are doubtful.
    """
    builder, half = difference.builder, square * square.constant(0.5)
    bits = builder.lshr(builder.bitcast(square.value, _INTS), vectors.constant(_INTS, 1))
    inverse = square.of(builder.bitcast(builder.sub(vectors.constant(_INTS, _ROOT_BITS), bits), _FLOATS))
    for begin in _STEPS:
        inverse = inverse * (-(half * inverse)).fused(inverse, square.constant(begin))
    # Products are kept with their rounding errors, so that half the error of the square is nearly exact.
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
    """Fill ``out[to : to + 32]`` with the t-statistics of the positions from ``sums[at]`` on."""

    def generate(context, builder, signature, arguments):
        is_fused = has_fused_sums(context)
        at, window = arguments[2:4]

        def place(which: int, index: Any, kind: ir.VectorType) -> Any:
            return vectors.pointer(context, builder, signature.args[which], arguments[which], index, kind)

        def load(which: int, index: Any) -> _IrVector:
            value = builder.load(place(which, index, _DOUBLES))
            value.align = 8
            return _IrVector(builder, value)

        places = builder.sub(at, window), at, builder.add(at, window)
        before, here, after = (load(0, index) for index in places)
        squares_before, squares_here, squares_after = (load(1, index) for index in places)

        def mean(total: _IrVector) -> _IrVector:
            return _divide(total, window, is_fused)

        # Single and double precision as in f5c: peaks compare these values exactly.
        left = mean(here - before).single()
        right = mean((after - here).single())
        left_square = mean(squares_here - squares_before)
        right_square = mean((squares_after - squares_here).single())
        variance = left_square - (left * left).double() + right_square.double() - (right * right).double()
        difference, variance = (right - left).call("fabs"), variance.single()

        def divide() -> Any:
            square = mean(variance.at_least(_SMALLEST_NORMAL)).double()
            return (difference.double() / square.call("sqrt")).single().value

        result = _quotient(difference, variance, mean, divide) if is_fused else divide()
        builder.store(result, place(4, arguments[5], _FLOATS)).align = 4
        return context.get_dummy_value()

    return types.void(sums, square_sums, types.intp, types.intp, out, types.intp), generate


def _quotient(
    difference: _IrVector, variance: _IrVector, mean: Callable[[_IrVector], _IrVector], divide: Callable[[], Any]
) -> Any:
    """Compute the quotient without a division; call `divide` if any lane is doubtful."""
    builder = difference.builder
    result, is_unsure = _divide_by_root(difference, mean(variance.at_least(_SMALLEST)))
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


class CumulativeSums(NamedTuple):
    """Cumulative sums before each position of a block, with a margin on both sides."""

    values: NDArray[np.float64]
    squares: NDArray[np.float64]
    lead: int  # positions before the block


@exact_inner
def t_statistics(sums, begin, begins, first, window, n_samples, out, to):
    """Fill `out` from `to` on with the t-statistics of `CHUNK` positions of each stretch.

    The block of `sums` starts at the position `begin` of the read, the stretches (int64) at `begins`; `first` is
    relative to these. Statistics are 0 where the window does not fit in the read. Stretches after its end are skipped.
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
