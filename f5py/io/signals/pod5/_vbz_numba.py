"""Jitted loops over samples as POD5 stores them: by the method VBZ, compressed by zstd.

VBZ is a bit for each sample, set if it takes two bytes and not one, and then these bytes: the differences of samples,
zigzag coded. Each piece of a signal begins anew. No length is believed before it has been compared with the bytes that
are there.
"""

from typing import NamedTuple

import numpy as np

from f5py.core._turns_numba import counter, own_turns
from f5py.io.signals.slow5._slow5_functions import Functions
from f5py.io.signals.slow5._slow5_numba import (
    CANNOT_DECOMPRESS,
    DAMAGED,
    GOOD,
    free_memory,
    read_bytes,
    unpack_zstd,
    work_memory,
)
from f5py.io.signals.slow5._svb_numba import ALL_BITS, FIRST_BITS, sums_of_bytes, sums_of_words
from f5py.jit.bits import count_bits
from f5py.jit.c_memory import address_of_data, call_with_two, load_int64, load_uint8
from f5py.jit.kernel import exact_kernel

_FIRST_BUFFER = 1 << 16
#: Samples that are expanded at once.
_N = 8


class OpenFile(NamedTuple):
    """A file for compiled code."""

    descriptor: int
    called: Functions


def _spread(bits: int) -> int:
    """Make codes of two bits, as StreamVByte has them, of four bits."""
    return sum((bits >> lane & 1) << (2 * lane) for lane in range(4))


#: By the bits of four samples: the bytes that they take, and what `sums_of_words` is told of them.
_BYTES_OF_BITS = np.array([4 + bits.bit_count() for bits in range(16)], np.int64)
_FIRST_BITS = np.array([FIRST_BITS[_spread(bits)] for bits in range(16)], FIRST_BITS.dtype)
_ALL_BITS = np.array([ALL_BITS[_spread(bits)] for bits in range(16)], ALL_BITS.dtype)


@exact_kernel
def _vbz_size(address, n):
    """Count the bytes that n samples take as their bits say, which must be there; -1 if there are bits of no sample."""
    n_control = (n + 7) // 8
    total = n_control + n
    for i in range(n_control // 8):
        total += count_bits(np.uint64(load_int64(address + 8 * i)))
    for i in range(n_control // 8 * 8, n_control):
        total += count_bits(np.uint64(load_uint8(address + i)))
    if n % 8 != 0 and load_uint8(address + n_control - 1) >> (n % 8) != 0:
        return np.int64(-1)
    return total


@exact_kernel
def _expand_some(control, at, n, level, out, to):
    """Expand n samples, one by one."""
    for i in range(n):
        coded = np.int64(load_uint8(at))
        at += 1
        if load_uint8(control + i // 8) >> (i % 8) & 1:
            coded |= np.int64(load_uint8(at)) << 8
            at += 1
        level += (coded >> 1) ^ -(coded & 1)
        out[to + i] = np.int16(level)


@exact_kernel
def _expand(address, out, to, n):
    """Expand n samples whose bytes have been counted."""
    control, at = address, address + (n + 7) // 8
    level = np.int64(0)
    i = 0
    while i + 2 * _N <= n:  # behind these are the bytes of others
        bits = np.int64(load_uint8(control))
        if bits == 0:  # a byte each, as nearly all have
            level = sums_of_bytes(at, out, to + i, level)
            at += _N
        else:
            first, last = bits & 15, bits >> 4
            behind = at + _BYTES_OF_BITS[first]
            level = sums_of_words(
                (load_int64(at), load_int64(behind)), (_FIRST_BITS[first], _FIRST_BITS[last]),
                (_ALL_BITS[first], _ALL_BITS[last]), out, to + i, level,
            )  # fmt: skip
            at = behind + _BYTES_OF_BITS[last]
        control += 1
        i += _N
    _expand_some(control, at, n - i, level, out, to + i)


@exact_kernel
def _take(file, begin, size, n, out, to, buffer, work):
    """Read, decompress and expand one piece; return the code."""
    code = read_bytes(file, begin, size, buffer)
    if code != GOOD:
        return code
    address = address_of_data(buffer)
    n_control = (n + 7) // 8
    n_bytes = call_with_two(file.called.zstd_size, address, size)
    if n_bytes < n_control + n or n_bytes > n_control + 2 * n:
        return DAMAGED
    code = unpack_zstd(file, address, size, work, None)
    if code != GOOD:
        return code
    expanded = work[0]
    if _vbz_size(expanded, n) != n_bytes:
        return DAMAGED
    _expand(expanded, out, to, n)
    return GOOD


@exact_kernel
def read_pieces(turn, some, pieces, descriptors, places, called, samples, codes):
    """Read pieces of signals from their files, and expand them where they belong.

    Parameters
    ----------
    some : int64
        Which pieces.
    pieces : int64, shape (n, 3)
        Where each begins and ends in its file, and its samples; there must be room for these.
    descriptors : int64, shape (n,)
        Of the open files.
    places : int64, shape (n,)
        Where the samples of each begin in `samples`.
    called : f5py.io.signals.slow5._slow5_functions.Functions
    samples : int16
        Filled.
    codes : int32, shape (n,)
        Filled: what is wrong with each piece, 0 for nothing.
    """
    buffer = np.empty(_FIRST_BUFFER, np.uint8)
    work = work_memory()
    for i in own_turns(counter(turn), some.shape[0]):
        piece = some[i]
        begin, size, n = pieces[piece, 0], pieces[piece, 1] - pieces[piece, 0], pieces[piece, 2]
        if size > buffer.shape[0]:
            buffer = np.empty(size + size // 4, np.uint8)
        file = OpenFile(descriptors[piece], called)
        code = _take(file, begin, size, n, samples, places[piece], buffer, work)
        if code == CANNOT_DECOMPRESS:
            free_memory(file, work)
        codes[piece] = code
    free_memory(OpenFile(np.int64(-1), called), work)
