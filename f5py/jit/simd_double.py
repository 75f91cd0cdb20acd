"""Explicit 8-lane float64 vectors for Numba kernels; see `f5py.jit.simd`, whose functions these are.

``load(a, i)``, ``store(a, i, v)``   8 doubles of float64 array `a` from index `i` on, no alignment needed
``widened(a, i)``                    8 floats of float32 array `a`, as doubles
``splat(x)``                         the same double in all lanes
``+ - * /``, ``maximum``             lane by lane
``floor(v)``                         lane by lane, as doubles
``madd(a, b, c)``                    a * b + c, fused where the processor can
``ge(a, b)``                         a mask
``lanes_of(n)``                      the mask of the lanes whose bits are set in the integer `n`
``select(mask, a, b)``               a where the mask is set, else b
``swapped_1(v)``, ``_2``, ``_4``     lane l has what lane l ^ 1, l ^ 2 or l ^ 4 had
``exp2(v)``                          2 ** v to about 1e-15 relative; 0 below -1022, lanes must be below 1024
``power2(v)``                        2 ** v of whole numbers, exactly; 0 below -1022, 2 ** 1023 above that
``exponent(v)``                      floor(log2(v)) as a double, for positive normal v; -1023 for zero
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic, models, overload, register_model

#: Lanes of a vector.
LANES = 8

_DOUBLE = ir.DoubleType()
_INT = ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_INT_VECTOR = ir.VectorType(_INT, LANES)
_FLOAT_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_CONTRACT = ("contract",)
_BIAS = 1023
#: Of a double from 2 ** 52 to 2 ** 53 the lowest bits are an integer: vectors of integers and of doubles are made of
#: each other by these, as older processors have no instruction for that.
_ONES, _ONES_BITS = 2.0**52, 0x4330000000000000


class _VectorType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="float64x8")


class _MaskType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="mask8")


vector = _VectorType()
mask = _MaskType()


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _VECTOR)


@register_model(_MaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _MASK)


def _constant(value: float) -> ir.Constant:
    return ir.Constant(_VECTOR, [float(value)] * LANES)


def _int_constant(value: int) -> ir.Constant:
    return ir.Constant(_INT_VECTOR, [value] * LANES)


def _call(builder, name: str, *arguments):
    kinds = [argument.type for argument in arguments]
    function_type = ir.FunctionType(kinds[0], kinds)
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.v8f64")
    return builder.call(function, arguments)


def _pointer(context, builder, array_type, array, index, kind):
    view = context.make_array(array_type)(context, builder, array)
    if config.BOUNDSCHECK:
        (length,) = cgutils.unpack_tuple(builder, view.shape, 1)
        last = builder.sub(length, ir.Constant(length.type, LANES))
        wrong = builder.or_(
            builder.icmp_signed("<", index, ir.Constant(index.type, 0)), builder.icmp_signed(">", index, last)
        )
        with builder.if_then(wrong, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("a vector lies beyond its array",))
    return builder.bitcast(builder.gep(view.data, [index]), kind.as_pointer())


def _is_array(array, dtype) -> bool:
    return isinstance(array, types.Array) and array.dtype == dtype and array.ndim == 1


@intrinsic
def load(typingctx, array, index):
    """Eight consecutive numbers of a float64 array."""
    if not _is_array(array, types.float64):
        return None

    def generate(context, builder, signature, arguments):
        array, index = arguments
        value = builder.load(_pointer(context, builder, signature.args[0], array, index, _VECTOR))
        value.align = 8
        return value

    return vector(array, types.intp), generate


@intrinsic
def widened(typingctx, array, index):
    """Eight consecutive numbers of a float32 array."""
    if not _is_array(array, types.float32):
        return None

    def generate(context, builder, signature, arguments):
        array, index = arguments
        value = builder.load(_pointer(context, builder, signature.args[0], array, index, _FLOAT_VECTOR))
        value.align = 4
        return builder.fpext(value, _VECTOR)

    return vector(array, types.intp), generate


@intrinsic
def store(typingctx, array, index, value):
    """Write eight consecutive numbers of a float64 array."""
    if not _is_array(array, types.float64):
        return None

    def generate(context, builder, signature, arguments):
        array, index, value = arguments
        instruction = builder.store(value, _pointer(context, builder, signature.args[0], array, index, _VECTOR))
        instruction.align = 8
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def splat(typingctx, scalar):
    """A vector with the same number in all lanes."""

    def generate(context, builder, signature, arguments):
        first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), arguments[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), zeros)

    return vector(types.float64), generate


def _binary(emit):
    @intrinsic
    def operation(typingctx, a, b):
        if a is not vector or b is not vector:
            return None
        return vector(vector, vector), lambda context, builder, signature, arguments: emit(builder, *arguments)

    return operation


_add = _binary(lambda builder, a, b: builder.fadd(a, b, flags=_CONTRACT))
_subtract = _binary(lambda builder, a, b: builder.fsub(a, b, flags=_CONTRACT))
_multiply = _binary(lambda builder, a, b: builder.fmul(a, b, flags=_CONTRACT))
_divide = _binary(lambda builder, a, b: builder.fdiv(a, b))
maximum = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))


def _overload_operator(python_operator, operation):
    @overload(python_operator)
    def implementation(a, b):
        if a is vector and b is vector:
            return lambda a, b: operation(a, b)
        return None


_overload_operator(operator.add, _add)
_overload_operator(operator.sub, _subtract)
_overload_operator(operator.mul, _multiply)
_overload_operator(operator.truediv, _divide)


@intrinsic
def madd(typingctx, a, b, c):
    """a * b + c, lane by lane."""

    def generate(context, builder, signature, arguments):
        return _call(builder, "fmuladd", *arguments)

    return vector(vector, vector, vector), generate


@intrinsic
def ge(typingctx, a, b):
    """Where a is at least b."""

    def generate(context, builder, signature, arguments):
        return builder.fcmp_ordered(">=", *arguments)

    return mask(vector, vector), generate


@intrinsic
def lanes_of(typingctx, number):
    """The lanes whose bits are set."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(builder.trunc(arguments[0], ir.IntType(LANES)), _MASK)

    return mask(types.int64), generate


@intrinsic
def select(typingctx, lanes, a, b):
    """a where the mask is set, else b."""

    def generate(context, builder, signature, arguments):
        return builder.select(*arguments)

    return vector(mask, vector, vector), generate


@intrinsic
def floor(typingctx, value):
    """The greatest integers not above the lanes, as doubles."""

    def generate(context, builder, signature, arguments):
        return _call(builder, "floor", arguments[0])

    return vector(vector), generate


def _swap(bit: int):
    @intrinsic
    def operation(typingctx, value):
        def generate(context, builder, signature, arguments):
            order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [lane ^ bit for lane in range(LANES)])
            return builder.shuffle_vector(arguments[0], ir.Constant(_VECTOR, ir.Undefined), order)

        return vector(vector), generate

    return operation


#: Lane l has what lane l ^ 1, l ^ 2 or l ^ 4 had.
swapped_1, swapped_2, swapped_4 = _swap(1), _swap(2), _swap(4)


def _power(builder, whole):
    biased = builder.bitcast(builder.fadd(whole, _constant(_ONES + _BIAS)), _INT_VECTOR)
    return builder.bitcast(builder.shl(biased, _int_constant(52)), _VECTOR)


def _at_least(builder, value, least: float):
    return builder.select(builder.fcmp_ordered(">", value, _constant(least)), value, _constant(least))


#: Taylor series of 2 ** x, which on [-0.5, 0.5] is as good as double precision.
_EXP2 = (
    1.0, 0.6931471805599453, 0.24022650695910072, 0.05550410866482158, 0.009618129107628477, 0.0013333558146428443,
    0.00015403530393381608, 1.5252733804059841e-05, 1.321548679014431e-06, 1.01780860092397e-07, 7.054911620801123e-09,
    4.4455382718708116e-10, 2.5678435993488206e-11, 1.3691488853904128e-12,
)  # fmt: skip


@intrinsic
def exp2(typingctx, value):
    """2 ** value."""

    def generate(context, builder, signature, arguments):
        value = _at_least(builder, arguments[0], -float(_BIAS))
        whole = _call(builder, "rint", value)
        part = builder.fsub(value, whole, flags=_CONTRACT)
        result = _constant(_EXP2[-1])
        for coefficient in reversed(_EXP2[:-1]):
            result = _call(builder, "fmuladd", result, part, _constant(coefficient))
        return builder.fmul(result, _power(builder, whole), flags=_CONTRACT)

    return vector(vector), generate


@intrinsic
def power2(typingctx, value):
    """2 ** value of whole numbers."""

    def generate(context, builder, signature, arguments):
        whole = _at_least(builder, arguments[0], -float(_BIAS))
        greatest = _constant(float(_BIAS))
        return _power(builder, builder.select(builder.fcmp_ordered("<", whole, greatest), whole, greatest))

    return vector(vector), generate


@intrinsic
def exponent(typingctx, value):
    """floor(log2(value)) of positive normal doubles."""

    def generate(context, builder, signature, arguments):
        pattern = builder.bitcast(arguments[0], _INT_VECTOR)
        biased = builder.and_(builder.lshr(pattern, _int_constant(52)), _int_constant(2047))
        biased = builder.bitcast(builder.or_(biased, _int_constant(_ONES_BITS)), _VECTOR)
        return builder.fsub(biased, _constant(_ONES + _BIAS))

    return vector(vector), generate
