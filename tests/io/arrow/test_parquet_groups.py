"""Parquet files that are put together of row groups made apart."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

from f5py.io.arrow.parquet_groups import ParquetGroups
from f5py.io.arrow.thrift_compact import Elements, Field, decode, encode, integers

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

_SETTINGS = {"compression": "zstd", "write_page_checksum": True}


def _table(n_rows: int = 1000) -> pyarrow.Table:
    rng = np.random.default_rng(1)
    return pyarrow.table(
        {
            "number": rng.integers(-(1 << 40), 1 << 40, n_rows),
            "name": pyarrow.array([str(i % 7) for i in range(n_rows)]).dictionary_encode(),
            "list": [[float(i)] * (i % 3) for i in range(n_rows)],
            "missing": pyarrow.array([None if i % 5 else "x" * i for i in range(n_rows)], pyarrow.large_string()),
            "flag": [i % 2 == 0 for i in range(n_rows)],
        }
    )


def _by_the_library(tables: list[pyarrow.Table], schema: pyarrow.Schema) -> bytes:
    out = io.BytesIO()
    with parquet.ParquetWriter(out, schema, **_SETTINGS) as writer:
        for table in tables:
            writer.write_table(table)
    return out.getvalue()


def _put_together(files: list[bytes], prefix: bytes = b"") -> bytes:
    out = io.BytesIO()
    out.write(prefix)
    groups = ParquetGroups(out, _by_the_library([], _table().schema))
    for file in files:
        groups.add(file)
    groups.close()
    return out.getvalue()[len(prefix) :]


@pytest.mark.parametrize("size", [1, 300, 1000])
def test_bytes_are_those_of_the_library_that_writes_all_groups(size: int) -> None:
    whole = _table(1000 if size > 1 else 40)
    tables = [whole.slice(first, size) for first in range(0, len(whole), size)]
    apart = [_by_the_library([table], whole.schema) for table in tables]
    expected = _by_the_library(tables, whole.schema)
    assert _put_together(apart) == expected
    assert _put_together(apart, b"something before") == expected
    assert parquet.read_table(io.BytesIO(expected)).equals(whole)


def test_files_of_several_groups_and_of_none() -> None:
    whole = _table()
    empty = _by_the_library([], whole.schema)
    assert _put_together([empty]) == empty
    tables = [whole.slice(0, 400), whole.slice(400, 300), whole.slice(700)]
    files = [empty, _by_the_library(tables[:2], whole.schema), _by_the_library(tables[2:], whole.schema)]
    assert _put_together(files) == _by_the_library(tables, whole.schema)


def test_groups_are_not_numbered() -> None:
    """The number of a row group has 16 bits and may be left out; not all versions of the library write it."""
    whole = _table()
    file = _by_the_library([whole], whole.schema)
    end = len(file) - 8 - struct.unpack("<I", file[-8:-4])[0]
    about = decode(file[end:-8])
    about[4].value.values[0][7] = Field(4, 3)
    footer = encode(about)
    numbered = file[:end] + footer + struct.pack("<I", len(footer)) + file[-4:]
    assert parquet.read_table(io.BytesIO(numbered)).equals(whole)
    assert _put_together([numbered]) == _put_together([file])


def test_what_thrift_has_is_written_as_it_was_read() -> None:
    about = {
        1: Field(5, -3),
        2: Field(1, True),
        3: Field(2, False),
        40: Field(6, -(1 << 62)),
        41: Field(6, 1 << 62),
        42: Field(8, b"text"),
        43: Field(9, Elements(5, list(range(-20, 20)))),
        44: Field(12, {7: Field(3, b"\xff"), 300: Field(7, b"12345678")}),
        45: Field(9, Elements(12, [{1: Field(4, 9)}, {}])),
        46: Field(10, Elements(8, [b"", b"x" * 200])),
        47: Field(9, Elements(3, [b"\x01", b"\x02"])),
    }
    assert decode(encode(about)) == about
    encoded_before = about | {45: Field(9, Elements(12, [encode(one) for one in about[45].value.values]))}
    assert encode(encoded_before) == encode(about)


def test_integers_begin_a_structure() -> None:
    values = [0, -1, 1, 63, 64, -(1 << 31), (1 << 31) - 1]
    assert decode(integers(values) + b"\0") == {i + 1: Field(5, value) for i, value in enumerate(values)}
    assert decode(integers(values[:2], 9) + b"\0") == {9: Field(5, 0), 10: Field(5, -1)}


def test_a_map_is_refused() -> None:
    with pytest.raises(ValueError, match="type 11"):
        decode(b"\x1b\x00\x00")
