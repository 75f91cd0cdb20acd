"""32-lane vectors of int8, int16 and int32 for kernels; see `f5py.jit.simd`.

Functions for kernels; arrays are one-dimensional and contiguous:

``load8(a, i)``, ``store8(a, i, v)``    32 bytes of an int8 or uint8 array from index `i` on, unaligned
``load16(a, i)``, ``store16(a, i, v)``  32 numbers of an int16 array
``load32(a, i)``, ``store32(a, i, v)``  32 numbers of an int32 array
``splat8(x)``, ``splat16(x)``, ``splat32(x)``  a number in all lanes
``add, sub, larger, either``            a + b, a - b, maximum, a | b, by lane; sums wrap around
``greater(a, b)``, ``equal(a, b)``      a mask; ``bits32(mask)`` packs it into a uint32, lane 0 in the lowest bit
``choose(mask, a, b)``                  a where the mask is set, else b
``first_of_32(n)``                      a mask of the first `n` lanes
``widen(v)``                            int8 to int32
``narrow(v)``                           int16 to int8, the lowest eight bits
``widen16(v)``                          int8 to int16
``largest(v)``                          the largest lane of an int32 vector

Vectors of 64 bytes, with the same operations by lane:

``load8x64(a, i)``, ``store8x64(a, i, v)``, ``splat8x64(x)``  as above
``lanes64()``                           the lane numbers
``lane64(v, i)``                        a lane
``from_before(v, a)``                   each lane from the preceding one, the first from the last of `a`
``from_behind(v)``                      each lane from the next one, the last from the first
"""

from llvmlite import ir
from numba.core import cgutils, types

from f5py.jit.vectors import (
    binary_intrinsic,
    broadcast,
    comparison_intrinsic,
    emits,
    memory_intrinsics,
    select_intrinsic,
    splat_intrinsic,
    vector_type,
)

#: Lanes of a vector.
LANES = 32

#: Lanes of a wide vector of bytes.
WIDE = 64

_INT = ir.IntType(32)
_BYTES = ir.VectorType(ir.IntType(8), LANES)
_SHORTS = ir.VectorType(ir.IntType(16), LANES)
_INTS = ir.VectorType(_INT, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_WIDE_BYTES = ir.VectorType(ir.IntType(8), WIDE)
_WIDE_MASK = ir.VectorType(ir.IntType(1), WIDE)

byte_vector = vector_type("int8x32", _BYTES)
short_vector = vector_type("int16x32", _SHORTS)
int_vector = vector_type("int32x32", _INTS)
mask = vector_type("mask32", _MASK)
wide_vector = vector_type("int8x64", _WIDE_BYTES)
wide_mask = vector_type("mask64", _WIDE_MASK)
_KINDS = (byte_vector, short_vector, int_vector, wide_vector)
_MASKS: dict[types.Type, types.Type] = {byte_vector: mask, short_vector: mask, int_vector: mask, wide_vector: wide_mask}

load8, store8 = memory_intrinsics(byte_vector, _BYTES, (types.int8, types.uint8), 1)
load16, store16 = memory_intrinsics(short_vector, _SHORTS, (types.int16,), 2)
load32, store32 = memory_intrinsics(int_vector, _INTS, (types.int32,), 4)
load8x64, store8x64 = memory_intrinsics(wide_vector, _WIDE_BYTES, (types.int8, types.uint8), 1)

splat8 = splat_intrinsic(byte_vector, types.int64)
splat16 = splat_intrinsic(short_vector, types.int64)
splat32 = splat_intrinsic(int_vector, types.int64)
splat8x64 = splat_intrinsic(wide_vector, types.int64)
add = binary_intrinsic(_KINDS, lambda builder, a, b: builder.add(a, b))
sub = binary_intrinsic(_KINDS, lambda builder, a, b: builder.sub(a, b))
either = binary_intrinsic(_KINDS, lambda builder, a, b: builder.or_(a, b))
larger = binary_intrinsic(_KINDS, lambda builder, a, b: builder.select(builder.icmp_signed(">", a, b), a, b))

greater = comparison_intrinsic(_MASKS, lambda builder, a, b: builder.icmp_signed(">", a, b))
equal = comparison_intrinsic(_MASKS, lambda builder, a, b: builder.icmp_signed("==", a, b))
choose = select_intrinsic(_MASKS)


@emits(types.uint32, mask)
def bits32(builder, lanes):
    """Convert the mask to a uint32, lane 0 in the lowest bit."""
    return builder.bitcast(lanes, _INT)


@emits(mask, types.int64)
def first_of_32(builder, n):
    """Make a mask of the first n lanes."""
    numbers = ir.Constant(_INTS, list(range(LANES)))
    return builder.icmp_signed("<", numbers, broadcast(builder, builder.trunc(n, _INT), _INTS))


widen = emits(int_vector, byte_vector)(lambda builder, value: builder.sext(value, _INTS))
widen16 = emits(short_vector, byte_vector)(lambda builder, value: builder.sext(value, _SHORTS))
narrow = emits(byte_vector, short_vector)(lambda builder, value: builder.trunc(value, _BYTES))


@emits(types.int32, int_vector)
def largest(builder, value):
    """Return the largest lane."""
    kind = ir.FunctionType(_INT, [_INTS])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.smax.v{LANES}i32")
    return builder.call(function, [value])


@emits(wide_vector)
def lanes64(builder):
    """Make a wide vector of lane numbers."""
    return ir.Constant(_WIDE_BYTES, list(range(WIDE)))


@emits(types.int64, wide_vector, types.int64)
def lane64(builder, value, lane):
    """Extract a lane of a wide vector."""
    return builder.sext(builder.extract_element(value, lane), ir.IntType(64))


def _moved(builder, first, second, start: int):
    """Return the lanes from `start` on of two concatenated wide vectors."""
    places = ir.Constant(ir.VectorType(_INT, WIDE), list(range(start, start + WIDE)))
    return builder.shuffle_vector(first, second, places)


@emits(wide_vector, wide_vector, wide_vector)
def from_before(builder, value, first):
    """Shift lanes up by one, with another vector's last lane as the first."""
    return _moved(builder, first, value, WIDE - 1)


@emits(wide_vector, wide_vector)
def from_behind(builder, value):
    """Rotate lanes down by one."""
    return _moved(builder, value, value, 1)
