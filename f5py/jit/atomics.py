"""Sums that several threads add to inside of compiled code, without the interpreter."""

from numba.core import types
from numba.extending import intrinsic


@intrinsic
def add_to(typingctx, total, count):
    """Return ``total[0]`` and add `count` to it, as one atomic step; int64, shape (1,)."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", view.data, arguments[1], "monotonic")

    return types.int64(total, types.int64), generate
