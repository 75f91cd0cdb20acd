"""Parts of the alignment file that the loader keeps besides what is computed with."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pysam
import pytest
from numpy.typing import NDArray

from f5py.commands.index import index_fast5
from f5py.core.batch import ReadBatch
from f5py.io.reads.read_index import ReadIndex
from f5py.options.signal_commands import CallOptions
from f5py.pipeline.inputs import open_inputs
from f5py.pipeline.loader import Loader
from f5py.threads.pool import WorkerPool

from ..made_data import ReadSet, rows_by_read, run_main


def load(
    made: ReadSet, batch_size: int, tells_share: bool = False, **settings: object
) -> tuple[Loader, list[ReadBatch]]:
    options = CallOptions(reads=str(made.reads), bam=str(made.bam), genome=str(made.genome), batchsize=batch_size)
    with ExitStack() as inputs:
        loader, _ = open_inputs(options, inputs, **settings)
        loader.tells_share = tells_share
        return loader, list(loader.batches())


@pytest.fixture(scope="module")
def with_left_out_records(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> ReadSet:
    """Every third record has a low mapping quality, and an unmapped one is the last."""
    _, records = made.records()
    for record in records[::3]:
        record.mapping_quality = 3
    unmapped = pysam.AlignedSegment(records[0].header)
    unmapped.query_name, unmapped.flag, unmapped.query_sequence = "unmapped", 4, "ACGT"
    return made.with_records(tmp_path_factory.mktemp("left_out"), [*records, unmapped], index=False)


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_all_records_can_be_put_together_again(with_left_out_records: ReadSet, batch_size: int):
    _, batches = load(with_left_out_records, batch_size, keep_records=True, keep_passed_over=True)
    header, expected = with_left_out_records.records()
    found = []
    for batch in batches:
        segments = batch.records.segments(header)
        used = [(i, read) for i, read in enumerate(batch.records.read.tolist()) if read >= 0]
        assert [read for _, read in used] == list(range(len(batch)))
        assert [segments[i].query_name for i, _ in used] == list(batch.names)
        found += segments
    assert [record.to_string() for record in found] == [record.to_string() for record in expected]


def test_many_left_out_records_are_not_collected(made: ReadSet, tmp_path: Path):
    """Unmapped reads stand at the end of a sorted file, and may be more than all others."""
    _, records = made.records()
    unmapped = pysam.AlignedSegment(records[0].header)
    unmapped.query_name, unmapped.flag, unmapped.query_sequence = "unmapped", 4, "ACGT"
    changed = made.with_records(tmp_path, [*records, *[unmapped] * 1000], index=False)
    _, batches = load(changed, 5, keep_records=True, keep_passed_over=True)
    left_out = [int((batch.records.read < 0).sum()) for batch in batches]
    assert max(left_out) <= 5
    assert sum(left_out) == 1000
    out, tagged = tmp_path / "calls.tsv", tmp_path / "tagged.bam"
    assert run_main(*changed.options(), "-K", "5", "-o", out, "--modbam", tagged) == 0
    with pysam.AlignmentFile(str(tagged), check_sq=False) as file:
        names = [record.query_name for record in file.fetch(until_eof=True)]
    assert names == [*made.names, *["unmapped"] * 1000]


def test_records_are_not_kept_unless_asked_for(with_left_out_records: ReadSet):
    _, batches = load(with_left_out_records, 4)
    assert all(batch.records is None and (batch.partition == -1).all() for batch in batches)


def test_batches_tell_which_share_of_the_input_they_end(made: ReadSet):
    _, batches = load(made, 4, tells_share=True)
    ends = np.cumsum([len(batch) for batch in batches])
    assert [batch.share_of_input for batch in batches] == (ends / ends[-1]).tolist()
    _, batches = load(made, 4)
    assert {batch.share_of_input for batch in batches} == {None}


def test_reads_are_told_apart_by_a_tag(made: ReadSet, tmp_path: Path):
    _, records = made.records()
    values = ["2", None, "1"] * len(records)
    for record, value in zip(records, values, strict=False):
        record.set_tag("HP", None if value is None else int(value))
    loader, batches = load(made.with_records(tmp_path, records), 5, partition_tag="HP")
    numbers = np.concatenate([batch.partition for batch in batches])
    assert loader.partitions == ["2", "1"]
    assert [None if i < 0 else loader.partitions[i] for i in numbers.tolist()] == values[: len(records)]


def test_a_split_read_is_called_from_its_part_of_the_parents_signal(made: ReadSet, made_calls: bytes, tmp_path: Path):
    """The part is the whole here, under another name, so that all rows are known."""
    name = made.names[0]
    reads = tmp_path / "changed.fasta"
    reads.write_text(made.reads.read_text().replace(f">{name}", ">part"))
    index_fast5(str(reads), [str(made.folder / "fast5")], threads=1, verbose=0)
    header, records = made.records()
    records[0].query_name = "part"
    for tag, value in (("pi", name), ("sp", 0)):
        records[0].set_tag(tag, value)
    changed = made.with_records(tmp_path, records, header=header.to_dict())
    out = tmp_path / "calls.tsv"
    assert run_main("-r", reads, "-b", changed.bam, "-g", made.genome, "-t", "2", "-o", out) == 0
    expected, found = rows_by_read(made_calls), rows_by_read(out.read_bytes())
    assert [row.replace(b"\tpart\t", f"\t{name}\t".encode()) for row in found.pop("part")] == expected.pop(name)
    assert found == expected


@pytest.mark.parametrize("n_ahead", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_batches_loaded_at_the_same_time_come_in_order(made: ReadSet, n_ahead: int, batch_size: int):
    _, expected = load(made, 100)
    _, batches = load(made, batch_size, n_ahead=n_ahead)
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert [name for batch in batches for name in batch.names] == list(expected[0].names)
    for field in ("samples", "bases", "reference", "read_index", "cigar", "unit"):
        assert np.array_equal(np.concatenate([getattr(batch, field) for batch in batches]), getattr(expected[0], field))


@pytest.mark.parametrize("batch_size", [2, 100])
def test_bases_are_those_of_the_record_where_it_has_all(made: ReadSet, tmp_path: Path, batch_size: int):
    """Hard-clipped records, such without bases, and such with "=" in the place of a base, are looked up."""
    _, expected = load(made, 100, bases_from_records=False)
    header, records = made.records()
    clipped, empty, equal = records[0], records[1], records[2]
    clipped.query_sequence = (clipped.query_sequence or "")[:-5]
    empty.query_sequence = None
    equal.query_sequence = "=" + (equal.query_sequence or "")[1:]
    last_operation, n = clipped.cigartuples[-1]
    clipped.cigartuples = [*clipped.cigartuples[:-1], (last_operation, n - 5), (5, 5)]
    changed = made.with_records(tmp_path, records, header=header.to_dict())
    loader, batches = load(changed, batch_size)
    assert loader.settings.bases_from_records
    assert np.array_equal(np.concatenate([batch.bases for batch in batches]), expected[0].bases)
    _, all_looked_up = load(changed, batch_size, bases_from_records=False)
    assert np.array_equal(np.concatenate([batch.bases for batch in all_looked_up]), expected[0].bases)


def test_only_bases_of_incomplete_records_are_looked_up(made: ReadSet, monkeypatch: pytest.MonkeyPatch):
    asked = []
    sequences_of = ReadIndex.sequences_of

    def noting(index: ReadIndex, rows: NDArray[np.int64], pool: WorkerPool | None = None) -> object:
        asked.append(len(rows))
        return sequences_of(index, rows, pool)

    monkeypatch.setattr(ReadIndex, "sequences_of", noting)
    load(made, 3)
    assert not any(asked[1:])  # the first look is for the letters


def test_reads_with_the_letter_u_are_looked_up(made: ReadSet, tmp_path: Path):
    """Alignment records have T instead, and whether the reads are RNA is told by their letters."""
    reads = tmp_path / "rna.fasta"
    reads.write_text(
        "\n".join(line if ">" in line else line.replace("T", "U") for line in made.reads.read_text().split())
    )
    index_fast5(str(reads), [str(made.folder / "fast5")], threads=1, verbose=0)
    loader, batches = load(replace(made, reads=reads), 100)
    assert not loader.settings.bases_from_records
    assert set(batches[0].bases.tolist()) == set(b"ACGU")
