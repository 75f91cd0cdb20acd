"""Tables of columns as Parquet."""

from __future__ import annotations

import gc
import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.errors import InputFileError
from f5py.io.arrow.parquet_table import ParquetTable
from f5py.io.arrow.table import ParquetOutput, dictionary_column, list_column, string_column

from ...examples import examples

parquet = pytest.importorskip("pyarrow.parquet")

_FIELDS = [("name", "names"), ("number", "int64"), ("text", "large_string"), ("values", "list:float32")]
_N_ROWS = 1000


def _rows(first: int, stop: int, rng: np.random.Generator) -> list[Any]:
    """Columns of some of the made rows; dictionaries are in any order, and have doubles and what does not occur."""
    rows = np.arange(first, stop)
    names = np.array([f"name{i}" for i in range(40)] * 2)[rng.permutation(80)]
    code = {name: i for i, name in enumerate(names.tolist())}
    other = {name: i for i, name in reversed(list(enumerate(names.tolist())))}
    picked = [(code if row % 3 else other)[f"name{row * row // 7 % 37}"] for row in rows.tolist()]
    sizes = rows % 5
    texts = [b"x%d" % row for row in rows.tolist()]
    lengths = np.array([len(text) for text in texts], np.int64)
    return [
        dictionary_column(np.array(picked, np.int32), names.tolist()),
        rows * 3,
        string_column(np.cumsum(lengths) - lengths, lengths, np.frombuffer(b"".join(texts), np.uint8)),
        list_column(np.concatenate(([0], np.cumsum(sizes))), np.repeat(rows, sizes).astype(np.float32)),
    ]


def _written(cuts: list[int], rows_per_group: int, seed: int = 0, n_rows: int = _N_ROWS) -> bytes:
    out = io.BytesIO()
    rng = np.random.default_rng(seed)
    with ParquetOutput(out, _FIELDS, rows_per_group=rows_per_group) as writer:
        for first, stop in zip([0, *cuts], [*cuts, n_rows], strict=True):
            writer.write(_rows(first, stop, rng))
    return out.getvalue()


@pytest.mark.parametrize(
    ("rows_per_group", "n_rows"), [(1, 150), (97, _N_ROWS), (250, _N_ROWS), (1000, _N_ROWS), (1 << 18, _N_ROWS)]
)
def test_bytes_do_not_depend_on_how_rows_come_in_tables(rows_per_group: int, n_rows: int) -> None:
    whole = _written([], rows_per_group, n_rows=n_rows)
    rng = np.random.default_rng(1)
    for n_tables in (1, 3, 50) if rows_per_group > 1 else (50,):
        cuts = sorted(rng.integers(0, n_rows + 1, n_tables - 1).tolist())
        assert _written(cuts, rows_per_group, n_tables, n_rows=n_rows) == whole
    file = parquet.ParquetFile(io.BytesIO(whole))
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert sizes[:-1] == [rows_per_group] * ((n_rows - 1) // rows_per_group)
    table = file.read()
    assert table["name"].to_pylist() == [f"name{row * row // 7 % 37}" for row in range(n_rows)]
    assert table["number"].to_pylist() == [3 * row for row in range(n_rows)]
    assert table["text"].to_pylist() == [f"x{row}" for row in range(n_rows)]
    assert table["values"].to_pylist() == [[float(row)] * (row % 5) for row in range(n_rows)]


def test_texts_may_add_up_to_more_than_two_gigabytes() -> None:
    """Their offsets are 64 bits wide."""
    text = np.frombuffer(b"ACGT", np.uint8)
    column = string_column(np.array([1, 0, 3]), np.array([3, 0, 1], np.int32), text)
    assert column.to_pylist() == ["CGT", "", "T"]
    assert np.frombuffer(column.buffers()[1], np.int64).tolist() == [0, 3, 3, 4]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=30), min_size=1, max_size=4))
def test_names_are_in_the_order_of_their_first_rows(pieces: list[list[str]]) -> None:
    """Each piece with a dictionary of its own, in another order, and with values that no row has."""
    out = io.BytesIO()
    with ParquetOutput(out, [("x", "names")]) as writer:
        for i, texts in enumerate(pieces):
            values = sorted({*texts, "nobody"}, reverse=i % 2 == 0)
            writer.write([dictionary_column(np.array([values.index(text) for text in texts], np.int32), values)])
    texts = [text for piece in pieces for text in piece]
    column = parquet.read_table(out)["x"].combine_chunks()
    assert column.to_pylist() == texts
    assert column.dictionary.to_pylist() == list(dict.fromkeys(texts))


@pytest.mark.parametrize("odd", [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, 3.25])
@pytest.mark.parametrize("encodings", [{}, {"x": "PLAIN"}])
def test_fractions_keep_their_bits(odd: float, encodings: dict[str, str]) -> None:
    values = np.array([odd, 1.0, odd, -odd] * 20, np.float32)
    out = io.BytesIO()
    with ParquetOutput(out, [("x", "float32")], encodings) as writer:
        writer.write([values])
    assert parquet.read_table(out)["x"].to_numpy().tobytes() == values.tobytes()


def test_counters_are_written_by_their_differences_and_ranges_where_they_are_wanted() -> None:
    out = io.BytesIO()
    fields = [("a", "int32"), ("b", "int64")]
    with ParquetOutput(out, fields, {"a": "DELTA_BINARY_PACKED"}, ranges_of=["b"], metadata={"f5py": "x"}) as writer:
        writer.write([np.arange(10, dtype=np.int32), np.arange(10)])
    file = parquet.ParquetFile(out)
    a, b = (file.metadata.row_group(0).column(i) for i in range(2))
    assert "DELTA_BINARY_PACKED" in a.encodings
    assert "RLE_DICTIONARY" in b.encodings
    assert (a.is_stats_set, b.statistics.min, b.statistics.max) == (False, 0, 9)
    assert file.schema_arrow.metadata[b"f5py"] == b"x"


def test_rows_of_other_tables(tmp_path: Path) -> None:
    """As if they had been written here, wherever the groups of those begin."""
    whole = _written([], 97)
    out = io.BytesIO()
    rng = np.random.default_rng(3)
    with ParquetOutput(out, _FIELDS, rows_per_group=97) as output:
        for first, stop in ((0, 150), (150, 150), (150, _N_ROWS)):
            with (tmp_path / "part").open("wb") as file, ParquetOutput(file, _FIELDS, rows_per_group=60) as part:
                part.write(_rows(first, stop, rng))
            with ParquetTable(str(tmp_path / "part")) as table:
                output.append(table)
    assert out.getvalue() == whole


def test_rows_of_another_kind(tmp_path: Path) -> None:
    with (tmp_path / "part").open("wb") as file, ParquetOutput(file, [("x", "int32")]) as part:
        part.write([np.arange(3, dtype=np.int32)])
    with (
        ParquetOutput(io.BytesIO(), [("x", "int64")]) as output,
        (tmp_path / "part").open("rb") as file,
        ParquetTable(file) as table,
        pytest.raises(InputFileError, match="part: has other columns"),
    ):
        output.append(table)


def test_a_damaged_page_is_noticed(tmp_path: Path) -> None:
    content = bytearray(_written([], 1 << 18))
    chunk = parquet.ParquetFile(io.BytesIO(bytes(content))).metadata.row_group(0).column(1)
    content[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    (tmp_path / "x.parquet").write_bytes(content)
    with ParquetTable(str(tmp_path / "x.parquet")) as table, pytest.raises(InputFileError, match="CRC"):
        list(table.batches(100, with_lists=True))


def test_no_rows() -> None:
    file = parquet.ParquetFile(io.BytesIO(_written([], 10, n_rows=0)))
    assert (file.num_row_groups, file.read().num_rows) == (0, 0)
    assert file.schema_arrow.names == [name for name, _ in _FIELDS]


def test_after_an_error_nothing_completes_the_file() -> None:
    out = io.BytesIO()
    with suppress(ZeroDivisionError), ParquetOutput(out, _FIELDS, rows_per_group=50) as output:
        output.write(_rows(0, 120, np.random.default_rng(1)))
        raise ZeroDivisionError
    n_bytes = len(out.getvalue())
    del output
    gc.collect()
    assert len(out.getvalue()) == n_bytes
    assert not out.getvalue().endswith(b"PAR1")
