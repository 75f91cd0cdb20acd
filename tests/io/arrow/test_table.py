"""Tables of columns as Parquet."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from f5py.io.arrow.table import ParquetOutput, dictionary_column, list_column, string_column

pytest.importorskip("pyarrow.parquet")

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


def _written(cuts: list[int], rows_per_group: int, seed: int = 0, n_threads: int = 1, n_rows: int = _N_ROWS) -> bytes:
    out = io.BytesIO()
    rng = np.random.default_rng(seed)
    with ParquetOutput(out, _FIELDS, rows_per_group=rows_per_group, n_threads=n_threads) as writer:
        for first, stop in zip([0, *cuts], [*cuts, n_rows], strict=True):
            writer.write(_rows(first, stop, rng))
    return out.getvalue()


@pytest.mark.parametrize(
    ("rows_per_group", "n_rows"), [(1, 150), (97, _N_ROWS), (250, _N_ROWS), (1000, _N_ROWS), (1 << 18, _N_ROWS)]
)
def test_bytes_do_not_depend_on_how_rows_come_in_tables(rows_per_group: int, n_rows: int) -> None:
    from pyarrow import parquet

    whole = _written([], rows_per_group, n_rows=n_rows)
    rng = np.random.default_rng(1)
    for n_tables in (1, 3, 50) if rows_per_group > 1 else (50,):
        cuts = sorted(rng.integers(0, n_rows + 1, n_tables - 1).tolist())
        assert _written(cuts, rows_per_group, n_tables, n_rows=n_rows) == whole
        assert _written(cuts, rows_per_group, n_tables, n_threads=5, n_rows=n_rows) == whole
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
