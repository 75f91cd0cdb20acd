"""Columns of a row group as chunks of a Parquet file: pages, compressed by zstd, and what the file says of them.

Source: apache/parquet-format, README.md and src/main/thrift/parquet.thrift.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from f5py.io.arrow.arrow import import_arrow
from f5py.io.arrow.encodings import (
    DELTA_BINARY_PACKED,
    PLAIN,
    RLE,
    RLE_DICTIONARY,
    Numbered,
    levels_of,
    numbered_values,
    packed_codes,
    packed_differences,
    plain_strings,
)
from f5py.io.arrow.thrift_compact import BINARY, I32, I64, LIST, STRUCT, TRUE, Elements, Field, Struct, integers

#: Types of values, as Parquet numbers them.
PHYSICAL_TYPES = {"int32": 1, "int64": 2, "float32": 4, "float64": 5, "names": 6}
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
#: How the header for each type of page begins in that of all: field 5 or 7, after field 4. Both end together.
_HEADER_OF = {_DATA_PAGE: bytes([1 << 4 | STRUCT]), _DICTIONARY_PAGE: bytes([3 << 4 | STRUCT])}
_TWO_ENDS = bytes(2)
_ZSTD = 6
_SIGN = 1 << 31
#: Where the first chunk of a file begins.
FIRST_PLACE = 4


class Chunk(NamedTuple):
    """The values of a column in a row group."""

    pieces: list[bytes]
    about: Struct  # what the file says of it, with places as if it were the first one of its file
    size: int
    raw_size: int  # not compressed


class ChunkEncoder:
    """Encodes the columns of row groups; for one thread.

    Parameters
    ----------
    level : int, optional
        Of zstd.
    """

    def __init__(self, level: int | None = None) -> None:
        arrow, _ = import_arrow()
        self._codec = arrow.Codec("zstd", compression_level=level)

    def numbers(self, name: str, column: NDArray, by_differences: bool, has_range: bool) -> Chunk:
        """Encode numbers of 4 or 8 bytes: by their differences, or with a dictionary if that is smaller.

        Parameters
        ----------
        column : shape (n,)
            At least one value; one piece, writable.
        has_range : bool
            Whether the file tells the smallest and the largest value.
        """
        about = _Column(name, PHYSICAL_TYPES[column.dtype.name], len(column), None)
        if by_differences:
            about = about._replace(range=_range_of(column) if has_range else None)
            return self._chunk(about, None, DELTA_BINARY_PACKED, packed_differences(column).tobytes())
        numbered = numbered_values(column)
        if has_range:
            about = about._replace(range=_range_of(column if numbered is None else numbered.values))
        if numbered is None:
            return self._chunk(about, None, PLAIN, column.tobytes())
        dictionary = _Dictionary(len(numbered.values), numbered.values.tobytes())
        return self._chunk(about, dictionary, RLE_DICTIONARY, packed_codes(numbered.codes, dictionary.n))

    def names(self, name: str, column: Numbered, has_range: bool) -> Chunk:
        """Encode strings, of which there is at least one, by their numbers; see `numbers`."""
        values = column.values
        ends = None
        if has_range:
            texts = [text.encode() for text in values.to_pylist()]
            ends = _Range(min(texts), max(texts), False)
        about = _Column(name, PHYSICAL_TYPES["names"], len(column.codes), ends)
        dictionary = _Dictionary(len(values), plain_strings(values).tobytes())
        return self._chunk(about, dictionary, RLE_DICTIONARY, packed_codes(column.codes, len(values)))

    def _chunk(self, about: _Column, dictionary: _Dictionary | None, encoding: int, content: bytes) -> Chunk:
        pages = []
        if dictionary is not None:
            pages.append(self._page(_DICTIONARY_PAGE, [dictionary.n, PLAIN], dictionary.content))
        levels = levels_of(about.n)
        pages.append(self._page(_DATA_PAGE, [about.n, encoding, RLE, RLE], levels + content))
        pieces = [piece for page in pages for piece in page.pieces]
        size = sum(map(len, pieces))
        raw_size = sum(page.raw_size for page in pages)
        return Chunk(pieces, _about_chunk(about, encoding, [page.size for page in pages], raw_size), size, raw_size)

    def _page(self, kind: int, header: list[int], content: bytes) -> _Page:
        """Compress a page; its header has numbers, for what is missing and for lists, too."""
        packed = self._codec.compress(content, asbytes=True)
        checksum = (isal_zlib.crc32(packed) ^ _SIGN) - _SIGN
        head = b"".join(
            (
                integers([kind, len(content), len(packed), checksum]),
                _HEADER_OF[kind],
                integers(header),
                _TWO_ENDS,
            )
        )
        return _Page([head, packed], len(head) + len(packed), len(head) + len(content))


class _Page(NamedTuple):
    pieces: list[bytes]
    size: int
    raw_size: int


class _Dictionary(NamedTuple):
    n: int
    content: bytes


class _Range(NamedTuple):
    """The smallest and the largest value; none if nothing is a number."""

    least: bytes | None
    greatest: bytes | None
    is_old: bool  # of a kind of which older readers know the order, too


class _Column(NamedTuple):
    name: str
    kind: int
    n: int
    range: _Range | None


def _range_of(values: NDArray) -> _Range:
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
        if len(values) == 0:
            return _Range(None, None, True)
        # zeros of both signs are equal: the file has to tell the one that leaves none out
        least, greatest = values.min() + values.dtype.type(0), values.max() + values.dtype.type(0)
        return _Range((least if least else -abs(least)).tobytes(), greatest.tobytes(), True)
    return _Range(values.min().tobytes(), values.max().tobytes(), True)


def _about_chunk(column: _Column, encoding: int, page_sizes: list[int], raw_size: int) -> Struct:
    """Return the structure ColumnChunk; the last page has the values, one before it the dictionary."""
    has_dictionary = len(page_sizes) > 1
    encodings = [PLAIN, RLE, RLE_DICTIONARY] if has_dictionary else [RLE, encoding]
    pages = [(_DICTIONARY_PAGE, PLAIN)] if has_dictionary else []
    about: Struct = {
        1: Field(I32, column.kind),
        2: Field(LIST, Elements(I32, encodings)),
        3: Field(LIST, Elements(BINARY, [column.name.encode()])),
        4: Field(I32, _ZSTD),
        5: Field(I64, column.n),
        6: Field(I64, raw_size),
        7: Field(I64, sum(page_sizes)),
        9: Field(I64, FIRST_PLACE + sum(page_sizes[:-1])),
        13: Field(LIST, Elements(STRUCT, [_pages_of(*page) for page in [*pages, (_DATA_PAGE, encoding)]])),
    }
    if has_dictionary:
        about[11] = Field(I64, FIRST_PLACE)
    if column.range is not None:
        about[12] = Field(STRUCT, _statistics(column.range))
    return {2: Field(I64, 0), 3: Field(STRUCT, about)}


def _pages_of(kind: int, encoding: int) -> Struct:
    """Return the structure PageEncodingStats of the one page of a kind."""
    return {1: Field(I32, kind), 2: Field(I32, encoding), 3: Field(I32, 1)}


def _statistics(ends: _Range) -> Struct:
    """Return the structure Statistics."""
    none_missing = Field(I64, 0)
    if ends.least is None:
        return {3: none_missing}
    greatest, least = Field(BINARY, ends.greatest), Field(BINARY, ends.least)
    old = {1: greatest, 2: least} if ends.is_old else {}
    return old | {3: none_missing, 5: greatest, 6: least, 7: Field(TRUE, True), 8: Field(TRUE, True)}
