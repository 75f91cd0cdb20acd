"""Kernels for the ``.idx`` of a SLOW5 file and for scanning its records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.io.signals.slow5._slow5_numba import (
    DAMAGED,
    FRAME,
    GOOD,
    expand,
    free_memory,
    read_bytes,
    work_memory,
)
from f5py.jit.c_memory import address_of_data, load_int64, load_uint8, load_uint16
from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import add_to, claimed_indices, work_counter

_PLACE_AND_SIZE = 16
_TAB = 9


@exact_kernel
def count_entries(text):
    """Count the entries of an index; -1 if it is malformed.

    Parameters
    ----------
    text : uint8
        The index without header and end mark; see `f5py.io.signals.slow5._slow5_index`.
    """
    n = 0
    at = 0
    while at < text.shape[0]:
        if at + 2 > text.shape[0]:
            return -1
        at += 2 + text[at] + 256 * text[at + 1] + _PLACE_AND_SIZE
        n += 1
    return n if at == text.shape[0] else -1


@exact_kernel
def list_entries(text, name_begin, name_end, places, sizes):
    """Fill the counted entries.

    Parameters
    ----------
    text : uint8
        See `count_entries`.
    name_begin, name_end : int64, shape (n,)
        Filled with offsets in `text`.
    places, sizes : int64, shape (n,)
        Filled with bytes in the SLOW5 file.
    """
    address = address_of_data(text)
    at = 0
    for i in range(places.shape[0]):
        name_begin[i] = at + 2
        name_end[i] = at + 2 + text[at] + 256 * text[at + 1]
        places[i] = load_int64(address + name_end[i])
        sizes[i] = load_int64(address + name_end[i] + 8)
        at = name_end[i] + _PLACE_AND_SIZE


@exact_kernel
def write_entries(text, name_begin, name_end, places, sizes, out):
    """Encode entries as `list_entries` reads them.

    Parameters
    ----------
    text : uint8
    name_begin, name_end : int64, shape (n,)
        Offsets in `text`.
    places, sizes : int64, shape (n,)
        Bytes in the SLOW5 file.
    out : uint8
        Filled; 18 bytes and the name per record.
    """
    at = 0
    for i in range(places.shape[0]):
        size = name_end[i] - name_begin[i]
        out[at] = size & 255
        out[at + 1] = size >> 8
        for j in range(size):
            out[at + 2 + j] = text[name_begin[i] + j]
        at += 2 + size
        for j in range(8):
            out[at + j] = places[i] >> (8 * j) & 255
            out[at + 8 + j] = sizes[i] >> (8 * j) & 255
        at += _PLACE_AND_SIZE


@exact_kernel
def list_frames(file, at, end, places, sizes):
    """List adjacent records from `at` on.

    Parameters
    ----------
    file : f5py.io.signals.slow5._slow5_index.RecordFile
    at, end : int
        File offsets.
    places, sizes : int64
        Filled, in bytes; with whole frames.

    Returns
    -------
    n : int
        Records, at most the arrays' length.
    at : int
        Offset of the next one.
    code : int
        See `f5py.io.signals.slow5._slow5_numba`.
    """
    frame = np.empty(FRAME, np.uint8)
    n = 0
    while n < places.shape[0] and at < end:
        code = read_bytes(file, at, FRAME, frame)
        if code != GOOD:
            return n, at, code
        size = load_int64(address_of_data(frame))
        if size < 0 or size > end - at - FRAME:
            return n, at, DAMAGED
        places[n] = at
        sizes[n] = FRAME + size
        at += FRAME + size
        n += 1
    return n, at, GOOD


class RecordNames(NamedTuple):
    """Names of records."""

    text: NDArray[np.uint8]
    begin: NDArray[np.int64]  # shape (n_records,); -1 without room
    end: NDArray[np.int64]


@exact_kernel
def read_names(queue, rows, file, places, sizes, used, names, codes):
    """Copy the names of records `rows` to a shared text; names that do not fit begin at -1.

    Parameters
    ----------
    file : f5py.io.signals.slow5._slow5_index.RecordFile
    places, sizes : int64, shape (n_records,)
        Bytes in the file.
    used : int64, shape (1,)
        Bytes of the text needed so far; may exceed its size.
    names : RecordNames
        Filled.
    codes : int32, shape (n_records,)
        Filled; see `f5py.io.signals.slow5._slow5_numba`.
    """
    scratch, name_begin, name_end = names
    buffer = np.empty(1 << 16, np.uint8)
    work = work_memory()
    for i in claimed_indices(work_counter(queue), rows.shape[0]):
        row = rows[i]
        if sizes[row] > buffer.shape[0]:
            buffer = np.empty(sizes[row] + sizes[row] // 4, np.uint8)
        code = read_bytes(file, places[row], sizes[row], buffer)
        size, address = np.int64(0), address_of_data(buffer)
        if code == GOOD and file.is_text != 0:
            while size < sizes[row] and buffer[size] != _TAB:
                size += 1
            if size >= min(sizes[row], 1 << 16):
                code = DAMAGED
        elif code == GOOD:
            code = expand(file, buffer, sizes[row], work)
            if code == GOOD:
                size, address = np.int64(load_uint16(work[0])), work[0] + 2
        codes[row] = code
        if code == GOOD:
            begin = add_to(used, size)
            name_begin[row], name_end[row] = begin, begin + size
            if begin + size > scratch.shape[0]:
                name_begin[row] = -1
            else:
                for j in range(size):
                    scratch[begin + j] = load_uint8(address + j)
    free_memory(file, work)
