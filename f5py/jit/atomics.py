"""Atomic sums in compiled code."""

from numba.core import types
from numba.extending import intrinsic


@intrinsic
def add_to(typingctx, total, count):
    """Atomically add `count` to ``total[0]``, int64, and return the previous value."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", view.data, arguments[1], "monotonic")

    return types.int64(total, types.int64), generate
