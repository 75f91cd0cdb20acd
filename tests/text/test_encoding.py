"""Names whose bytes are not UTF-8 come out of every table as they went in."""

from __future__ import annotations

import io

import numpy as np
import pytest

from f5py.core.batch import ReadBatch
from f5py.core.names import Names
from f5py.outputs.events.eventalign_table import EventalignTable
from f5py.outputs.events.events_sinks import EventalignPaf, EventalignSummary
from f5py.outputs.events.table_columns import TableLayout
from f5py.outputs.formatted_text import StageTables

from ..outputs.eventalign_rows import made_batch, made_model
from ..outputs.made_rows import CONTIG_LENGTHS, CONTIGS, K, MadeRead, rows_batch

NAME = b"caf\xe9"


@pytest.fixture
def batch() -> ReadBatch:
    made = rows_batch([MadeRead(False, [5, 15], [10, 10], [(0, 7, False), (1, 8, False)])])
    made.names = Names.of([NAME.decode("utf-8", "surrogateescape")])
    return made


def test_paf_and_summary(batch: ReadBatch):
    assert EventalignPaf(CONTIGS, CONTIG_LENGTHS, K, False).format(batch, 0, 1).startswith(NAME + b"\t")
    folder = b"/fast5/\xff".decode("utf-8", "surrogateescape")
    assert EventalignSummary("-", 1, False, folder).format(batch).split(b"\t")[1:3] == [NAME, b"/fast5/\xff"]


def test_table():
    batch = made_batch()
    batch.names = [f"{name}{NAME.decode('utf-8', 'surrogateescape')}" for name in batch.names]
    table = EventalignTable(CONTIGS, made_model(), TableLayout(print_read_names=True))
    rows = bytes(table.format(batch, 0, len(batch))).splitlines()
    assert rows
    assert all(row.split(b"\t")[3].endswith(NAME) for row in rows)


def test_stages(batch: ReadBatch):
    out = io.BytesIO()
    nothing = np.zeros(len(batch.events.start), np.float32)
    batch.events = batch.events._replace(mean=nothing, stdv=nothing)
    batch.n_pairs = np.array([1])
    batch.pair_offsets = np.array([0, 1])
    batch.aligned_pairs = np.zeros((1, 2), np.int32)
    StageTables(out, events=True, pairs=True, scaling=True).write(batch)
    lines = out.getvalue().splitlines()
    assert sum(line.startswith(b">" + NAME + b"\t") for line in lines) == 2
    assert sum(line.startswith(NAME + b"\t") for line in lines) == 1
