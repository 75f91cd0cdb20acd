"""Contents of the pages of Parquet's columns: dictionaries, their indices, differences, numbers as they are.

Indices take whole bytes. zstd finds what repeats in them, and does not where they begin within bytes, as those that the
Parquet library writes do: columns of events are as small with its lowest level, and nothing has to be shifted.
Source: apache/parquet-format, Encodings.md.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.io.arrow.thrift_compact import put_varint

#: Encodings, as Parquet numbers them.
PLAIN, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY = 0, 3, 5, 8
_LENGTH = struct.Struct("<I")
#: Values come in groups of so many, where their bits follow each other.
_GROUP = 8


class Numbered(NamedTuple):
    """A column as numbers of its different values, in the order of their first occurrence."""

    codes: NDArray[np.int32]
    values: Any  # an array of NumPy or, of strings, of Arrow


def numbered_values(column: NDArray) -> Numbered | None:
    """Give the different values of a column numbers, by their bits; None if that would not make it smaller.

    Parameters
    ----------
    column : numbers of 4 or 8 bytes, shape (n,)
        One piece, writable.
    """
    from f5py.io.arrow._encodings_numba import number_values

    n, size = len(column), column.itemsize
    codes = np.empty(n, np.int32)
    bits = np.empty(n // 2, np.uint64)
    n_values = number_values(column.view(np.uint32).reshape(n, -1), codes, bits)
    if n_values < 0 or n_values * size + n * bytes_per_code(n_values) >= n * size:
        return None
    words = bits[:n_values]
    return Numbered(codes, (words.astype(np.uint32) if size == words.itemsize // 2 else words).view(column.dtype))


def bytes_per_code(n_values: int) -> int:
    """Return how many bytes an index into so many values takes up."""
    return max((n_values - 1).bit_length() + 7 >> 3, 1)


def packed_codes(codes: NDArray[np.int32], n_values: int) -> bytes:
    """Encode indices into a dictionary of so many values (``RLE_DICTIONARY``)."""
    size = bytes_per_code(n_values)
    width = bytes([8 * size])
    if n_values == 1:
        return width + _varint(len(codes) << 1) + bytes(size)
    n_groups = -(-len(codes) // _GROUP)
    if size == 3:
        packed = np.ascontiguousarray(codes).view(np.uint8).reshape(-1, 4)[:, :3]
    else:
        packed = codes.astype(f"<u{size}")
    missing = bytes((n_groups * _GROUP - len(codes)) * size)
    return b"".join((width, _varint(n_groups << 1 | 1), packed.tobytes(), missing))


def levels_of(n: int) -> bytes:
    """Encode that none of n values of a column is missing."""
    run = _varint(n << 1) + b"\x01"
    return _LENGTH.pack(len(run)) + run


def plain_strings(strings: Any) -> NDArray[np.uint8]:
    """Encode an Arrow array of strings, each with its length before it (``PLAIN``)."""
    n = len(strings)
    _, offsets, text = strings.buffers()
    ends = np.frombuffer(offsets, np.int32)[strings.offset : strings.offset + n + 1].astype(np.int64)
    out = np.empty(ends[-1] - ends[0] + _LENGTH.size * n, np.uint8)
    lengths = (ends[:-1] - ends[0] + _LENGTH.size * np.arange(n))[:, np.newaxis] + np.arange(_LENGTH.size)
    out[lengths] = np.diff(ends).astype("<u4").view(np.uint8).reshape(n, -1)
    is_text = np.ones(len(out), np.bool_)
    is_text[lengths] = False
    out[is_text] = np.frombuffer(text or b"", np.uint8)[ends[0] : ends[-1]]
    return out


def packed_differences(column: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Encode integers of 4 or 8 bytes by their differences (``DELTA_BINARY_PACKED``); there is at least one."""
    from f5py.io.arrow._encodings_numba import BLOCK, MOST_AT_FIRST, MOST_PER_BLOCK, pack_differences

    out = np.empty(MOST_AT_FIRST + (len(column) // BLOCK + 1) * MOST_PER_BLOCK, np.uint8)
    return out[: pack_differences(column.astype(np.int64), column.itemsize == 4, out)]


def _varint(value: int) -> bytes:
    out = bytearray()
    put_varint(out, value)
    return bytes(out)
