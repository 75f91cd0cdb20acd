"""Access to C memory and C functions from compiled code."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from f5py.jit.kernel import exact_inner

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
load_uint16 = _load(ir.IntType(16), types.uint16)
load_uint32 = _load(ir.IntType(32), types.uint32)
load_int64 = _load(_WORD, types.int64)
load_float64 = _load(ir.DoubleType(), types.float64)


@intrinsic
def address_of_data(typingctx, array):
    """Return the address of an array's first element."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(view.data, _WORD)

    return types.int64(array), generate


@intrinsic
def borrow_array(typingctx, array):
    """Return the array without reference counting, which is slow; its memory must stay alive."""

    def generate(context, builder, signature, arguments):
        make = context.make_array(signature.args[0])
        view, result = make(context, builder, arguments[0]), make(context, builder)
        for field in ("data", "nitems", "itemsize", "shape", "strides"):
            setattr(result, field, getattr(view, field))
        for field in ("meminfo", "parent"):
            setattr(result, field, ir.Constant(getattr(view, field).type, None))
        return result._getvalue()

    return array(array), generate


@intrinsic
def copy_from(typingctx, array, address, n_bytes):
    """Copy bytes at `address` to the start of an array's memory."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        source = builder.inttoptr(arguments[1], _BYTE.as_pointer())
        target = builder.bitcast(view.data, _BYTE.as_pointer())
        cgutils.raw_memcpy(builder, target, source, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


def _call(result: ir.Type, numba_type: types.Type, n_arguments: int):
    kind = ir.FunctionType(result, [_WORD] * n_arguments)

    def generate(context, builder, signature, arguments):
        called = builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value() if numba_type is types.void else called

    return numba_type(*[types.int64] * (n_arguments + 1)), generate


@intrinsic
def call_with_none(typingctx, function):
    """Call a function without arguments; it returns 64 bits."""
    return _call(_WORD, types.int64, 0)


@intrinsic
def call_with_five(typingctx, function, first, second, third, fourth, fifth):
    """Call a function with five 64-bit arguments; it returns 64 bits."""
    return _call(_WORD, types.int64, 5)


@intrinsic
def call_with_four(typingctx, function, first, second, third, fourth):
    """Call a function with four 64-bit arguments; it returns 64 bits."""
    return _call(_WORD, types.int64, 4)


@intrinsic
def call_with_two(typingctx, function, first, second):
    """Call a function with two 64-bit arguments; it returns 64 bits."""
    return _call(_WORD, types.int64, 2)


@intrinsic
def call_for_float(typingctx, function, first, second):
    """Call a function with two pointers; it returns a double."""
    return _call(ir.DoubleType(), types.float64, 2)


@intrinsic
def call_with_one(typingctx, function, first):
    """Call a function with one pointer; it returns nothing."""
    return _call(ir.VoidType(), types.void, 1)


#: Floats of a cache line.
_LINE = 16


@exact_inner
def aligned_floats(n):
    """Allocate `n` float32 aligned to a cache line, which vector accesses then never cross."""
    room = np.empty(n + _LINE, np.float32)
    first = -(address_of_data(room) >> 2) & (_LINE - 1)
    return room[first : first + n]
