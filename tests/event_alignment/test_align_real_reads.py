"""Alignment of real reads' events to the reference: the very rows of f5c."""

from __future__ import annotations

import gzip

import pytest

from f5py.core.batch import RowState
from f5py.event_alignment.align import align_events
from f5py.pore_model import builtin
from f5py.threads.pool import WorkerPool

from .expected_rows import NUCLEOTIDE, calibrated_batch


@pytest.mark.shared
@pytest.mark.parametrize(("table", "read_column"), [("default", "read_index"), ("names_scaled_index", "read_name")])
def test_rows_of_real_reads(ecoli, indexed_ecoli, table, read_column):
    batch = calibrated_batch(ecoli, indexed_ecoli / "reads.fasta")
    pool = WorkerPool(2)
    align_events(batch, builtin(NUCLEOTIDE), pool, None)
    pool.close()
    with gzip.open(ecoli / f"expected/eventalign/{table}.tsv.gz", "rt") as file:
        names = file.readline().split()
        columns = [names.index(name) for name in (read_column, "position", "event_index", "model_kmer")]
        expected = []
        for line in file:
            fields = line.split("\t")
            read, position, event, kmer = (fields[column] for column in columns)
            expected.append((read, int(position), int(event), kmer == "NNNNNN"))
    rows = []
    for read in range(len(batch)):
        at = slice(batch.events.offsets[read], batch.events.offsets[read] + batch.rows.n[read])
        name = batch.names[read] if read_column == "read_name" else str(batch.read_index[read])
        bad = (batch.rows.state[at] & RowState.BAD).astype(bool).tolist()
        positions, events = batch.rows.position[at].tolist(), batch.rows.event[at].tolist()
        assert not (batch.rows.state[at] & RowState.NEW_SEGMENT).any()
        rows += [(name, *row) for row in zip(positions, events, bad, strict=True)]
    assert len(expected) == 98697
    assert rows == expected
