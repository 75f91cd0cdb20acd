"""The event table as text, against f5c's files and against a plain reading of the rules."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.core.batch import ReadBatch, RowState
from f5py.outputs.events import eventalign_table
from f5py.outputs.events.eventalign_table import EventalignTable
from f5py.outputs.events.table_columns import TableLayout

from .eventalign_rows import made_batch, made_model, plain_table

_OPTIONS = ["print_read_names", "scale_events", "samples", "signal_index", "collapse_events", "m6anet"]
_CONTIGS = ["chr1", "a_contig_with_a_name_of_more_than_one_block"]


@pytest.fixture(scope="module")
def batch() -> ReadBatch:
    return made_batch()


def _text(table: EventalignTable, batch: ReadBatch, first: int = 0, end: int | None = None) -> bytes:
    return table.header() + table.format(batch, first, len(batch) if end is None else end).tobytes()


@pytest.mark.parametrize("switched_on", range(2 ** len(_OPTIONS)))
def test_every_combination_of_options(batch, switched_on):
    options = {name: bool(switched_on >> i & 1) for i, name in enumerate(_OPTIONS)}
    table = EventalignTable(_CONTIGS, made_model(), TableLayout(**options))
    assert _text(table, batch) == plain_table(batch, _CONTIGS, made_model(), 0, len(batch), **options)


@pytest.mark.parametrize("k", [1, 5, 9])
def test_other_kmer_sizes(k):
    batch = made_batch(seed=k, k=k)
    options = {"signal_index": True, "collapse_events": True}
    table = EventalignTable(_CONTIGS, made_model(k), TableLayout(**options))
    assert _text(table, batch) == plain_table(batch, _CONTIGS, made_model(k), 0, len(batch), **options)
    table = EventalignTable(_CONTIGS, made_model(k), TableLayout(m6anet=True))
    assert _text(table, batch) == plain_table(batch, _CONTIGS, made_model(k), 0, len(batch), m6anet=True)


def test_the_made_rows_meet_all_cases(batch):
    rows = [line.split("\t") for line in _text(EventalignTable(_CONTIGS, made_model()), batch).decode().splitlines()]
    last = {row[-1] for row in rows}
    assert {"inf", "-inf", "-nan"} <= last
    assert any(row[9] == "NNNNNN" for row in rows)
    assert any(len(row[6]) > 9 for row in rows)  # a level too long for a word
    assert any(int(row[5]) >= 10**3 for row in rows[1:])
    assert batch.reverse.any()
    assert not batch.reverse.all()


@pytest.mark.parametrize("options", [{"samples": True}, {}])
def test_a_buffer_that_is_too_small_grows(batch, monkeypatch, options):
    table = EventalignTable(_CONTIGS, made_model(), TableLayout(**options))
    usual = table.format(batch, 0, len(batch)).tobytes()
    sizes = []
    fill = EventalignTable._fill

    def noting_fill(table, out, *rest):
        sizes.append(len(out))
        return fill(table, out, *rest)

    monkeypatch.setattr(EventalignTable, "_fill", noting_fill)
    monkeypatch.setattr(eventalign_table, "_USUAL_FIXED", 0)
    monkeypatch.setattr(eventalign_table, "_USUAL_SAMPLE", 0)
    assert table.format(batch, 0, len(batch)).tobytes() == usual
    assert len(sizes) > 1


def test_names_beyond_ascii(batch):
    batch = made_batch()
    batch.names = [f"größe_{name}" for name in batch.names]
    options = {"print_read_names": True}
    table = EventalignTable(_CONTIGS, made_model(), TableLayout(**options))
    assert _text(table, batch) == plain_table(batch, _CONTIGS, made_model(), 0, len(batch), **options)


def test_large_indices():
    batch = made_batch()
    batch.reference_start += 2**31 - 2**20
    batch.rows.position[:] += 2**31 - 2**20
    batch.events.start[:] += 10**9
    batch.read_index += 10**12
    table = EventalignTable(_CONTIGS, made_model(), TableLayout(signal_index=True))
    assert _text(table, batch) == plain_table(batch, _CONTIGS, made_model(), 0, len(batch), signal_index=True)


def test_a_bad_first_event_marks_its_group(batch):
    batch = made_batch()
    read = int(np.argmax(batch.rows.n))
    first = int(batch.events.offsets[read])
    batch.rows.state[first] = RowState.BAD
    batch.rows.position[first : first + 3] = batch.rows.position[first]
    batch.rows.state[first + 1 : first + 3] = 0
    table = EventalignTable(_CONTIGS, made_model(), TableLayout(collapse_events=True))
    row = table.format(batch, read, read + 1).tobytes().split(b"\n")[0].split(b"\t")
    assert row[9:12] == [b"NNNNNN", b"0.00", b"0.00"]
