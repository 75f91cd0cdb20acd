"""Turns of several threads at one list, inside of compiled code."""

from f5py.jit.instructions import intrinsic, ir, types
from f5py.jit.kernel import exact_inner


@intrinsic
def counter(typingctx, turn):
    """Return the address of ``turn[0]``, int64, for `own_turns`."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(view.data, ir.IntType(64))

    return types.int64(turn), generate


@intrinsic
def _next_at(typingctx, address):
    """Return the number at an address and add one to it, as one atomic step."""

    def generate(context, builder, signature, arguments):
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(types.int64), generate


@exact_inner
def own_turns(address, n):
    """Yield the numbers below `n` that the calling thread gets of a counter that all threads share.

    It is given by its address, see `counter`, as Numba's generators never let go of an array.
    """
    while True:
        i = _next_at(address)
        if i >= n:
            break
        yield i
