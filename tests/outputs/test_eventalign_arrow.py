"""The event table as Parquet, read back with pyarrow and compared with the text."""

from __future__ import annotations

import io
import threading
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from f5py.outputs.events import eventalign_arrow
from f5py.outputs.events.eventalign_arrow import EventalignArrow
from f5py.outputs.events.eventalign_table import EventalignTable
from f5py.outputs.events.table_columns import TableLayout

from .eventalign_rows import made_batch, made_model

_CONTIGS = ["unused", "chr1", "chr2"]
_DECIMALS = {
    "event_level_mean": "%.2f",
    "event_stdv": "%.3f",
    "event_length": "%.5f",
    "model_mean": "%.2f",
    "model_stdv": "%.2f",
    "standardized_level": "%.2f",
}
_OPTIONS = [
    {},
    {"print_read_names": True, "signal_index": True, "scale_events": True},
    {"samples": True},
    {"samples": True, "signal_index": True, "collapse_events": True},
]


def _batches():
    batches = [made_batch(), made_batch(seed=1)]
    for batch in batches:
        batch.contig += 1
    return batches


def _written(batches, options) -> pyarrow.parquet.ParquetFile:
    out = io.BytesIO()
    with EventalignArrow(out, _CONTIGS, made_model(), TableLayout(**options)) as writer:
        for batch in batches:
            writer.write(batch)
    out.seek(0)
    return pyarrow.parquet.ParquetFile(out)


def _texts(batches, options) -> list[list[str]]:
    table = EventalignTable(_CONTIGS, made_model(), TableLayout(**options))
    text = table.header() + b"".join(table.format(batch, 0, len(batch)).tobytes() for batch in batches)
    return [line.split("\t") for line in text.decode().splitlines()]


def _printf(template, value) -> str:
    text = template % value
    return "-nan" if text == "nan" else text


def _as_text(name, values) -> list[str]:
    if name in _DECIMALS:
        return [_printf(_DECIMALS[name], value) for value in values]
    if name == "samples":
        return [",".join(_printf("%g", sample) for sample in samples) for samples in values]
    return [str(value) for value in values]


@pytest.mark.parametrize("options", _OPTIONS)
def test_columns_are_those_of_the_text(options):
    batches = _batches()
    table = _written(batches, options).read()
    header, *rows = _texts(batches, options)
    assert table.column_names == header
    for name, expected in zip(header, zip(*rows, strict=True), strict=True):
        assert _as_text(name, table[name].to_pylist()) == list(expected), name


def test_types():
    schema = _written(_batches(), {"samples": True, "signal_index": True}).schema_arrow
    names = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    for name in ("contig", "reference_kmer", "model_kmer", "strand"):
        assert schema.field(name).type == names
    assert schema.field("position").type == pyarrow.int32()
    assert schema.field("read_index").type == pyarrow.int64()
    assert schema.field("event_level_mean").type == pyarrow.float32()
    assert schema.field("end_idx").type == pyarrow.int64()
    assert schema.field("samples").type == pyarrow.list_(pyarrow.float32())


def test_row_groups_do_not_depend_on_the_batches(monkeypatch):
    batches = _batches()
    whole = _written(batches, {"samples": True}).read()
    monkeypatch.setattr(eventalign_arrow, "ROWS_PER_GROUP", 200)
    split = _written(batches, {"samples": True})
    assert split.metadata.num_row_groups > 2
    assert split.read().to_pylist()[:500] == whole.to_pylist()[:500]
    assert split.metadata.num_rows == len(whole)
    columns = [split.metadata.row_group(0).column(i) for i in range(split.metadata.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert "DELTA_BINARY_PACKED" in columns[1].encodings
    assert columns[-1].path_in_schema.startswith("samples")
    assert "RLE_DICTIONARY" in columns[-1].encodings
    ranged = [column.path_in_schema for column in columns if column.is_stats_set and column.statistics.has_min_max]
    assert ranged == ["contig", "position", "read_index"]
    assert columns[1].statistics.min == min(whole["position"].to_pylist()[:200])


@pytest.mark.parametrize("options", [_OPTIONS[1], _OPTIONS[3]])
@pytest.mark.parametrize("rows_per_group", [200, 1 << 20])
def test_bytes_do_not_depend_on_the_batches(monkeypatch, options, rows_per_group):
    monkeypatch.setattr(eventalign_arrow, "ROWS_PER_GROUP", rows_per_group)
    first, second = _batches()

    def part(batch, reads):
        wanted = np.isin(np.arange(len(batch)), reads)
        return replace(batch, rows=batch.rows._replace(n=np.where(wanted, batch.rows.n, 0)))

    def content(batches, n_threads=1):
        out = io.BytesIO()
        with EventalignArrow(out, _CONTIGS, made_model(), TableLayout(**options), n_threads) as writer:
            for batch in batches:
                writer.write(batch)
        return out.getvalue()

    whole = content([first, second])
    one_by_one = [part(batch, [read]) for batch in (first, second) for read in range(len(batch))]
    assert content(one_by_one) == whole
    three = [part(first, [0]), part(first, range(1, len(first))), second]
    assert content(three) == whole
    monkeypatch.setattr(eventalign_arrow, "_ROWS_PER_PIECE", 50)
    assert content([first, second], n_threads=4) == whole
    groups = pyarrow.parquet.ParquetFile(io.BytesIO(whole)).metadata
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert sizes[:-1] == [rows_per_group] * ((groups.num_rows - 1) // rows_per_group)


@pytest.mark.parametrize("layout", [TableLayout(), TableLayout(kmer_view=2)])
def test_bytes_do_not_depend_on_who_has_all_kmers(monkeypatch, layout):
    """Pieces of a file share all k-mers, unless there are too many; tables have those only that occur."""
    batches = _batches()

    def content():
        out = io.BytesIO()
        with EventalignArrow(out, _CONTIGS, made_model(), layout) as writer:
            for batch in batches:
                writer.write(batch)
        return out.getvalue()

    tables = []
    with EventalignArrow(tables.append, _CONTIGS, made_model(), layout) as writer:
        for batch in batches:
            writer.write(batch)
    shared = content()
    monkeypatch.setattr(eventalign_arrow, "_MOST_SHARED", 0)
    assert content() == shared
    kmers = pyarrow.concat_tables(tables)["model_kmer"].combine_chunks()
    assert pyarrow.parquet.read_table(io.BytesIO(shared))["model_kmer"].to_pylist() == kmers.to_pylist()
    assert set(kmers.dictionary.to_pylist()) == set(kmers.to_pylist())


def test_other_kmer_size():
    out = io.BytesIO()
    batch = made_batch(seed=3, k=9)
    batch.contig[:] = 1
    with EventalignArrow(out, _CONTIGS, made_model(9)) as writer:
        writer.write(batch)
    table = pyarrow.parquet.read_table(out)
    text = EventalignTable(_CONTIGS, made_model(9)).format(batch, 0, len(batch)).tobytes().decode()
    rows = [line.split("\t") for line in text.splitlines()]
    assert table["reference_kmer"].to_pylist() == [row[2] for row in rows]
    assert table["model_kmer"].to_pylist() == [row[9] for row in rows]


def test_a_run_without_rows_gives_an_empty_table():
    assert _written([], {}).read().num_rows == 0
    batch = made_batch()
    batch.rows.n[:] = 0
    assert _written([batch], {"samples": True}).read().num_rows == 0


def test_after_an_error_the_file_is_not_completed(monkeypatch):
    monkeypatch.setattr(eventalign_arrow, "ROWS_PER_GROUP", 200)
    out = io.BytesIO()
    with suppress(ZeroDivisionError), EventalignArrow(out, _CONTIGS, made_model()) as writer:
        writer.write(made_batch())
        raise ZeroDivisionError
    assert not out.getvalue().endswith(b"PAR1")
    assert not any(thread.name.startswith(("f5py-parquet", "f5py-columns")) for thread in threading.enumerate())
