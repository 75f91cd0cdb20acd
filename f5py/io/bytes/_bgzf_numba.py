"""Kernels for many BGZF blocks at a time (SAM specification, section 4.1).

Calls of a library for each block would take the interpreter's lock each time, for which threads wait on many cores.
"""

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.io.bytes.bgzf_blocks import FOOTER_SIZE
from f5py.jit.c_memory import (
    address_of_data,
    call_with_four,
    call_with_one,
    call_with_two,
    load_uint32,
    zlib_functions,
)
from f5py.jit.kernel import exact_kernel

#: Size of zlib's z_stream in words, and the words that are set here (zlib.h).
_STREAM_WORDS, _NEXT_IN, _AVAIL_IN, _NEXT_OUT, _AVAIL_OUT, _TOTAL_OUT = 14, 0, 1, 3, 4, 5
_RAW, _FINISH, _END = -15, 4, 1
_LOW = 0xFFFFFFFF


@exact_kernel
def read_stretches(pread, descriptor, starts, offsets, out):
    """Read stretches of a file, one after the other; return whether all are whole.

    Parameters
    ----------
    pread, descriptor : int
        Address of the function, and the file.
    starts, offsets : int64, shape (n,), shape (n + 1,)
        Of the stretches in the file and in `out`.
    out : uint8, shape (offsets[n],)
        Filled.
    """
    address = address_of_data(out)
    for i in range(starts.shape[0]):
        size = offsets[i + 1] - offsets[i]
        if call_with_four(pread, descriptor, address + offsets[i], size, starts[i]) != size:
            return False
    return True


def inflate_blocks(data: bytes, blocks: list[tuple[int, int, int]]) -> tuple[NDArray[np.uint8], int]:
    """Inflate blocks located by `block_at`; return text and number of those before a damaged one."""
    begins, ends, sizes = np.array(blocks, np.int64).reshape(-1, 3).T
    offsets = offsets_of(sizes)
    text = np.empty(offsets[-1], np.uint8)
    packed = np.frombuffer(data, np.uint8)
    n = _inflate(zlib_functions(), packed, begins.copy(), ends - FOOTER_SIZE, offsets, text)
    return text[: offsets[n]], n


@exact_kernel
def _inflate(zlib, data, begins, footers, offsets, text):
    """Inflate blocks and check them against their footers; return the number before the first damaged one.

    Parameters
    ----------
    zlib : f5py.jit.c_memory.ZlibFunctions
    data : uint8
    begins, footers : int64, shape (n,)
        Of the blocks' compressed texts and of their footers in `data`.
    offsets : int64, shape (n + 1,)
        Of the texts, by the footers.
    text : uint8, shape (offsets[n],)
        Filled.
    """
    stream = np.zeros(_STREAM_WORDS, np.int64)
    handle = address_of_data(stream)
    if call_with_four(zlib.begin, handle, _RAW, zlib.version, 8 * _STREAM_WORDS) & _LOW != 0:
        return 0
    packed, target = address_of_data(data), address_of_data(text)
    done = begins.shape[0]
    for i in range(begins.shape[0]):
        size = offsets[i + 1] - offsets[i]
        call_with_one(zlib.reset, handle)
        stream[_NEXT_IN], stream[_AVAIL_IN] = packed + begins[i], footers[i] - begins[i]
        stream[_NEXT_OUT], stream[_AVAIL_OUT] = target + offsets[i], size
        # zlib needs an output byte to detect the end of an empty text
        if size == 0:
            stream[_NEXT_OUT], stream[_AVAIL_OUT] = handle + 8 * (_STREAM_WORDS - 1), 1
        code = call_with_two(zlib.inflate, handle, _FINISH) & _LOW
        checksum = call_with_four(zlib.crc32, 0, target + offsets[i], size, 0) & _LOW
        if code != _END or stream[_TOTAL_OUT] != size or checksum != np.int64(load_uint32(packed + footers[i])):
            done = i
            break
    call_with_one(zlib.end, handle)
    stream[:] = 0  # a last use: Numba frees an array after that, whatever knows its address
    return done
