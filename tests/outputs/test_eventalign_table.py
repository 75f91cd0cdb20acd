"""The event table as text, against f5c's files and against a plain reading of the rules."""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from f5py.core.batch import ReadBatch, RowState
from f5py.outputs.events import eventalign_table
from f5py.outputs.events.eventalign_table import EventalignTable
from f5py.outputs.events.table_columns import TableLayout
from f5py.pore_model import builtin

from ..event_alignment.expected_rows import NUCLEOTIDE, ecoli_contigs, expected_batch
from .eventalign_rows import made_batch, made_model, plain_table

_MODES = {
    "default.tsv.gz": {},
    "names_scaled_index.tsv.gz": {"print_read_names": True, "scale_events": True, "signal_index": True},
    "collapsed.tsv.gz": {"collapse_events": True},
    "m6anet.tsv.gz": {"m6anet": True},
}
_OPTIONS = ["print_read_names", "scale_events", "samples", "signal_index", "collapse_events", "m6anet"]
_CONTIGS = ["chr1", "a_contig_with_a_name_of_more_than_one_block"]


@pytest.fixture(scope="module")
def ecoli_batch(ecoli: Path, indexed_ecoli: Path) -> ReadBatch:
    return expected_batch(ecoli, indexed_ecoli / "reads.fasta")


@pytest.fixture(scope="module")
def batch() -> ReadBatch:
    return made_batch()


def _text(table: EventalignTable, batch: ReadBatch, first: int = 0, end: int | None = None) -> bytes:
    return table.header() + table.format(batch, first, len(batch) if end is None else end).tobytes()


@pytest.mark.parametrize("name", _MODES)
def test_reference_files(ecoli_batch, ecoli, name):
    expected = gzip.decompress((ecoli / "expected/eventalign" / name).read_bytes())
    if "m6anet" in name:  # positions at which no event fits are left out here
        lines = expected.splitlines(keepends=True)
        expected = b"".join(line for line in lines if not line.endswith(b"\t-nan\t-nan\t-nan\t\n"))
        assert len(expected) < len(b"".join(lines))
    table = EventalignTable(ecoli_contigs(ecoli), builtin(NUCLEOTIDE), TableLayout(**_MODES[name]))
    assert _text(table, ecoli_batch) == expected


def test_samples_of_real_reads(ecoli_batch, ecoli):
    options = {"samples": True, "collapse_events": True}
    contigs, model = ecoli_contigs(ecoli), builtin(NUCLEOTIDE)
    for read in (5, 8):  # of either strand
        table = EventalignTable(contigs, model, TableLayout(**options))
        assert _text(table, ecoli_batch, read, read + 1) == plain_table(
            ecoli_batch, contigs, model, read, read + 1, **options
        )


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


def test_header_of_m6anet_ends_with_a_tab():
    assert EventalignTable([], made_model(), TableLayout(m6anet=True, samples=True, signal_index=True)).header() == (
        b"contig\tposition\treference_kmer\tread_index\tevent_level_mean\tevent_stdv\tevent_length\t"
        b"\tstart_idx\tend_idx\n"
    )


def test_ranges_of_reads_make_the_whole(batch):
    table = EventalignTable(_CONTIGS, made_model(), TableLayout(samples=True, collapse_events=True))
    whole = table.format(batch, 0, len(batch)).tobytes()
    with ThreadPoolExecutor(3) as pool:
        pieces = pool.map(lambda first: table.format(batch, first, min(first + 2, len(batch))), range(0, len(batch), 2))
        assert b"".join(piece.tobytes() for piece in pieces) == whole


def test_reads_without_rows_give_none(batch):
    without = int(np.flatnonzero(batch.rows.n == 0)[0])
    table = EventalignTable(_CONTIGS, made_model())
    assert table.format(batch, without, without + 1).tobytes() == b""
    assert table.format(batch, 1, 1).tobytes() == b""


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
