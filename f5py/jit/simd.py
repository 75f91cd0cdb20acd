"""Explicit 16-lane float32 vectors for Numba kernels.

The hot loops of this project work on bands of 100 cells and on 16 hypotheses side by side: trip counts that an
automatic vectoriser handles badly. Here a vector is a Numba value of the type LLVM calls ``<16 x float>``; LLVM
splits it into whatever registers the processor has (one AVX-512, two AVX, four SSE or NEON registers).

Functions, all usable only inside Numba kernels; arrays are one-dimensional and contiguous:

``load(a, i)``, ``store(a, i, v)``   16 floats of float32 array `a` from index `i` on, no alignment needed
``splat(x)``                         the same float in all lanes
``+ - *``, ``maximum``, ``minimum``  lane by lane
``reciprocal(v)``                    1 / v of positive normal v below 2 ** 125, to about 1e-7 relative
``floor(v)``                         lane by lane, as floats
``madd(a, b, c)``                    a * b + c, fused where the processor can
``ge(a, b)``, ``gt(a, b)``           a mask; ``bits(mask)`` packs it into a uint16, lane 0 in the lowest bit
``select(mask, a, b)``               a where the mask is set, else b
``exp2(v)``                          2 ** v to about 2e-7 relative; 0 below -126, lanes must be below 128
``power2(v)``                        2 ** v of whole numbers, exactly; 0 below -126, lanes must be below 128
``exponent(v)``                      floor(log2(v)) as a float, for positive normal v; -127 for zero
``first_lanes(n)``                   a mask of the first `n` lanes (`n` a literal or a run-time integer)

``flush_denormals()``                makes numbers below 2 ** -126 zero in this thread; returns the old mode
``restore_mode(mode)``               undoes that

Neither NaN nor infinities are assumed away: minus infinity means "impossible" in scores.
"""

from __future__ import annotations

import operator
import platform

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic, models, overload, register_model

#: Lanes of a vector.
LANES = 16

_FLOAT = ir.FloatType()
_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INT_VECTOR = ir.VectorType(_INT, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_CONTRACT = ("contract",)


class _VectorType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="float32x16")


class _MaskType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="mask16")


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


def _broadcast(builder, scalar, vector_type):
    first = builder.insert_element(ir.Constant(vector_type, ir.Undefined), scalar, ir.Constant(_INT, 0))
    zeros = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(vector_type, ir.Undefined), zeros)


def _call(builder, name: str, *arguments):
    kinds = [argument.type for argument in arguments]
    function_type = ir.FunctionType(kinds[0], kinds)
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.v16f32")
    return builder.call(function, arguments)


def _pointer(context, builder, array_type, array, index):
    view = context.make_array(array_type)(context, builder, array)
    if config.BOUNDSCHECK:
        (length,) = cgutils.unpack_tuple(builder, view.shape, 1)
        last = builder.sub(length, ir.Constant(length.type, LANES))
        wrong = builder.or_(
            builder.icmp_signed("<", index, ir.Constant(index.type, 0)), builder.icmp_signed(">", index, last)
        )
        with builder.if_then(wrong, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("a vector lies beyond its array",))
    return builder.bitcast(builder.gep(view.data, [index]), _VECTOR.as_pointer())


@intrinsic
def load(typingctx, array, index):
    """Sixteen consecutive floats of a float32 array."""
    if not isinstance(array, types.Array) or array.dtype != types.float32 or array.ndim != 1:
        return None
    signature = vector(array, types.intp)

    def generate(context, builder, signature, arguments):
        value = builder.load(_pointer(context, builder, signature.args[0], *arguments))
        value.align = 4
        return value

    return signature, generate


@intrinsic
def store(typingctx, array, index, value):
    """Write sixteen consecutive floats of a float32 array."""
    if not isinstance(array, types.Array) or array.dtype != types.float32 or array.ndim != 1:
        return None
    signature = types.void(array, types.intp, vector)

    def generate(context, builder, signature, arguments):
        array, index, value = arguments
        pointer = _pointer(context, builder, signature.args[0], array, index)
        instruction = builder.store(value, pointer)
        instruction.align = 4
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def splat(typingctx, scalar):
    """A vector with the same float in all lanes."""

    def generate(context, builder, signature, arguments):
        return _broadcast(builder, arguments[0], _VECTOR)

    return vector(types.float32), generate


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
# A compare and a select become one max/min instruction; the maxnum intrinsics cost three for their NaN rule.
maximum = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
minimum = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))


def _overload_operator(python_operator, operation):
    @overload(python_operator)
    def implementation(a, b):
        if a is vector and b is vector:
            return lambda a, b: operation(a, b)
        return None


_overload_operator(operator.add, _add)
_overload_operator(operator.sub, _subtract)
_overload_operator(operator.mul, _multiply)


@intrinsic
def madd(typingctx, a, b, c):
    """a * b + c, lane by lane."""

    def generate(context, builder, signature, arguments):
        return _call(builder, "fmuladd", *arguments)

    return vector(vector, vector, vector), generate


def _comparison(symbol: str):
    @intrinsic
    def compare(typingctx, a, b):
        def generate(context, builder, signature, arguments):
            return builder.fcmp_ordered(symbol, *arguments)

        return mask(vector, vector), generate

    return compare


ge = _comparison(">=")
gt = _comparison(">")


@intrinsic
def floor(typingctx, value):
    """The greatest integers not above the lanes, as floats."""

    def generate(context, builder, signature, arguments):
        return _call(builder, "floor", arguments[0])

    return vector(vector), generate


@intrinsic
def bits(typingctx, lanes):
    """The mask as a uint16, lane 0 in the lowest bit."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(16))

    return types.uint16(mask), generate


@intrinsic
def select(typingctx, lanes, a, b):
    """a where the mask is set, else b."""

    def generate(context, builder, signature, arguments):
        return builder.select(*arguments)

    return vector(mask, vector, vector), generate


@intrinsic
def first_lanes(typingctx, n):
    """A mask of the first n lanes."""

    def generate(context, builder, signature, arguments):
        numbers = ir.Constant(_INT_VECTOR, list(range(LANES)))
        return builder.icmp_signed("<", numbers, _broadcast(builder, arguments[0], _INT_VECTOR))

    return mask(types.int32), generate


#: Chebyshev-like fit of 2 ** x on [-0.5, 0.5]; the relative error is below the rounding of float32.
_EXP2 = (1.0, 0.693147182, 0.240226462, 0.0555032884, 0.00961846706, 0.00133982606, 0.000154732054)


@intrinsic
def exp2(typingctx, value):
    """2 ** value."""

    def generate(context, builder, signature, arguments):
        value = builder.select(
            builder.fcmp_ordered(">", arguments[0], _constant(-127.0)), arguments[0], _constant(-127.0)
        )
        whole = _call(builder, "rint", value)
        part = builder.fsub(value, whole, flags=_CONTRACT)
        result = _constant(_EXP2[-1])
        for coefficient in reversed(_EXP2[:-1]):
            result = _call(builder, "fmuladd", result, part, _constant(coefficient))
        biased = builder.add(builder.fptosi(whole, _INT_VECTOR), _int_constant(127))
        power = builder.bitcast(builder.shl(biased, _int_constant(23)), _VECTOR)
        return builder.fmul(result, power, flags=_CONTRACT)

    return vector(vector), generate


@intrinsic
def power2(typingctx, value):
    """2 ** value of whole numbers."""

    def generate(context, builder, signature, arguments):
        whole = builder.select(
            builder.fcmp_ordered(">", arguments[0], _constant(-127.0)), arguments[0], _constant(-127.0)
        )
        biased = builder.add(builder.fptosi(whole, _INT_VECTOR), _int_constant(127))
        return builder.bitcast(builder.shl(biased, _int_constant(23)), _VECTOR)

    return vector(vector), generate


#: Less the bits of a float, those of its reciprocal to an eighth, which is the best that a constant can do.
_RECIPROCAL_BITS = 0x7EF311C7
_NEWTON_STEPS = 3


@intrinsic
def reciprocal(typingctx, value):
    """1 / value by Newton's method, which takes a third of the time of a division and is the same everywhere."""

    def generate(context, builder, signature, arguments):
        value = arguments[0]
        pattern = builder.sub(_int_constant(_RECIPROCAL_BITS), builder.bitcast(value, _INT_VECTOR))
        result = builder.bitcast(pattern, _VECTOR)
        negative = builder.fneg(value)
        for _ in range(_NEWTON_STEPS):
            error = _call(builder, "fmuladd", negative, result, _constant(1.0))
            result = _call(builder, "fmuladd", result, error, result)
        return result

    return vector(vector), generate


@intrinsic
def exponent(typingctx, value):
    """floor(log2(value)) of positive normal floats."""

    def generate(context, builder, signature, arguments):
        pattern = builder.bitcast(arguments[0], _INT_VECTOR)
        biased = builder.and_(builder.lshr(pattern, _int_constant(23)), _int_constant(255))
        return builder.sitofp(builder.sub(biased, _int_constant(127)), _VECTOR)

    return vector(vector), generate


def _x86_control(builder, name: str, slot) -> None:
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}mxcsr")
    builder.call(function, [builder.bitcast(slot, ir.IntType(8).as_pointer())])


def _arm_control(builder, name: str, kind: ir.FunctionType, *values):
    """Call an intrinsic, not inline assembly: LLVM cannot assemble that unless somebody has initialised its parser."""
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.aarch64.{name}.fpcr"), values)


def _arm_read_control(builder):
    return _arm_control(builder, "get", ir.FunctionType(ir.IntType(64), []))


def _arm_write_control(builder, value) -> None:
    _arm_control(builder, "set", ir.FunctionType(ir.VoidType(), [ir.IntType(64)]), value)


_MACHINE = platform.machine().lower()
_IS_X86 = _MACHINE in ("x86_64", "amd64")
_IS_ARM = _MACHINE in ("aarch64", "arm64")
_X86_FLUSH = 0x8040  # flush-to-zero and denormals-are-zero
_ARM_FLUSH = 1 << 24


@intrinsic
def flush_denormals(typingctx):
    """Set the thread's floating-point mode; other processors than x86-64 and 64-bit ARM keep theirs.

    Many processors need a hundred times longer for an operation with a denormal number.
    """

    def generate(context, builder, signature, arguments):
        if _IS_X86:
            slot = cgutils.alloca_once(builder, _INT)
            _x86_control(builder, "st", slot)
            old = builder.load(slot)
            builder.store(builder.or_(old, ir.Constant(_INT, _X86_FLUSH)), slot)
            _x86_control(builder, "ld", slot)
            return builder.zext(old, ir.IntType(64))
        if _IS_ARM:
            old = _arm_read_control(builder)
            _arm_write_control(builder, builder.or_(old, ir.Constant(ir.IntType(64), _ARM_FLUSH)))
            return old
        return ir.Constant(ir.IntType(64), 0)

    return types.int64(), generate


@intrinsic
def restore_mode(typingctx, mode):
    """Set the floating-point mode that `flush_denormals` has returned."""

    def generate(context, builder, signature, arguments):
        if _IS_X86:
            slot = cgutils.alloca_once(builder, _INT)
            builder.store(builder.trunc(arguments[0], _INT), slot)
            _x86_control(builder, "ld", slot)
        elif _IS_ARM:
            _arm_write_control(builder, arguments[0])
        return context.get_dummy_value()

    return types.void(types.int64), generate
