"""Calls as Parquet."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from f5py.io.calls_parquet import CallsParquet
from f5py.io.calls_writer import CallsWriter

pytestmark = pytest.mark.shared


@pytest.mark.parametrize("region", [None, "NC_000913.3_500001_760000:20,001-60,000"])
def test_real_calls_read_back_as_the_text_table(
    call_ecoli, ecoli: Path, monkeypatch: pytest.MonkeyPatch, region: str | None
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = io.BytesIO()
    writers: list[CallsParquet] = []
    plain_write = CallsWriter.write

    def write(self: CallsWriter, batch: Any) -> None:
        if not writers:
            contigs = [contig.tobytes().decode() for contig in self._contigs]
            writers.append(CallsParquet(out, contigs, self._k, self._windows))
        writers[0].write(batch)
        plain_write(self, batch)

    monkeypatch.setattr(CallsWriter, "write", write)
    # small batches, so that dictionaries differ between the pieces
    text = call_ecoli("reads.bam", "-K", "30", *(["-w", region] if region else [])).decode()
    writers[0].close()
    table = parquet.read_table(io.BytesIO(out.getvalue()))
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
        "string",
    ]
    assert len(out.getvalue()) < len(text) / 2
