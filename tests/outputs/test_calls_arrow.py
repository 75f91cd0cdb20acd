"""Calls as Parquet."""

from __future__ import annotations

import io

import numpy as np
import pyarrow.parquet
import pytest

pytestmark = pytest.mark.shared


@pytest.mark.parametrize("region", [None, "NC_000913.3_500001_760000:20,001-60,000"])
def test_real_calls_read_back_as_the_text_table(call_ecoli, region: str | None) -> None:
    # small batches, so that dictionaries differ between the pieces
    options = ["-K", "30", *(["-w", region] if region else [])]
    text = call_ecoli("reads.bam", *options).decode()
    content = call_ecoli("reads.bam", *options, "--output-format", "parquet")
    table = pyarrow.parquet.read_table(io.BytesIO(content))
    header, *lines = text.splitlines()
    assert table.column_names == header.split("\t")
    rows = [line.split("\t") for line in lines]
    assert len(rows) > 1000
    columns = table.to_pydict()
    for number, name in enumerate(table.column_names):
        expected = [row[number] for row in rows]
        if name.startswith("log_lik"):
            values = np.array(columns[name], np.float64)
            assert [f"{value:.2f}" for value in values.tolist()] == expected
        else:
            assert list(map(str, columns[name])) == expected
    assert [str(field.type) for field in table.schema] == [
        "dictionary<values=string, indices=int32, ordered=0>",
        "dictionary<values=string, indices=int32, ordered=0>",
        "int64",
        "int64",
        "dictionary<values=string, indices=int32, ordered=0>",
        "double",
        "float",
        "float",
        "int32",
        "int32",
        "large_string",
    ]
    assert len(content) < len(text) / 2
    assert call_ecoli("reads.bam", *options[2:], "-K", "7", "--output-format", "parquet") == content
