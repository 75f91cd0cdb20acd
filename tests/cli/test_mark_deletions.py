"""``f5py eventalign --mark-deletions`` on real reads: against the alignments as pysam reads them, and f5c's PAF."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas
import pyarrow.parquet
import pysam
import pytest

import f5py
from f5py.threads.pool import WorkerPool

from ..made_data import last_of_each, run_command

pytestmark = pytest.mark.shared

Inputs = dict[str, str]


@pytest.fixture(scope="module")
def dna(ecoli: Path) -> Inputs:
    return {
        "-b": str(ecoli / "reads8.bam"),
        "-g": str(ecoli / "ref.fa"),
        "--pod5": str(ecoli / "formats" / "reads.pod5"),
    }


@pytest.fixture(scope="module")
def rna(slow5_set: Callable[[str], Path]) -> Inputs:
    folder = slow5_set("rna002_sequin")
    names = {"-r": "reads.fastq", "-b": "reads.bam", "-g": "ref.fa", "--slow5": "signals.blow5"}
    return {option: str(folder / name) for option, name in names.items()}


@pytest.fixture(params=["dna", "rna"])
def inputs(request: pytest.FixtureRequest) -> Inputs:
    return request.getfixturevalue(request.param)


def _aligned(inputs: Inputs, out: Path, *options: str) -> bytes:
    given = [word for pair in inputs.items() for word in pair]
    assert run_command("eventalign", *last_of_each([*given, "-t", "2", *options]), "-o", out) == 0
    return out.read_bytes()


def _is_mark(row: list[str]) -> bool:
    return row[9].strip(".-") == ""


def _rows(table: bytes) -> dict[str, list[list[str]]]:
    """Sort the rows by the number of their record."""
    records = defaultdict(list)
    for line in table.decode().splitlines()[1:]:
        row = line.split("\t")
        records[row[3]].append(row)
    return records


def _deleted_bases(bam: str) -> list[set[int]]:
    """Of each record, the reference positions that its read lacks."""
    with pysam.AlignmentFile(bam) as file:
        return [
            {there for here, there, operation in record.get_aligned_pairs(with_cigar=True) if here is None
             and operation == pysam.CDEL}
            for record in file
        ]  # fmt: skip


def test_the_other_rows_stay_and_marks_fill_the_gaps(inputs: Inputs, tmp_path: Path) -> None:
    plain = _aligned(inputs, tmp_path / "plain.tsv", "--signal-index")
    marked = _aligned(inputs, tmp_path / "marked.tsv", "--signal-index", "--mark-deletions")
    lines = marked.splitlines(keepends=True)
    kept = [lines[0], *(line for line in lines[1:] if not _is_mark(line.decode().split("\t")))]
    assert b"".join(kept) == plain
    assert len(lines) - len(kept) > 500
    deleted = _deleted_bases(inputs["-b"])
    reference = pysam.FastaFile(inputs["-g"])
    seen = defaultdict(int)
    for number, rows in _rows(marked).items():
        for before, row in pairwise(rows):
            assert int(row[1]) - int(before[1]) in (0, 1)  # there is no gap
        for row in filter(_is_mark, rows):
            position, k = int(row[1]), len(row[2])
            is_deleted = not deleted[int(number)].isdisjoint(range(position, position + k))
            seen[is_deleted] += 1
            assert row[9] == ("-" if is_deleted else ".") * k
            assert row[2] == reference.fetch(row[0], position, position + k).upper()
            assert [*row[5:9], *row[10:13]] == ["-1", "0.00", "0.000", "0.00000", "0.00", "0.00", "inf"]
    assert min(seen.values()) > 100


def test_marks_stand_where_the_signal_passes_them(inputs: Inputs, tmp_path: Path) -> None:
    marked = _aligned(inputs, tmp_path / "marked.tsv", "--signal-index", "--mark-deletions", "--collapse-events")
    n = 0
    for rows in _rows(marked).values():
        with_event = [i for i, row in enumerate(rows) if not _is_mark(row)]
        for i, j in pairwise(with_event):
            before, after = ((int(rows[at][13]), int(rows[at][14])) for at in (i, j))
            middle = before[1] if before[0] < after[0] else before[0]
            for row in rows[i + 1 : j]:
                assert int(row[13]) == int(row[14]) == middle
                n += 1
    assert n > 500


def test_there_are_as_many_as_f5c_counts_in_paf(inputs: Inputs, tmp_path: Path) -> None:
    """The strings of PAF, which equal f5c's, say how many k-mers have no samples."""
    marked = _rows(_aligned(inputs, tmp_path / "marked.tsv", "--mark-deletions", "-n"))
    n = 0
    for line in _aligned(inputs, tmp_path / "out.paf", "--paf").decode().splitlines():
        string = line[line.index("\tss:Z:") :]
        expected = sum(map(int, re.findall(r"(\d+)D", string)))
        assert sum(map(_is_mark, marked[line.split("\t")[0]])) == expected
        n += expected
    assert n > 500


def test_parquet_and_python_have_the_rows_of_the_text(dna: Inputs, tmp_path: Path) -> None:
    options = ["--mark-deletions", "--samples", "--signal-index"]
    text = pandas.read_csv(io.BytesIO(_aligned(dna, tmp_path / "out.tsv", *options)), sep="\t")
    content = _aligned(dna, tmp_path / "out.parquet", *options)
    table = pyarrow.parquet.read_table(io.BytesIO(content)).to_pandas()
    called = f5py.eventalign(
        bam=dna["-b"], genome=dna["-g"], pod5=dna["--pod5"], mark_deletions=True, samples=True, signal_index=True,
        returns="pandas",
    )  # fmt: skip
    assert text["event_index"].dtype == text["start_idx"].dtype == "int64"
    for rows in (table, called):
        for name in text.columns[:-1]:
            expected = text[name].astype("float32" if text[name].dtype == "float64" else text[name].dtype)
            assert rows[name].astype(expected.dtype).tolist() == expected.tolist(), name
        marks = rows["event_index"] == -1
        assert (rows.loc[marks, "samples"].str.len() == 0).all()
        assert text.loc[marks, "samples"].isna().all()
        assert (rows.loc[~marks, "samples"].str.len() > 0).all()


def test_what_reads_the_table_takes_it_for_the_same(dna: Inputs, tmp_path: Path) -> None:
    """Tools keep the rows whose k-mers agree, as m6anet and xpore do; compare leaves marks out; so does the summary."""
    tables, summaries = [], []
    for options in ([], ["--mark-deletions"]):
        summary = tmp_path / f"summary{len(options)}.tsv"
        out = tmp_path / f"out{len(options)}.tsv"
        tables.append(pandas.read_csv(io.BytesIO(_aligned(dna, out, *options, "--summary", str(summary))), sep="\t"))
        summaries.append(summary.read_bytes())
    assert summaries[0] == summaries[1]
    assert len(tables[1]) > len(tables[0])
    kept = [table[table["reference_kmer"] == table["model_kmer"]].reset_index(drop=True) for table in tables]
    pandas.testing.assert_frame_equal(*kept)
    compared = []
    for second in ("out0.tsv", "out1.tsv"):
        out = tmp_path / f"compared_{second}"
        tables_of_both = (tmp_path / "out0.tsv", tmp_path / second)
        assert run_command("compare", *tables_of_both, "--min-coverage", 1, "-o", out) == 0
        compared.append(out.read_bytes())
    assert compared[0] == compared[1]
    assert compared[0].count(b"\n") > 1000


def test_bytes_do_not_depend_on_threads_and_batches(dna: Inputs, tmp_path: Path) -> None:
    expected = _aligned(dna, tmp_path / "one.tsv", "--mark-deletions", "--kmer-view", "4")
    assert _aligned(dna, tmp_path / "two.tsv", "--mark-deletions", "--kmer-view", "4", "-K", "2", "-t", "1") == expected
    with_plan = ["--plan", str(tmp_path / "plan"), "--mark-deletions", "--kmer-view", "4"]
    assert _aligned(dna, tmp_path / "three.tsv", *with_plan) == expected
    marks = [row for rows in _rows(expected).values() for row in rows if _is_mark(row)]
    assert {row[9] for row in marks} == {"----", "...."}
    deleted = _deleted_bases(dna["-b"])
    for row in marks:  # of the bases that are shown
        is_deleted = not deleted[int(row[3])].isdisjoint(range(int(row[1]), int(row[1]) + 4))
        assert row[9] == ("----" if is_deleted else "....")


def test_gaps_between_exons_are_no_deletions() -> None:
    """Made by hand: two exons, a deletion in the first, and a row that skips k-mers in the second."""
    from f5py.core.batch import RowState
    from f5py.event_alignment.kmer_marks import add_skipped_kmers

    from ..outputs.eventalign_rows import made_batch

    batch = made_batch()
    k, start = 6, int(batch.reference_start[1])
    operations = [(6, 0), (3, 2), (7, 0), (100, 3), (30, 0)]  # 6M3D7M100N30M
    batch.cigar = np.array([length << 4 | operation for length, operation in operations], np.uint32)
    batch.cigar_offsets = np.minimum(np.arange(8), 2) // 2 * len(operations)
    rows = [(0, 0), (1, 1), (2, 9), (3, 116), (4, 118)]
    n = len(rows)
    offsets = np.minimum(np.arange(8), 2) // 2 * n  # all others have none
    state = np.array([0, 0, 0, RowState.NEW_SEGMENT, 0], np.uint8)
    event, position = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    batch.rows = batch.rows._replace(
        offsets=offsets, n=np.diff(offsets), event=event, position=position + np.int32(start), state=state
    )
    letters = np.full(200, ord("A"), np.uint8)
    batch.reference, batch.reference_offsets = letters, np.minimum(np.arange(8), 2) // 2 * 200
    times = np.arange(n, dtype=np.int32) * 10
    batch.events = batch.events._replace(offsets=offsets, start=times, length=np.full(n, 10, np.int32))
    with closing(WorkerPool(2)) as pool:
        add_skipped_kmers(batch, k, pool)
    got = list(zip(batch.rows.position - start, batch.rows.state.tolist(), batch.rows.event.tolist(), strict=True))
    gap = [(at, int(RowState.DELETED), 2) for at in range(2, 9)]
    new = int(RowState.NEW_SEGMENT)
    assert got == [(0, 0, 0), (1, 0, 1), *gap, (9, 0, 2), (116, new, 3), (117, int(RowState.SKIPPED), 4), (118, 0, 4)]
    assert batch.rows.n.tolist() == [0, len(got), 0, 0, 0, 0, 0]
    assert batch.rows.offsets.tolist() == [0, 0, *6 * [len(got)]]
