"""Jitted loops over samples as POD5 stores them: by the method VBZ, compressed by zstd.

VBZ is a bit for each sample, set if it takes two bytes and not one, and then these bytes: the differences of samples,
zigzag coded. Each piece of a signal begins anew. The method svb-zd of SLOW5 has the same with two bits for each sample,
so that is what is made of it, and what follows is the same for both. No length is believed before it has been compared
with the bytes that are there.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._turns_numba import counter, own_turns
from f5py.io.signals.slow5._slow5_functions import Functions
from f5py.io.signals.slow5._slow5_numba import (
    AT,
    CANNOT_DECOMPRESS,
    DAMAGED,
    GOOD,
    NO_ROOM,
    decompress_zstd,
    free_memory,
    read_bytes,
    work_memory,
)
from f5py.jit.atomics import add_to
from f5py.jit.bits import count_bits
from f5py.jit.c_memory import address_of_data, call_with_two, load_int64, load_uint8
from f5py.jit.kernel import exact_inner, exact_kernel

_FIRST_BUFFER = 1 << 16
#: The codes of two bits, as StreamVByte has them, of eight bits.
_CODES = np.array([sum((bits >> lane & 1) << (2 * lane) for lane in range(8)) for bits in range(256)], np.int16)


class OpenFile(NamedTuple):
    """A file for compiled code."""

    descriptor: int
    called: Functions


@exact_inner
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


@exact_inner
def _spread(address, n, scratch, place):
    """Make the control bytes of svb-zd of the bits of n samples; they begin at `place` and end where the bits do."""
    n_control = (n + 3) // 4
    for i in range(n_control // 2):  # never more of them are written than have been read
        scratch[place + i] = _CODES[load_uint8(address + i)]
    if n_control % 2 != 0:  # the other half is the first byte of the samples
        i = n_control // 2
        last = address_of_data(scratch) + 2 * (place + i)
        codes = np.int64(_CODES[load_uint8(address + i)])
        scratch[place + i] = np.int16(codes | np.int64(load_uint8(last + 1)) << 8)


@exact_inner
def _take(file, piece, numbers, got, buffer, work):
    """Read and decompress one piece, and make svb-zd of it; return the code."""
    begin, size, n = numbers[0], numbers[1] - numbers[0], numbers[2]
    code = read_bytes(file, begin, size, buffer)
    if code != GOOD:
        return code
    address = address_of_data(buffer)
    n_bits, n_control = (n + 7) // 8, (n + 3) // 4
    n_bytes = call_with_two(file.called.zstd_size, address, size)
    if n_bytes < n_bits + n or n_bytes > n_bits + 2 * n:
        return DAMAGED
    half = (n_control - n_bits + n_bytes + 1) // 2
    place = add_to(got.used, half)
    if place + half > got.values.shape[0]:
        return NO_ROOM
    # the bytes of the samples come to lie where they are to be
    work[AT] = address_of_data(got.values) + 2 * place + n_control - n_bits
    code = decompress_zstd(file, address, size, n_bytes, work)
    if code != GOOD:
        return code
    if _vbz_size(work[AT], n) != n_bytes:
        return DAMAGED
    _spread(work[AT], n, got.values, place)
    got.places[piece], got.is_packed[piece] = 2 * place, True
    return GOOD


class Pieces(NamedTuple):
    """Pieces of signals that have been read."""

    used: NDArray[np.int64]  # shape (1,): elements of `values` that have been given away
    # values, places, is_packed: see `f5py.core.batch.StoredSamples`
    values: NDArray[np.int16]
    places: NDArray[np.int64]
    is_packed: NDArray[np.bool_]
    codes: NDArray[np.int32]  # shape (m,): what is wrong with each piece, 0 for nothing


@exact_kernel
def read_pieces(turn, some, pieces, descriptors, called, got):
    """Read pieces of signals from their files, and leave them packed, in the order in which they come.

    Parameters
    ----------
    some : int64
        Which pieces.
    pieces : int64, shape (m, 3)
        Where each begins and ends in its file, and its samples, of which there is one at least.
    descriptors : int64, shape (m,)
        Of the open files.
    called : f5py.io.signals.slow5._slow5_functions.Functions
    got : Pieces
        Filled.
    """
    buffer = np.empty(_FIRST_BUFFER, np.uint8)
    work = work_memory()
    for i in own_turns(counter(turn), some.shape[0]):
        piece = some[i]
        size = pieces[piece, 1] - pieces[piece, 0]
        if size > buffer.shape[0]:
            buffer = np.empty(size + size // 4, np.uint8)
        file = OpenFile(descriptors[piece], called)
        code = _take(file, piece, pieces[piece], got, buffer, work)
        if code == CANNOT_DECOMPRESS:
            free_memory(file, work)
        got.codes[piece] = code
    free_memory(OpenFile(np.int64(-1), called), work)
