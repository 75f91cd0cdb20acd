"""Row groups that are encoded here, read by the Parquet library and compared with those that it writes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.io.arrow.encodings import bytes_per_code, numbered_values
from f5py.io.arrow.row_groups import BY_DIFFERENCES, joined_names
from f5py.io.arrow.table import Fields, ParquetOutput, dictionary_column, list_column, string_column

from ...examples import examples

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

_KINDS = ["int32", "int64", "float32", "float64"]
_ODD = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, 3.25, -7.5]


def _written(fields: Fields, tables: list[list[Any]], **settings: Any) -> bytes:
    out = io.BytesIO()
    with ParquetOutput(out, fields, **settings) as writer:
        for columns in tables:
            writer.write(columns)
    return out.getvalue()


def _open(content: bytes) -> Any:
    return parquet.ParquetFile(io.BytesIO(content), page_checksum_verification=True)


def _of_library(column: Any) -> Any:
    """Return what the library says of the only chunk of a column that it writes."""
    out = io.BytesIO()
    parquet.write_table(pyarrow.table({"x": column}), out, compression="zstd")
    return _open(out.getvalue()).metadata.row_group(0).column(0)


def _bits(column: Any) -> bytes:
    return column.combine_chunks().to_numpy(zero_copy_only=False).tobytes()


def _check_numbers(values: np.ndarray, by_differences: bool = False) -> Any:
    """Write a column as one row group and compare all with the library; return what is said of the chunk."""
    kind = values.dtype.name
    encodings = {"x": BY_DIFFERENCES} if by_differences else {}
    cut = len(values) // 3
    content = _written([("x", kind)], [[values[:cut]], [values[cut:]]], encodings=encodings, rows_per_group=1 << 30)
    file = _open(content)
    assert file.schema_arrow.field("x").type == pyarrow.array(values).type
    assert _bits(file.read(use_threads=True)["x"]) == values.tobytes()
    chunk = file.metadata.row_group(0).column(0)
    expected = _of_library(values).statistics
    assert chunk.statistics.has_min_max == expected.has_min_max
    assert chunk.statistics.null_count == expected.null_count == 0
    assert chunk.statistics.num_values == expected.num_values == len(values)
    if expected.has_min_max:
        known = values[values == values]
        least, greatest = known.min(), known.max()
        assert chunk.statistics.min == least
        assert chunk.statistics.max == greatest
        if np.isfinite([least, greatest]).all():  # the library tells the largest finite number for infinity alone
            assert repr(chunk.statistics.min) == repr(expected.min)  # tells zeros apart
            assert repr(chunk.statistics.max) == repr(expected.max)
    return chunk


def _numbers(kind: str) -> st.SearchStrategy[Any]:
    if kind.startswith("int"):
        bits = int(kind[3:])
        return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) | st.integers(-3, 3)
    return st.sampled_from(_ODD) | st.floats(width=int(kind[5:]))  # type: ignore[arg-type]


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_numbers_are_those_that_were_written(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(_KINDS))
    few = np.array(data.draw(st.lists(_numbers(kind), min_size=1, max_size=40)), kind)
    n = data.draw(st.integers(1, 700))
    repeated = np.random.default_rng(n).integers(0, len(few), n)
    values = few[np.sort(repeated) if data.draw(st.booleans()) else repeated]
    _check_numbers(values, kind.startswith("int") and data.draw(st.booleans()))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 128, 129, 130, 161, 257])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_differences_of_all_sizes(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    ends = np.iinfo(kind)
    for bits in (0, 1, 2, 3, 7, 8, 16, 31, np.dtype(kind).itemsize * 8 - 1):
        steps = rng.integers(0, min(1 << bits, ends.max), n, dtype=np.int64, endpoint=True)
        chunk = _check_numbers(np.cumsum(steps).astype(kind), by_differences=True)
        assert BY_DIFFERENCES in chunk.encodings
    extremes = np.where(rng.random(n) < 0.5, ends.min, ends.max).astype(kind)
    _check_numbers(extremes, by_differences=True)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("n_values", [1, 2, 256, 257, 4000])
def test_few_values_have_a_dictionary(kind: str, n_values: int) -> None:
    different = (np.arange(n_values) * 2.5 - 300).astype(kind)
    rows = np.concatenate([np.arange(n_values), np.random.default_rng(1).integers(0, n_values, 9 * n_values + 3)])
    chunk = _check_numbers(different[rows])
    assert "RLE_DICTIONARY" in chunk.encodings
    assert chunk.has_dictionary_page


@pytest.mark.parametrize("kind", _KINDS)
def test_many_values_are_written_as_they_are(kind: str) -> None:
    values = (np.arange(150_000) * 7 % 150_001).astype(kind)
    chunk = _check_numbers(values)
    assert "RLE_DICTIONARY" not in chunk.encodings
    assert not chunk.has_dictionary_page


def test_indices_of_three_bytes() -> None:
    rows = np.random.default_rng(1).permutation(np.arange(600_000) % 70_000)
    chunk = _check_numbers(rows.astype(np.int64) * (1 << 33) - 5)
    assert "RLE_DICTIONARY" in chunk.encodings


def test_values_that_differ_in_their_bits_alone_stay_apart() -> None:
    values = np.array(_ODD * 20, np.float32)
    numbered = numbered_values(values.copy())
    assert numbered is not None
    codes, different = numbered
    assert different[codes].tobytes() == values.tobytes()
    assert len(different) == len(_ODD)


@pytest.mark.parametrize(
    ("n", "n_bytes"), [(1, 1), (2, 1), (256, 1), (257, 2), (1 << 16, 2), ((1 << 16) + 1, 3), ((1 << 24) + 1, 4)]
)
def test_indices_take_whole_bytes(n: int, n_bytes: int) -> None:
    assert bytes_per_code(n) == n_bytes


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=30), min_size=1, max_size=4))
def test_names_are_those_that_were_written(pieces: list[list[str]]) -> None:
    """Each piece with a dictionary of its own, in another order, and with values that no row has."""
    columns = []
    for i, texts in enumerate(pieces):
        values = sorted({*texts, "nobody"}, reverse=i % 2 == 0)
        columns.append(dictionary_column(np.array([values.index(text) for text in texts], np.int32), values))
    content = _written([("x", "names")], [[column] for column in columns])
    file = _open(content)
    texts = [text for piece in pieces for text in piece]
    column = file.read()["x"].combine_chunks()
    assert column.to_pylist() == texts
    assert column.dictionary.to_pylist() == list(dict.fromkeys(texts))
    statistics = file.metadata.row_group(0).column(0).statistics
    encoded = [text.encode() for text in texts]
    assert (statistics.min.encode(), statistics.max.encode()) == (min(encoded), max(encoded))


def test_many_names() -> None:
    n = 70_000
    texts = [f"name{i}" for i in range(n)]
    codes = np.random.default_rng(1).permutation(n).astype(np.int32)
    shared = pyarrow.array(texts)
    pieces = [pyarrow.DictionaryArray.from_arrays(half, shared) for half in (codes[: n // 2], codes[n // 2 :])]
    content = _written([("x", "names")], [[piece] for piece in pieces], rows_per_group=n)
    assert _open(content).read()["x"].to_pylist() == [texts[code] for code in codes.tolist()]


def test_names_are_in_the_order_of_their_rows() -> None:
    column = joined_names([dictionary_column(np.array([3, 1, 3, 2, 1], np.int32), ["a", "b", "c", "b", "d"])])
    assert column.values.take(pyarrow.array(column.codes)).to_pylist() == ["b", "b", "b", "c", "b"]
    assert column.values.to_pylist() == ["b", "c"]


def _mixed_rows(first: int, stop: int) -> list[Any]:
    rows = np.arange(first, stop)
    return [
        dictionary_column((rows % 3).astype(np.int32), ["chr1", "chr2", "chr3"]),
        (rows * 11 % 1000).astype(np.int32),
        list_column(np.arange(len(rows) + 1) * 2, np.repeat(rows, 2).astype(np.float32)),
        string_column(rows * 0, rows % 4, np.frombuffer(b"ACGT", np.uint8)),
        rows / 8,
    ]


_MIXED = [
    ("contig", "names"),
    ("position", "int32"),
    ("samples", "list:float32"),
    ("sequence", "large_string"),
    ("ratio", "float64"),
]


def test_columns_of_the_library_and_ours_stand_side_by_side() -> None:
    n = 1000
    content = _written(_MIXED, [_mixed_rows(0, n)], rows_per_group=300, n_threads=3)
    file = _open(content)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [300, 300, 300, 100]
    table = file.read()
    assert table["contig"].to_pylist() == [f"chr{i % 3 + 1}" for i in range(n)]
    assert table["samples"].to_pylist() == [[float(i)] * 2 for i in range(n)]
    assert table["sequence"].to_pylist() == ["ACGT"[: i % 4] for i in range(n)]
    for name, kind in _MIXED:
        alone = parquet.read_table(io.BytesIO(content), columns=[name])
        assert alone[name].equals(table[name]), kind
        ranged = [file.metadata.row_group(i).column(file.schema_arrow.names.index(name)) for i in range(4)]
        assert all(chunk.statistics.null_count == 0 for chunk in ranged)
    some = parquet.read_table(io.BytesIO(content), filters=[("ratio", ">=", 100.0), ("ratio", "<", 101.0)])
    assert some["ratio"].to_pylist() == [100 + i / 8 for i in range(8)]


def test_sizes_of_groups_and_chunks_are_those_of_the_file() -> None:
    content = _written(_MIXED, [_mixed_rows(0, 1000)], rows_per_group=300)
    about = _open(content).metadata
    end = 4
    for i in range(about.num_row_groups):
        group = about.row_group(i)
        chunks = [group.column(j) for j in range(group.num_columns)]
        for chunk in chunks:
            first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            assert first == end
            end += chunk.total_compressed_size
        assert group.total_byte_size == sum(chunk.total_uncompressed_size for chunk in chunks)
    assert end == len(content) - 8 - int.from_bytes(content[-8:-4], "little")


@pytest.mark.parametrize("kind", ["int32", "float32", "names"])
def test_columns_that_lack_values(kind: str) -> None:
    """Those of other programs' tables, which the library encodes."""
    present = {"int32": 5, "float32": 2.5, "names": "five"}[kind]
    values = [None if i % 4 == 0 else present for i in range(100)]
    column = pyarrow.array(values, pyarrow.string() if kind == "names" else getattr(pyarrow, kind)())
    column = column.dictionary_encode() if kind == "names" else column
    file = _open(_written([("x", kind), ("row", "int64")], [[column, np.arange(100)]]))
    assert file.read()["x"].to_pylist() == values
    assert file.read()["row"].to_pylist() == list(range(100))
    assert file.metadata.row_group(0).column(0).statistics.null_count == 25


def test_dictionaries_that_lack_a_value_are_left_to_the_library_which_refuses_them() -> None:
    column = pyarrow.DictionaryArray.from_arrays(np.array([0, 1, 2, 1], np.int32), ["a", None, "b"])
    assert column.null_count == 0
    with pytest.raises(pyarrow.ArrowNotImplementedError, match="null encoded in dictionary"):
        _written([("x", "names")], [[column]])


def test_ranges_only_of_the_columns_that_have_them() -> None:
    content = _written(_MIXED, [_mixed_rows(0, 50)], ranges_of=["contig", "position"])
    group = _open(content).metadata.row_group(0)
    told = [group.column(i).path_in_schema for i in range(group.num_columns) if group.column(i).is_stats_set]
    assert told == ["contig", "position"]


@pytest.mark.parametrize("level", [None, 1, 2, 9])
def test_levels_of_compression(level: int | None) -> None:
    content = _written(_MIXED, [_mixed_rows(0, 400)], level=level)
    assert _open(content).read()["ratio"].to_pylist() == [i / 8 for i in range(400)]


def test_a_damaged_page_is_noticed() -> None:
    content = bytearray(_written([("x", "int64")], [[np.arange(1000) % 7]]))
    chunk = _open(bytes(content)).metadata.row_group(0).column(0)
    content[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    with pytest.raises(OSError, match="CRC"):
        _open(bytes(content)).read()


def test_no_rows() -> None:
    file = _open(_written(_MIXED, []))
    assert (file.num_row_groups, file.read().num_rows) == (0, 0)
    assert file.schema_arrow.names == [name for name, _ in _MIXED]
