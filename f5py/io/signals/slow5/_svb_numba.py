"""Jitted loops over numbers in StreamVByte, and over samples that are stored in it by the method ex-zd."""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from f5py.io.signals.slow5._slow5_text_numba import take_room
from f5py.jit.c_memory import load_int64, load_uint8, load_uint16, load_uint32
from f5py.jit.kernel import exact_kernel

#: Values that four 2-bit codes of a control byte say to take so many bytes.
_BYTES_OF_CONTROL = np.array([4 + sum(code >> shift & 3 for shift in (0, 2, 4, 6)) for code in range(256)], np.uint8)
#: Exceptions of ex-zd are stored less this.
_ONE_BYTE = 256
#: Numbers that `running_sums` takes.
SUMMED = 8
_BYTES, _SHORTS = ir.VectorType(ir.IntType(8), SUMMED), ir.VectorType(ir.IntType(16), SUMMED)


@intrinsic
def running_sums(typingctx, address, out, index, before):
    """Store the running sums of eight differences, zigzag coded in a byte each, in an int16 array; return the last.

    Parameters
    ----------
    address : int
        Of the bytes.
    out : int16
        Filled from `index` on.
    before : int
        The sum before them.
    """

    def generate(context, builder, signature, arguments):
        address, array, index, before = arguments
        coded = builder.load(builder.inttoptr(address, _BYTES.as_pointer()))
        coded.align = 1
        sums = builder.zext(coded, _SHORTS)
        ones, zeros = ir.Constant(_SHORTS, [1] * SUMMED), ir.Constant(_SHORTS, [0] * SUMMED)
        sums = builder.xor(builder.lshr(sums, ones), builder.sub(zeros, builder.and_(sums, ones)))
        numbers = ir.VectorType(ir.IntType(32), SUMMED)
        for distance in (1, 2, 4):  # each lane has the sum of twice as many differences then
            order = [lane - distance if lane >= distance else SUMMED for lane in range(SUMMED)]
            sums = builder.add(sums, builder.shuffle_vector(sums, zeros, ir.Constant(numbers, order)))
        first = builder.insert_element(zeros, builder.trunc(before, ir.IntType(16)), ir.Constant(ir.IntType(32), 0))
        sums = builder.add(sums, builder.shuffle_vector(first, zeros, ir.Constant(numbers, [0] * SUMMED)))
        view = context.make_array(signature.args[1])(context, builder, array)
        store = builder.store(sums, builder.bitcast(builder.gep(view.data, [index]), _SHORTS.as_pointer()))
        store.align = 2
        return builder.sext(builder.extract_element(sums, ir.Constant(ir.IntType(32), SUMMED - 1)), ir.IntType(64))

    return types.int64(types.int64, out, types.intp, types.int64), generate


@exact_kernel
def svb_size(address, left, n):
    """Count the bytes that n numbers take as their control bytes say; -1 if these are not there."""
    n_control = (n + 3) // 4
    if n_control > left:
        return np.int64(-1)
    total = n_control
    for i in range(n // 4):
        total += _BYTES_OF_CONTROL[load_uint8(address + i)]
    if n % 4 != 0:
        last = np.int64(load_uint8(address + n_control - 1))
        for j in range(n % 4):
            total += 1 + (last >> (2 * j) & 3)
    return total


@exact_kernel
def _svb_numbers(address, out):
    """Expand numbers whose bytes have been counted."""
    at = address + (out.shape[0] + 3) // 4
    for i in range(out.shape[0]):
        size = 1 + (load_uint8(address + i // 4) >> (2 * (i % 4)) & 3)
        value = np.int64(0)
        for j in range(size):
            value |= np.int64(load_uint8(at + j)) << (8 * j)
        out[i] = value
        at += size


@exact_kernel
def take_ex_zd(address, length, read, got):
    """Expand samples of the method ex-zd; return whether they are sound.

    A byte 0 (version), the number of samples (8 bytes), by how many bits they were shifted (1), the first difference
    (2), and the number of exceptions (4): differences that are no single byte. One exception: its place and itself less
    256 (4 each). More: for the distances of their places less 1, and for themselves less 256, the size (4) and so many
    bytes of StreamVByte. Then a byte for each other difference. A difference is zigzag coded.
    """
    header = 16
    if length < header or load_uint8(address) != 0:
        return False
    n = load_int64(address + 1)
    shift = np.int64(load_uint8(address + 9))
    n_exceptions = np.int64(load_uint32(address + 12))
    if n < 1 or n_exceptions >= n or n - 1 - n_exceptions > length or shift > 15:
        return False
    at, end = address + header, address + length
    if n_exceptions > length:
        return False
    where = np.empty(n_exceptions, np.int64)
    what = np.empty(n_exceptions, np.int64)
    if n_exceptions == 1:
        if end - at < 8:
            return False
        where[0], what[0] = load_uint32(at), load_uint32(at + 4)
        at += 8
    elif n_exceptions > 1:
        for part in range(2):
            if end - at < 4:
                return False
            size = np.int64(load_uint32(at))
            at += 4
            if size > end - at or svb_size(at, size, n_exceptions) != size:
                return False
            _svb_numbers(at, where if part == 0 else what)
            at += size
        for i in range(1, n_exceptions):
            where[i] += where[i - 1] + 1
    if end - at != n - 1 - n_exceptions or (n_exceptions > 0 and where[-1] >= n - 1):
        return False
    if not take_room(got, read, n, n):
        return True
    place = got.places[read]
    next_exception = 0
    level = np.int64(0)
    for i in range(n):
        if i == 0:
            coded = np.int64(load_uint16(address + 10))
        elif next_exception < n_exceptions and where[next_exception] == i - 1:
            coded = what[next_exception] + _ONE_BYTE
            next_exception += 1
        else:
            coded = np.int64(load_uint8(at))
            at += 1
        level += (coded >> 1) ^ -(coded & 1)
        got.scratch[place + i] = np.int16(level << shift)
    return True
