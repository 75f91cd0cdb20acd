"""8-lane float64 vectors for kernels; see `f5py.jit.simd`.

``load(a, i)``, ``store(a, i, v)``   8 doubles of float64 array `a` from index `i` on, unaligned
``widened(a, i)``                    8 floats of float32 array `a`, as doubles
``splat(x)``                         a double in all lanes
``+ - * /``, ``maximum``             by lane
``floor(v)``                         by lane, as doubles
``madd(a, b, c)``                    a * b + c, fused where the processor can
``ge(a, b)``                         a mask
``lanes_of(n)``                      the mask of the bits set in the integer `n`
``select(mask, a, b)``               a where the mask is set, else b
``swapped_1(v)``, ``_2``, ``_4``     lane l from lane l ^ 1, l ^ 2 or l ^ 4
``exp2(v)``                          2 ** v to about 1e-15 relative; 0 below -1022, lanes must be below 1024
``power2(v)``                        2 ** v of integers, exactly; 0 below -1022, 2 ** 1023 above that
``exponent(v)``                      floor(log2(v)) as a double, for positive normal v; -1023 for zero
"""

from llvmlite import ir
from numba.core import types

from f5py.jit.vectors import (
    at_least,
    binary_intrinsic,
    call,
    call_intrinsic,
    comparison_intrinsic,
    constant,
    emits,
    exp2_of,
    lanes_by_bits,
    load_intrinsic,
    memory_intrinsics,
    overload_arithmetic,
    select_intrinsic,
    splat_intrinsic,
    vector_type,
)

#: Lanes of a vector.
LANES = 8

_DOUBLE = ir.DoubleType()
_INT = ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_INT_VECTOR = ir.VectorType(_INT, LANES)
_FLOAT_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_BIAS = 1023
#: Doubles from 2 ** 52 to 2 ** 53 have an integer in the lowest bits, for conversions without an instruction.
_ONES, _ONES_BITS = 2.0**52, 0x4330000000000000

vector = vector_type("float64x8", _VECTOR)
mask = vector_type("mask8", _MASK)


def _constant(value: float) -> ir.Constant:
    return constant(_VECTOR, float(value))


def _int_constant(value: int) -> ir.Constant:
    return constant(_INT_VECTOR, value)


load, store = memory_intrinsics(vector, _VECTOR, (types.float64,), 8)

widened = load_intrinsic(
    vector, _FLOAT_VECTOR, (types.float32,), 4, lambda builder, value: builder.fpext(value, _VECTOR)
)
splat = splat_intrinsic(vector, types.float64)
overload_arithmetic(vector)
maximum = binary_intrinsic((vector,), lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))

madd = call_intrinsic(vector, "fmuladd", 3)
floor = call_intrinsic(vector, "floor", 1)
select = select_intrinsic({vector: mask})
lanes_of = lanes_by_bits(mask, LANES)
ge = comparison_intrinsic({vector: mask}, lambda builder, a, b: builder.fcmp_ordered(">=", a, b))


def _swap(bit: int):
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [lane ^ bit for lane in range(LANES)])
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    return emits(vector, vector)(lambda builder, value: builder.shuffle_vector(value, undefined, order))


swapped_1, swapped_2, swapped_4 = _swap(1), _swap(2), _swap(4)


def _power(builder, whole):
    biased = builder.bitcast(builder.fadd(whole, _constant(_ONES + _BIAS)), _INT_VECTOR)
    return builder.bitcast(builder.shl(biased, _int_constant(52)), _VECTOR)


#: Taylor series of 2 ** x on [-0.5, 0.5] to double precision.
_EXP2 = (
    1.0, 0.6931471805599453, 0.24022650695910072, 0.05550410866482158, 0.009618129107628477, 0.0013333558146428443,
    0.00015403530393381608, 1.5252733804059841e-05, 1.321548679014431e-06, 1.01780860092397e-07, 7.054911620801123e-09,
    4.4455382718708116e-10, 2.5678435993488206e-11, 1.3691488853904128e-12,
)  # fmt: skip


@emits(vector, vector)
def exp2(builder, value):
    """Return 2 ** value."""
    value = at_least(builder, value, -float(_BIAS))
    whole = call(builder, "rint", value)
    return exp2_of(builder, value, whole, _power(builder, whole), _EXP2)


@emits(vector, vector)
def power2(builder, value):
    """Return 2 ** value of integers."""
    whole = at_least(builder, value, -float(_BIAS))
    greatest = _constant(float(_BIAS))
    return _power(builder, builder.select(builder.fcmp_ordered("<", whole, greatest), whole, greatest))


@emits(vector, vector)
def exponent(builder, value):
    """Return floor(log2(value)) of positive normal doubles."""
    pattern = builder.bitcast(value, _INT_VECTOR)
    biased = builder.and_(builder.lshr(pattern, _int_constant(52)), _int_constant(2047))
    biased = builder.bitcast(builder.or_(biased, _int_constant(_ONES_BITS)), _VECTOR)
    return builder.fsub(biased, _constant(_ONES + _BIAS))
