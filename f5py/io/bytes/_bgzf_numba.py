"""Kernels for BGZF blocks (SAM specification, section 4.1)."""

import numpy as np

from f5py.io.bytes.bgzf_blocks import FOOTER_SIZE, MAX_BLOCK
from f5py.jit.c_memory import (
    address_of_data,
    call_with_four,
    call_with_one,
    call_with_two,
    load_uint16,
    load_uint32,
)
from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter

#: Sizes of a block header before its extra field and of a subfield header.
_FIXED_HEADER, _FIELD = 12, 4
_MAGIC = 0x04088B1F
_BC = 0x4342
#: Size of zlib's z_stream in words, and the words that are set here (zlib.h).
_STREAM_WORDS, _NEXT_IN, _AVAIL_IN, _NEXT_OUT, _AVAIL_OUT, _TOTAL_OUT = 14, 0, 1, 3, 4, 5
_RAW, _FINISH, _END = -15, 4, 1
_LOW = 0xFFFFFFFF
#: Return codes of `block_at`.
NOT_WHOLE, DAMAGED = -1, -2


@exact_kernel
def block_at(data, at, block):
    """Find the block that begins at `at`; return its end, `NOT_WHOLE` or `DAMAGED`.

    Parameters
    ----------
    data : uint8
    block : int64, shape (3,)
        Filled with the offsets of the compressed text, of the footer and of the block's end.
    """
    n = data.shape[0]
    if n - at < _FIXED_HEADER:
        return NOT_WHOLE
    address = address_of_data(data)
    if load_uint32(address + at) != _MAGIC:
        return DAMAGED
    begin = at + _FIXED_HEADER + np.int64(load_uint16(address + at + _FIXED_HEADER - 2))
    if n < begin:
        return NOT_WHOLE
    field = at + _FIXED_HEADER
    while field + _FIELD <= begin:
        length = np.int64(load_uint16(address + field + 2))
        if load_uint16(address + field) == _BC and length == 2:
            if field + _FIELD + 2 > n:
                return NOT_WHOLE
            end = at + np.int64(load_uint16(address + field + _FIELD)) + 1
            if end < begin + FOOTER_SIZE:
                return DAMAGED
            block[0], block[1], block[2] = begin, end - FOOTER_SIZE, end
            return end if end <= n else NOT_WHOLE
        field += _FIELD + length
    return DAMAGED


@exact_kernel
def list_blocks(data, blocks):
    """List the whole blocks at the start of `data`; return their number and whether damage follows.

    Parameters
    ----------
    data : uint8
    blocks : int64, shape (>= n, 3)
        Filled as by `block_at`.
    """
    at = 0
    n = 0
    while True:
        end = block_at(data, at, blocks[n])
        if end < 0:
            return n, end == DAMAGED
        at = end
        n += 1


@exact_kernel
def text_offsets(data, blocks, offsets):
    """Fill the offsets of the blocks' texts; return the number of blocks before the first oversized text.

    Parameters
    ----------
    data : uint8
    blocks : int64, shape (n, 3)
    offsets : int64, shape (n + 1,)
    """
    address = address_of_data(data)
    offsets[0] = 0
    for i in range(blocks.shape[0]):
        length = np.int64(load_uint32(address + blocks[i, 1] + 4))
        if length > MAX_BLOCK:
            return i
        offsets[i + 1] = offsets[i] + length
    return blocks.shape[0]


@exact_kernel
def inflate_blocks(zlib, data, blocks, offsets, text):
    """Inflate blocks and check them against their footers; return the number before the first damaged one.

    Parameters
    ----------
    zlib : f5py.io.bytes.c_functions.ZlibFunctions
    data : uint8
    blocks : int64, shape (n, 3)
    offsets : int64, shape (n + 1,)
        From `text_offsets`.
    text : uint8, shape (offsets[n],)
        Filled.
    """
    stream = np.zeros(_STREAM_WORDS, np.int64)
    handle = address_of_data(stream)
    if call_with_four(zlib.begin, handle, _RAW, zlib.version, 8 * _STREAM_WORDS) & _LOW != 0:
        return 0
    packed, target = address_of_data(data), address_of_data(text)
    done = blocks.shape[0]
    for i in range(blocks.shape[0]):
        begin, footer, size = blocks[i, 0], blocks[i, 1], offsets[i + 1] - offsets[i]
        call_with_one(zlib.reset, handle)
        stream[_NEXT_IN], stream[_AVAIL_IN] = packed + begin, footer - begin
        stream[_NEXT_OUT], stream[_AVAIL_OUT] = target + offsets[i], size
        # zlib needs an output byte to detect the end of an empty text
        if size == 0:
            stream[_NEXT_OUT], stream[_AVAIL_OUT] = handle + 8 * (_STREAM_WORDS - 1), 1
        code = call_with_two(zlib.inflate, handle, _FINISH) & _LOW
        checksum = call_with_four(zlib.crc32, 0, target + offsets[i], size, 0) & _LOW
        if code != _END or stream[_TOTAL_OUT] != size or checksum != np.int64(load_uint32(packed + footer)):
            done = i
            break
    call_with_one(zlib.end, handle)
    stream[:] = 0  # a last use: Numba frees an array after that, whatever knows its address
    return done


@exact_kernel
def inflate_places(queue, wanted, file, places, offsets, text, is_sound):
    """Read and inflate blocks of a file.

    Parameters
    ----------
    file : f5py.io.bytes.bgzf.OpenBgzf
    places : int64, shape (n, 2)
        File offsets of each block's start and end.
    offsets : int64, shape (n + 1,)
        Text offsets of the blocks.
    text : uint8, shape (offsets[n],)
        Filled.
    is_sound : bool, shape (n,)
        Set for whole blocks with texts of the expected sizes.
    """
    packed = np.empty(MAX_BLOCK, np.uint8)
    block = np.empty((1, 3), np.int64)
    for i in claimed_indices(work_counter(queue), wanted.shape[0]):
        number = wanted[i]
        begin, size = places[number, 0], places[number, 1] - places[number, 0]
        is_sound[number] = (
            size <= MAX_BLOCK
            and call_with_four(file.pread, file.descriptor, address_of_data(packed), size, begin) == size
            and block_at(packed[:size], 0, block[0]) == size
            and inflate_blocks(file.zlib, packed, block, offsets[number : number + 2], text) == 1
        )
