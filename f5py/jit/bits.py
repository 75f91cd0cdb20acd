"""Counting bits inside Numba kernels, which Numba has no function for."""

from numba.core import types
from numba.extending import intrinsic


@intrinsic
def count_bits(typing_context, value):
    """Count the ones in a uint64, as int64."""

    def build(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), build
