"""Kernels that check and decode StreamVByte numbers and ex-zd samples."""

import numpy as np

from f5py.core._stored_samples_numba import BYTES_OF_CONTROL
from f5py.jit.c_memory import load_int64, load_uint8, load_uint16, load_uint32
from f5py.jit.instructions import count_bits
from f5py.jit.kernel import exact_inner
from f5py.jit.work_queue import add_to

#: Masks of the codes' bits in eight control bytes.
_LOWER_BITS, _HIGHER_BITS = np.uint64(0x5555555555555555), np.uint64(0xAAAAAAAAAAAAAAAA)
#: Offset of ex-zd exceptions.
_ONE_BYTE = 256


@exact_inner
def svb_size(address, left, n):
    """Return the bytes of n numbers by their control bytes; -1 if these are incomplete."""
    n_control = (n + 3) // 4
    if n_control > left:
        return np.int64(-1)
    total = n_control
    n_words = n // 32
    for i in range(n_words):
        codes = np.uint64(load_int64(address + 8 * i))
        total += 32 + count_bits(codes & _LOWER_BITS) + 2 * count_bits(codes & _HIGHER_BITS)
    for i in range(8 * n_words, n // 4):
        total += BYTES_OF_CONTROL[load_uint8(address + i)]
    if n % 4 != 0:
        last = np.int64(load_uint8(address + n_control - 1))
        for j in range(n % 4):
            total += 1 + (last >> (2 * j) & 3)
    return total


@exact_inner
def _svb_numbers(address, out):
    """Expand numbers of verified size."""
    at = address + (out.shape[0] + 3) // 4
    for i in range(out.shape[0]):
        size = 1 + (load_uint8(address + i // 4) >> (2 * (i % 4)) & 3)
        value = np.int64(0)
        for j in range(size):
            value |= np.int64(load_uint8(at + j)) << (8 * j)
        out[i] = value
        at += size


@exact_inner
def take_room(got, read, n, size):
    """Reserve `size` elements for n samples of a read; return whether they fit."""
    got.n_samples[read] = n
    got.is_packed[read] = False
    place = add_to(got.used, size)
    got.places[read] = place if place + size <= got.scratch.shape[0] else -1
    return got.places[read] >= 0


@exact_inner
def take_ex_zd(address, length, read, got):
    """Expand ex-zd samples; return whether they are sound.

    Layout: a byte 0 (version), number of samples (8 bytes), bit shift (1), first difference (2), number of exceptions
    (4), the differences beyond a byte. A single exception is its index and its value less 256 (4 bytes each). Several
    have the index gaps less 1, then the values less 256, each as a size (4) and that many bytes of StreamVByte. A byte
    for each other difference follows. Differences are zigzag coded.
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
