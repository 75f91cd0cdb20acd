"""Access to C memory and C functions from compiled code, and the addresses of those functions."""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from f5py.jit.kernel import exact_inner
from f5py.jit.vectors import emits

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)


def _load(kind: ir.Type, numba_type: types.Type):
    @emits(numba_type, types.int64)
    def load(builder, address):
        return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)

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
    """Make the function that calls one at an address with 64-bit arguments, numbers or pointers."""
    kind = ir.FunctionType(result, [_WORD] * n_arguments)

    @emits(numba_type, *[types.int64] * (n_arguments + 1))
    def call(builder, function, *arguments):
        return builder.call(builder.inttoptr(function, kind.as_pointer()), arguments)

    return call


#: Calls with so many arguments that return 64 bits, a double, or nothing.
call_with_none, call_with_two, call_with_four, call_with_five = (_call(_WORD, types.int64, n) for n in (0, 2, 4, 5))
call_for_float = _call(ir.DoubleType(), types.float64, 2)
call_with_one = _call(ir.VoidType(), types.void, 1)

#: Floats of a cache line.
_LINE = 16


@exact_inner
def aligned_floats(n):
    """Allocate `n` float32 aligned to a cache line, which vector accesses then never cross."""
    room = np.empty(n + _LINE, np.float32)
    first = -(address_of_data(room) >> 2) & (_LINE - 1)
    return room[first : first + n]


@cache
def pread_function() -> int:
    return address_of(ctypes.CDLL(None).pread)


@cache
def clock_function() -> int:
    """Return the address of ``clock_gettime``."""
    return address_of(ctypes.CDLL(None).clock_gettime)


@cache
def zlib_library() -> Any:
    """Open the system's zlib, or the one in pysam's wheel."""
    try:
        return ctypes.CDLL("libz.so.1")
    except OSError:
        import pysam.libchtslib

        return ctypes.CDLL(pysam.libchtslib.__file__)


def address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
