"""Instructions that Numba lacks: bit counts, non-temporal stores, prefetching; and fused sums.

Other modules import Numba's and LLVM's builders of intrinsics from here, after the code cache is set up.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from f5py.jit.vectors import emits, pointer

__all__ = ["cgutils", "intrinsic", "ir", "overload", "types"]


@emits(types.int64, types.uint64)
def count_bits(builder, value):
    """Count the ones in a uint64, as int64."""
    return builder.ctpop(value)


@emits(types.int64, types.uint64)
def lowest_bit(builder, value):
    """Return the index of the lowest one in a uint64, as int64; undefined for zero."""
    return builder.cttz(value, ir.Constant(ir.IntType(1), 1))


#: Bytes per copy, and their alignment.
BLOCK = 64
_BLOCK = ir.VectorType(ir.IntType(8), BLOCK)


@intrinsic
def stream_block(typingctx, to, at, values, begin):
    """Copy `BLOCK` bytes of a uint8 array from `begin` on to another one from `at` on, past the caches."""
    if any(array.dtype != types.uint8 for array in (to, values)):
        return None

    def generate(context, builder, signature, arguments):
        to, at, values, begin = arguments
        block = builder.load(pointer(context, builder, signature.args[2], values, begin, _BLOCK))
        block.align = 1
        store = builder.store(block, pointer(context, builder, signature.args[0], to, at, _BLOCK))
        store.align = BLOCK
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(to, types.intp, values, types.intp), generate


@emits(types.void)
def end_stream(builder):
    """Make preceding streamed stores visible to other threads."""
    builder.fence("seq_cst")


@intrinsic
def load_ahead(typingctx, array, index):
    """Prefetch the cache line of an element."""

    def generate(context, builder, signature, arguments):
        array, index = arguments
        byte, number = ir.IntType(8), ir.IntType(32)
        address = pointer(context, builder, signature.args[0], array, index, ir.VectorType(byte, 1))
        address = builder.bitcast(address, byte.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        load = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(load, [address, *(ir.Constant(number, value) for value in (0, 2, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def has_fused_sums(context: Any) -> bool:
    """Return whether the target processor has fused multiply-add, on which last digits depend.

    `context` is Numba's.
    """
    machine, _, features = context.codegen().magic_tuple()
    return machine.startswith(("aarch64", "arm64")) or "+fma" in features.split(",")


def processor_has_fused_sums() -> bool:
    """Return whether this processor has it according to Numba and its ``NUMBA_CPU_*`` settings."""
    from numba.core.registry import cpu_target

    return has_fused_sums(cpu_target.target_context)
