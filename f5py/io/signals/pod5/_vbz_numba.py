"""Kernels that read POD5's VBZ samples, compressed by zstd, as SLOW5's svb-zd.

VBZ has a bit for each sample, set for two bytes instead of one, and then these bytes: zigzag-coded differences. Each
chunk begins anew. svb-zd has two bits for each sample and the same bytes, so only the bits are converted. Lengths are
checked against the bytes present.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.io.signals.slow5._slow5_functions import CodecFunctions
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
from f5py.jit.c_memory import address_of_data, call_with_two, load_int64, load_uint8
from f5py.jit.instructions import count_bits
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import add_to, claimed_indices, work_counter

_FIRST_BUFFER = 1 << 16
#: Two-bit codes of StreamVByte for eight bits.
_CODES = np.array([sum((bits >> lane & 1) << (2 * lane) for lane in range(8)) for bits in range(256)], np.int16)


class OpenPod5(NamedTuple):
    """An open file for compiled code."""

    descriptor: int
    called: CodecFunctions


@exact_inner
def _vbz_size(address, n):
    """Return the bytes of n samples by their bits, which must exist; -1 if excess bits are set."""
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
    """Convert the bits of n samples to svb-zd control bytes at `place`, which end at the same byte."""
    n_control = (n + 3) // 4
    for i in range(n_control // 2):  # writes stay behind reads
        scratch[place + i] = _CODES[load_uint8(address + i)]
    if n_control % 2 != 0:  # the other half holds the first sample byte
        i = n_control // 2
        last = address_of_data(scratch) + 2 * (place + i)
        codes = np.int64(_CODES[load_uint8(address + i)])
        scratch[place + i] = np.int16(codes | np.int64(load_uint8(last + 1)) << 8)


@exact_inner
def _take(file, piece, numbers, got, buffer, work):
    """Read, decompress and convert a chunk; return the code."""
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
    # the sample bytes land at their final offset
    work[AT] = address_of_data(got.values) + 2 * place + n_control - n_bits
    code = decompress_zstd(file, address, size, n_bytes, work)
    if code != GOOD:
        return code
    if _vbz_size(work[AT], n) != n_bytes:
        return DAMAGED
    _spread(work[AT], n, got.values, place)
    got.places[piece], got.is_packed[piece] = 2 * place, True
    return GOOD


class ChunkBuffers(NamedTuple):
    """Signal chunks that have been read."""

    used: NDArray[np.int64]  # shape (1,): elements of `values` in use
    # values, places, is_packed: see `f5py.core.batch.StoredSamples`
    values: NDArray[np.int16]
    places: NDArray[np.int64]
    is_packed: NDArray[np.bool_]
    codes: NDArray[np.int32]  # shape (m,): error codes


@exact_kernel
def read_pieces(queue, some, pieces, descriptors, called, got):
    """Read signal chunks from their files and leave them packed, in order of completion.

    Parameters
    ----------
    some : int64
        Chunk indices.
    pieces : int64, shape (m, 3)
        File offsets of start and end, and samples, at least one.
    called : f5py.io.signals.slow5._slow5_functions.CodecFunctions
    got : ChunkBuffers
        Filled.
    """
    buffer = np.empty(_FIRST_BUFFER, np.uint8)
    work = work_memory()
    for i in claimed_indices(work_counter(queue), some.shape[0]):
        piece = some[i]
        size = pieces[piece, 1] - pieces[piece, 0]
        if size > buffer.shape[0]:
            buffer = np.empty(size + size // 4, np.uint8)
        file = OpenPod5(descriptors[piece], called)
        code = _take(file, piece, pieces[piece], got, buffer, work)
        if code == CANNOT_DECOMPRESS:
            free_memory(file, work)
        got.codes[piece] = code
    free_memory(OpenPod5(np.int64(-1), called), work)
