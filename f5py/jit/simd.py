"""16-lane float32 vectors for kernels.

Hot loops work on bands of 100 cells and on 16 hypotheses side by side, which automatic vectorization handles badly. A
vector is LLVM's ``<16 x float>``, split into the registers of the processor.

Functions for kernels; arrays are one-dimensional and contiguous:

``load(a, i)``, ``store(a, i, v)``   16 floats of float32 array `a` from index `i` on, unaligned
``load_twice(a, i)``                 8 floats, in the lower and again in the higher eight lanes
``splat(x)``                         a float in all lanes
``+ - * /``, ``maximum``             by lane
``reciprocal(v)``                    1 / v of positive normal v below 2 ** 125, to about 1e-7 relative
``floor(v)``                         by lane, as floats
``madd(a, b, c)``                    a * b + c, fused where the processor can
``ge(a, b)``, ``gt(a, b)``           a mask; ``bits(mask)`` packs it into a uint16, lane 0 in the lowest bit
``both(mask, other)``                the lanes set in both masks; ``either``, ``but_not`` likewise
``select(mask, a, b)``               a where the mask is set, else b
``exp2(v)``                          2 ** v to about 2e-7 relative; 0 below -126, lanes must be below 128
``power2(v)``                        2 ** v of integers, exactly; 0 below -126, lanes must be below 128
``exponent(v)``                      floor(log2(v)) as a float, for positive normal v; -127 for zero
``mixed_low(a, b)``, ``mixed_high(a, b)``
                                     the lower, or the higher, eight lanes of both interleaved, `a` first
``lanes_of(n)``                      the mask of the bits set in the integer `n`

``load4(a, i)``, ``store4(a, i, v)``, ``splat4(x)``
                                     the same for 4 floats; also ``+ - * /``, ``ge``, ``bits`` and ``select``

``flush_denormals()``                makes numbers below 2 ** -126 zero in this thread; returns the old mode
``restore_mode(mode)``               undoes that

NaN and infinities are valid: minus infinity means "impossible" in scores.
"""

import platform

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

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
LANES = 16

_FLOAT = ir.FloatType()
_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INT_VECTOR = ir.VectorType(_INT, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_FOUR, _FOUR_MASK = ir.VectorType(_FLOAT, 4), ir.VectorType(ir.IntType(1), 4)

vector = vector_type("float32x16", _VECTOR)
mask = vector_type("mask16", _MASK)
four = vector_type("float32x4", _FOUR)
four_mask = vector_type("mask4", _FOUR_MASK)


def _constant(value: float) -> ir.Constant:
    return constant(_VECTOR, float(value))


def _int_constant(value: int) -> ir.Constant:
    return constant(_INT_VECTOR, value)


load, store = memory_intrinsics(vector, _VECTOR, (types.float32,), 4)


def _twice(builder, half):
    order = ir.Constant(_INT_VECTOR, [lane % (LANES // 2) for lane in range(LANES)])
    return builder.shuffle_vector(half, ir.Constant(half.type, ir.Undefined), order)


load_twice = load_intrinsic(vector, ir.VectorType(_FLOAT, LANES // 2), (types.float32,), 4, _twice)
load4, store4 = memory_intrinsics(four, _FOUR, (types.float32,), 4)

splat, splat4 = splat_intrinsic(vector, types.float32), splat_intrinsic(four, types.float32)
overload_arithmetic(vector)
overload_arithmetic(four)
# compare and select become one max instruction, unlike maxnum with its NaN rule
maximum = binary_intrinsic((vector, four), lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))

madd = call_intrinsic(vector, "fmuladd", 3)
floor = call_intrinsic(vector, "floor", 1)
select = select_intrinsic({vector: mask, four: four_mask})
lanes_of = lanes_by_bits(mask, LANES)
ge = comparison_intrinsic({vector: mask, four: four_mask}, lambda builder, a, b: builder.fcmp_ordered(">=", a, b))
gt = comparison_intrinsic({vector: mask}, lambda builder, a, b: builder.fcmp_ordered(">", a, b))
both = binary_intrinsic((mask,), lambda builder, a, b: builder.and_(a, b))
either = binary_intrinsic((mask,), lambda builder, a, b: builder.or_(a, b))
but_not = binary_intrinsic((mask,), lambda builder, a, b: builder.and_(a, builder.not_(b)))


@intrinsic
def bits(typingctx, lanes):
    """Convert the mask to a uint16, lane 0 in the lowest bit."""

    def generate(context, builder, signature, arguments):
        n_lanes = LANES if lanes is mask else 4
        return builder.zext(builder.bitcast(arguments[0], ir.IntType(n_lanes)), ir.IntType(16))

    return types.uint16(lanes), generate


def _mixed(first: int):
    def emit(builder, a, b):
        order = [first + lane // 2 + lane % 2 * LANES for lane in range(LANES)]
        return builder.shuffle_vector(a, b, ir.Constant(_INT_VECTOR, order))

    return binary_intrinsic((vector,), emit)


mixed_low, mixed_high = _mixed(0), _mixed(LANES // 2)

#: Fit of 2 ** x on [-0.5, 0.5] to float32 precision.
_EXP2 = (1.0, 0.693147182, 0.240226462, 0.0555032884, 0.00961846706, 0.00133982606, 0.000154732054)


def _power(builder, whole):
    biased = builder.add(builder.fptosi(whole, _INT_VECTOR), _int_constant(127))
    return builder.bitcast(builder.shl(biased, _int_constant(23)), _VECTOR)


#: Added to a smaller float, it leaves the nearest integer in the lowest bits.
_ONES = 1.5 * 2.0**23


@emits(vector, vector)
def exp2(builder, value):
    """Return 2 ** value: a polynomial of the fraction, with the integer added to its exponent."""
    shifted = builder.fadd(value, _constant(_ONES))
    whole = builder.fsub(shifted, _constant(_ONES))
    part = exp2_of(builder, value, whole, None, _EXP2)
    exponent = builder.shl(builder.bitcast(shifted, _INT_VECTOR), _int_constant(23))
    raised = builder.bitcast(builder.add(builder.bitcast(part, _INT_VECTOR), exponent), _VECTOR)
    in_range = builder.fcmp_ordered(">=", value, _constant(-126.0))
    return builder.select(in_range, raised, _constant(0.0))


@emits(vector, vector)
def power2(builder, value):
    """Return 2 ** value of integers."""
    return _power(builder, at_least(builder, value, -127.0))


#: Minus a float's bits: its reciprocal to an eighth.
_RECIPROCAL_BITS = 0x7EF311C7
_NEWTON_STEPS = 3


@emits(vector, vector)
def reciprocal(builder, value):
    """Return 1 / value by Newton's method, faster than division and equal on all processors."""
    pattern = builder.sub(_int_constant(_RECIPROCAL_BITS), builder.bitcast(value, _INT_VECTOR))
    result = builder.bitcast(pattern, _VECTOR)
    negative = builder.fneg(value)
    for _ in range(_NEWTON_STEPS):
        error = call(builder, "fmuladd", negative, result, _constant(1.0))
        result = call(builder, "fmuladd", result, error, result)
    return result


@emits(vector, vector)
def exponent(builder, value):
    """Return floor(log2(value)) of positive normal floats."""
    pattern = builder.bitcast(value, _INT_VECTOR)
    biased = builder.and_(builder.lshr(pattern, _int_constant(23)), _int_constant(255))
    return builder.sitofp(builder.sub(biased, _int_constant(127)), _VECTOR)


def _x86_control(builder, name: str, slot) -> None:
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}mxcsr")
    builder.call(function, [builder.bitcast(slot, ir.IntType(8).as_pointer())])


def _arm_control(builder, name: str, kind: ir.FunctionType, *values):
    """Call an intrinsic, as LLVM cannot assemble inline assembly without an initialized parser."""
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.aarch64.{name}.fpcr"), values)


def _arm_write_control(builder, value) -> None:
    _arm_control(builder, "set", ir.FunctionType(ir.VoidType(), [ir.IntType(64)]), value)


_MACHINE = platform.machine().lower()
_IS_X86 = _MACHINE in ("x86_64", "amd64")
_IS_ARM = _MACHINE in ("aarch64", "arm64")
_X86_FLUSH = 0x8040  # flush-to-zero and denormals-are-zero
_ARM_FLUSH = 1 << 24


@emits(types.int64)
def flush_denormals(builder):
    """Set the thread's floating-point mode on x86-64 and 64-bit ARM, as denormals are very slow."""
    if _IS_X86:
        slot = cgutils.alloca_once(builder, _INT)
        _x86_control(builder, "st", slot)
        old = builder.load(slot)
        builder.store(builder.or_(old, ir.Constant(_INT, _X86_FLUSH)), slot)
        _x86_control(builder, "ld", slot)
        return builder.zext(old, ir.IntType(64))
    if _IS_ARM:
        old = _arm_control(builder, "get", ir.FunctionType(ir.IntType(64), []))
        _arm_write_control(builder, builder.or_(old, ir.Constant(ir.IntType(64), _ARM_FLUSH)))
        return old
    return ir.Constant(ir.IntType(64), 0)


@emits(types.void, types.int64)
def restore_mode(builder, mode):
    """Restore the floating-point mode from `flush_denormals`."""
    if _IS_X86:
        slot = cgutils.alloca_once(builder, _INT)
        builder.store(builder.trunc(mode, _INT), slot)
        _x86_control(builder, "ld", slot)
    elif _IS_ARM:
        _arm_write_control(builder, mode)
