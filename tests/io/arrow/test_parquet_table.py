"""Parquet tables that other programs have made."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from f5py.errors import InputFileError
from f5py.io.arrow.parquet_table import ParquetTable, ParquetText

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def text_of(path: Path) -> bytes:
    with ParquetText(str(path)) as text:
        return text.read()


def test_text_is_what_is_in_the_columns(tmp_path: Path):
    path = tmp_path / "t.parquet"
    table = pa.table(
        {
            "contig": pa.array(["a", 'b"c', "a", ""]).dictionary_encode(),
            "start": pa.array([1, -2, 1 << 40, 0], pa.int64()),
            "log_lik_ratio": pa.array([1.006, -0.5, math.nan, None]),
            "level": pa.array([0.1, 80.25, 1e-30, 3], pa.float32()),
            "name": pa.array(["'x'", '"', "é", "\\"], pa.large_string()),
        }
    )
    pq.write_table(table, path)
    lines = text_of(path).decode().splitlines()
    assert lines[0] == "contig\tstart\tlog_lik_ratio\tlevel\tname"
    assert [line.split("\t") for line in lines[1:]] == [
        ["a", "1", "1.01", "0.1", "'x'"],
        ['b"c', "-2", "-0.5", "80.25", '"'],
        ["a", "1099511627776", "nan", "1e-30", "é"],
        ["", "0", "nan", "3", "\\"],
    ]
    pq.write_table(table.slice(0, 0), path)
    assert text_of(path).decode().splitlines() == lines[:1]


@pytest.mark.parametrize("value", ["a\tb", "a\nb", "a\n\tb"])
def test_a_value_cannot_make_columns_or_rows(tmp_path: Path, value: str):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ["x", value], "b": [1, 2]}), path)
    with pytest.raises(InputFileError, match=r"t\.parquet: a value has a tab or an end of a line"):
        text_of(path)
    pq.write_table(pa.table({value: ["x"], "b": [1]}), path)
    with pytest.raises(InputFileError, match="a column's name has a tab or an end of a line"):
        text_of(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [[1, 2]]}, "column a is of the type list<.*>, not numbers or text"),
        ({"a": [{"x": 1}]}, "column a is of the type struct<.*>, not numbers or text"),
        ({"a": [None]}, "column a is of the type null, not numbers or text"),
        ({"a": [True]}, "column a is of the type bool"),
        ({"a": ["x", None]}, "a row has no value of a"),
        ({"a": [1, None]}, "a row has no value of a"),
        ({"a": pa.array(["x", None, "y"]).dictionary_encode()}, "a row has no value of a"),
    ],
)
def test_columns_that_no_table_of_ours_has(tmp_path: Path, columns, message: str):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    with ParquetTable(str(path)) as table, pytest.raises(InputFileError, match=message):
        list(table.batches(10))


def test_columns_of_one_name(tmp_path: Path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), path)
    with pytest.raises(InputFileError, match="has two columns a"):
        ParquetTable(str(path))
    pq.write_table(pa.table({}), path)
    with pytest.raises(InputFileError, match="has no columns"):
        ParquetTable(str(path))


def test_values_become_what_is_asked_for(tmp_path: Path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "n": pa.array([3.0, 4.0])}), path)
    with ParquetTable(str(path)) as table:
        (batch,) = table.batches(10, {"n": pa.int64(), "a": pa.string()})
        assert batch.to_pydict() == {"n": [3, 4], "a": ["x", "y"]}
        with pytest.raises(InputFileError, match="damaged or no Parquet table of f5py"):
            list(table.batches(10, {"a": pa.int64()}))
    pq.write_table(pa.table({"n": [3.5]}), path)
    with ParquetTable(str(path)) as table, pytest.raises(InputFileError, match="truncated"):
        list(table.batches(10, {"n": pa.int64()}))
