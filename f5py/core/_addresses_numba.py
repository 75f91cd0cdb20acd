"""Memory of C libraries and calls of their functions from compiled code, without the interpreter."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)


def _load(kind: ir.Type, numba_type: types.Type):
    @intrinsic
    def load(typingctx, address):
        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], kind.as_pointer())
            return builder.load(pointer, align=1)

        return numba_type(types.int64), generate

    return load


load_uint8 = _load(_BYTE, types.uint8)
load_int64 = _load(_WORD, types.int64)
load_float64 = _load(ir.DoubleType(), types.float64)


@intrinsic
def address_of_data(typingctx, array):
    """Address of an array's first element."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(view.data, _WORD)

    return types.int64(array), generate


@intrinsic
def copy_from(typingctx, array, address, n_bytes):
    """Copy bytes at `address` to the beginning of an array's memory."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        source = builder.inttoptr(arguments[1], _BYTE.as_pointer())
        target = builder.bitcast(view.data, _BYTE.as_pointer())
        cgutils.raw_memcpy(builder, target, source, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def call_with_three(typingctx, function, first, second, third):
    """Call the function at that address with three pointers; it returns an int."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.IntType(32), [_WORD] * 3)
        pointer = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(pointer, arguments[1:])

    return types.int32(types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def call_with_one(typingctx, function, first):
    """Call the function at that address with one pointer; it returns nothing."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [_WORD])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate
