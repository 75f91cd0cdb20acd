"""Row groups that are encoded apart, each as a Parquet file in memory, put together as one file.

The Parquet library encodes one row group after the other. Groups are complete in themselves, though, and all that ties
them to a file is where it says that their columns begin: so they can be made in several threads, and then be copied.
Source: apache/parquet-format, README.md (layout of a file) and src/main/thrift/parquet.thrift.
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO, NamedTuple

from f5py.errors import InputFileError
from f5py.io.arrow.thrift_compact import I64, LIST, STRUCT, Elements, Field, Struct, decode, encode
from f5py.io.files.output import copy_bytes

_MAGIC = b"PAR1"
#: What numbers and structures that are not there lead to.
_DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)
_FOOTER = struct.Struct("<I4s")
#: Fields of the structures FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_N_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _GROUP_RAW_SIZE, _GROUP_ROWS, _GROUP_START, _GROUP_SIZE, _ORDINAL = 1, 2, 3, 5, 6, 7
_CHUNK_START, _META_DATA, _OFFSET_INDEX, _COLUMN_INDEX = 2, 3, 4, 6
_CHUNK_RAW_SIZE, _CHUNK_SIZE, _DATA_PAGES, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER = 6, 7, 9, 10, 11, 14


class EncodedGroup(NamedTuple):
    """A row group."""

    content: bytes
    about: Struct  # what the file says of it, with places as if it were the first one of its file


class ParquetGroups:
    """A Parquet file that is put together of others with the same columns.

    Parameters
    ----------
    out : binary file
        Written from where it is, which becomes the begin of the Parquet file; stays open.
    empty : memoryview or bytes
        A file with these columns and without rows.
    """

    def __init__(self, out: BinaryIO, empty: memoryview | bytes) -> None:
        self._out = out
        self._size = 0
        self._about, _ = _footer(empty)
        self._groups: list[bytes] = []
        self._n_rows = 0
        self._write(_MAGIC)

    def add(self, file: memoryview | bytes | BinaryIO) -> None:
        """Add the row groups of a complete file without indexes of pages; one on the disk is closed.

        Raises `InputFileError` if it cannot be read.
        """
        if not isinstance(file, memoryview | bytes):
            with file:
                self._add_file(file)
            return
        end = self._place_groups(file)
        self._write(file[len(_MAGIC) : end])

    def add_group(self, group: EncodedGroup) -> None:
        """Add a row group."""
        self._place_group(group.about)
        self._write(group.content)

    def _add_file(self, file: BinaryIO) -> None:
        try:
            size = file.seek(-_FOOTER.size, os.SEEK_END) + _FOOTER.size
            about_size = _FOOTER.unpack(file.read(_FOOTER.size))[0] + _FOOTER.size
            file.seek(-about_size, os.SEEK_END)
            end = size - about_size + self._place_groups(file.read(about_size))
        except _DAMAGE as problem:
            raise InputFileError(f"{file.name}: is damaged: {problem}") from None
        copy_bytes(file.name, file, end - file.seek(len(_MAGIC)), self._write)

    def _place_groups(self, file: memoryview | bytes) -> int:
        """Put down the groups of a file that will be written next, of which the end is there; return where that is."""
        about, end = _footer(file)
        for group in about[_ROW_GROUPS].value.values:
            self._place_group(group)
        return end

    def _place_group(self, group: Struct) -> None:
        self._n_rows += group[_GROUP_ROWS].value
        self._groups.append(encode(_placed_group(group, self._size - len(_MAGIC))))

    def close(self) -> None:
        """Complete the file."""
        kind = self._about[_ROW_GROUPS].value.kind
        about = self._about | {
            _N_ROWS: Field(self._about[_N_ROWS].kind, self._n_rows),
            _ROW_GROUPS: Field(self._about[_ROW_GROUPS].kind, Elements(kind, self._groups)),
        }
        end = encode(about)
        self._write(end + _FOOTER.pack(len(end), _MAGIC))

    def _write(self, piece: memoryview | bytes) -> None:
        self._out.write(piece)
        self._size += len(piece)


def one_group(columns: list[Struct], n_rows: int, size: int, raw_size: int) -> Struct:
    """Return what a file says of its first row group, from what it says of the columns, and from sizes in bytes."""
    return {
        _COLUMNS: Field(LIST, Elements(STRUCT, columns)),
        _GROUP_RAW_SIZE: Field(I64, raw_size),
        _GROUP_ROWS: Field(I64, n_rows),
        _GROUP_START: Field(I64, len(_MAGIC)),
        _GROUP_SIZE: Field(I64, size),
    }


def chunks_of(file: memoryview | bytes) -> list[tuple[memoryview | bytes, Struct, int]]:
    """Take the only row group of a file apart; return each column's bytes, what the file says of it, and raw size."""
    about, _ = _footer(file)
    (group,) = about[_ROW_GROUPS].value.values
    chunks = []
    for chunk in group[_COLUMNS].value.values:
        says = chunk[_META_DATA].value
        begin = min(says[place].value for place in (_DATA_PAGES, _DICTIONARY_PAGE) if place in says)
        size = says[_CHUNK_SIZE].value
        placed = placed_chunk(chunk, len(_MAGIC) - begin)
        chunks.append((file[begin : begin + size], placed, says[_CHUNK_RAW_SIZE].value))
    return chunks


def _placed_group(group: Struct, shift: int) -> Struct:
    """Shift the places in what the file says of a row group by `shift` bytes."""
    moved = _moved(group, shift, (_GROUP_START,))
    chunks = [placed_chunk(chunk, shift) for chunk in group[_COLUMNS].value.values]
    moved[_COLUMNS] = Field(group[_COLUMNS].kind, Elements(group[_COLUMNS].value.kind, chunks))
    moved.pop(_ORDINAL, None)  # may be left out, and has no more than 16 bits
    return moved


def placed_chunk(chunk: Struct, shift: int) -> Struct:
    """Shift the places in what the file says of a column in a row group by `shift` bytes."""
    moved = _moved(chunk, shift, (_CHUNK_START, _OFFSET_INDEX, _COLUMN_INDEX))
    pages = (_DATA_PAGES, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER)
    about = chunk[_META_DATA]
    moved[_META_DATA] = Field(about.kind, _moved(about.value, shift, pages))
    return moved


def _footer(file: memoryview | bytes) -> tuple[Struct, int]:
    """Read what a file says of itself, and where that begins."""
    size, _ = _FOOTER.unpack(file[-_FOOTER.size :])
    begin = len(file) - _FOOTER.size - size
    return decode(bytes(file[begin : -_FOOTER.size])), begin


def _moved(about: Struct, shift: int, places: tuple[int, ...]) -> Struct:
    """Shift fields that are places in the file; 0 says that there is none."""
    return {
        number: Field(field.kind, field.value + shift) if number in places and field.value else field
        for number, field in about.items()
    }
