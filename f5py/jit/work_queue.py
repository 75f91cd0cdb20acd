"""Work queue of threads in compiled code: an atomic counter of claimed indices."""

from f5py.jit.instructions import intrinsic, ir, types
from f5py.jit.kernel import exact_inner
from f5py.jit.vectors import emits


@intrinsic
def add_to(typingctx, total, count):
    """Atomically add `count` to ``total[0]``, int64, and return the previous value."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", view.data, arguments[1], "monotonic")

    return types.int64(total, types.int64), generate


@intrinsic
def work_counter(typingctx, queue):
    """Return the address of ``queue[0]``, int64, for `claimed_indices`."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(view.data, ir.IntType(64))

    return types.int64(queue), generate


@emits(types.int64, types.int64)
def _next_index(builder, address):
    """Atomically increment the integer at an address and return its previous value."""
    place = builder.inttoptr(address, ir.IntType(64).as_pointer())
    return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")


@exact_inner
def claimed_indices(address, n):
    """Yield indices below `n` claimed from a shared atomic counter.

    The counter is given by its address, from `work_counter`, as Numba's generators never release an array.
    """
    while True:
        i = _next_index(address)
        if i >= n:
            break
        yield i
