"""Bit operations of integers that Numba lacks."""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def count_bits(typing_context, value):
    """Count the ones in a uint64, as int64."""

    def build(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), build


@intrinsic
def lowest_bit(typing_context, value):
    """Return the index of the lowest one in a uint64, as int64; undefined for zero."""

    def build(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), build
