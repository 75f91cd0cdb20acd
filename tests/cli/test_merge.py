"""``f5py merge``: outputs of windows become those of one run."""

from __future__ import annotations

import gzip
import subprocess
from itertools import pairwise
from pathlib import Path

import pysam
import pytest

from ..made_data import ReadSet, run_command

#: Borders of windows that follow each other, 0-based; reads and groups cross them.
BORDERS = (0, 2_500, 5_003, 5_020, 9_000, 12_000)


@pytest.fixture(scope="module")
def windows(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the outputs of one run, and of one for each window."""
    folder = tmp_path_factory.mktemp("windows")
    contig = made.records()[0].references[0]
    for i, (begin, end) in enumerate(pairwise(BORDERS)):
        call(made, folder / str(i), "-w", f"{contig}:{begin + 1}-{end}")
    call(made, folder / "all")
    return folder


def call(made: ReadSet, stem: Path, *options: str) -> None:
    outputs = ("-o", f"{stem}.tsv", "--modbam", f"{stem}.bam", "--bedmethyl", f"{stem}.bed")
    assert run_command("call-methylation", *made.options(), *outputs, *options) == 0


def parts(folder: Path, ending: str) -> list[Path]:
    return [folder / f"{i}.{ending}" for i in range(len(BORDERS) - 1)]


def records(path: Path) -> list[str]:
    found = subprocess.run(["samtools", "view", str(path)], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()


def test_tables(windows: Path, tmp_path: Path):
    assert run_command("merge", *parts(windows, "tsv"), "-o", tmp_path / "out.tsv") == 0
    header, *rows = (tmp_path / "out.tsv").read_text().splitlines()
    all_header, *all_rows = (windows / "all.tsv").read_text().splitlines()
    assert header == all_header
    assert sorted(rows) == sorted(all_rows)
    first = (windows / "0.tsv").read_text().splitlines()[1:]
    assert rows[: len(first)] == first


def test_compressed_tables_come_out_compressed(windows: Path, tmp_path: Path):
    packed = tmp_path / "in.tsv.gz"
    packed.write_bytes(gzip.compress((windows / "0.tsv").read_bytes()))
    assert run_command("merge", packed, windows / "1.tsv", "-o", tmp_path / "out.tsv.gz") == 0
    assert run_command("merge", windows / "0.tsv", windows / "1.tsv", "-o", tmp_path / "out.tsv") == 0
    assert gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()) == (tmp_path / "out.tsv").read_bytes()


def test_one_file(windows: Path, tmp_path: Path):
    assert run_command("merge", windows / "all.tsv", "-o", tmp_path / "out.tsv") == 0
    assert (tmp_path / "out.tsv").read_bytes() == (windows / "all.tsv").read_bytes()


def test_modbam(windows: Path, tmp_path: Path):
    """Reads over several windows are there once, with all their calls; nothing else changes."""
    assert sum(len(records(path)) for path in parts(windows, "bam")) > len(records(windows / "all.bam"))
    assert run_command("merge", *parts(windows, "bam"), "-o", tmp_path / "out.bam") == 0
    assert records(tmp_path / "out.bam") == records(windows / "all.bam")


def test_a_record_that_stands_twice_in_one_file_stays_so(made: ReadSet, windows: Path, tmp_path: Path):
    _, found = made.records()
    twice = made.with_records(tmp_path, [found[0], found[0], found[1]], index=False)
    assert run_command("merge", twice.bam, windows / "all.bam", "-o", tmp_path / "out.bam") == 0
    names = [line.split("\t")[0] for line in records(tmp_path / "out.bam")]
    assert names.count(found[0].query_name) == 2
    assert len(names) == len(found) + 1


@pytest.mark.parametrize("n_more", [1, 3, 50, 5000])
def test_modbam_with_damaged_tags(
    windows: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], n_more: int
) -> None:
    """MM of a record lists more calls than ML has values: they are not merged, and the run says so."""
    damaged = tmp_path / "damaged.bam"
    with pysam.AlignmentFile(windows / "all.bam") as given, pysam.AlignmentFile(damaged, "wb", template=given) as out:
        for i, record in enumerate(given):
            if i == 0:
                record.set_tag("MM", record.get_tag("MM").rstrip(";") + ",0" * n_more + ";")
            out.write(record)
    assert run_command("merge", damaged, damaged, "-o", tmp_path / "twice.bam") == 0
    message = capfd.readouterr().err
    assert message.count("damaged.bam: 1 records have base modification tags that are damaged") == 2
    assert records(tmp_path / "twice.bam") == records(damaged)
    assert run_command("merge", damaged, windows / "all.bam", "-o", tmp_path / "mended.bam") == 0
    assert records(tmp_path / "mended.bam") == records(windows / "all.bam")


def test_bedmethyl(windows: Path, tmp_path: Path):
    pytest.importorskip("pyarrow")
    assert run_command("merge", *parts(windows, "bed"), "-o", tmp_path / "out.bed") == 0
    assert (tmp_path / "out.bed").read_bytes() == (windows / "all.bed").read_bytes()
    assert run_command("merge", windows / "all.bed", windows / "all.bed", "-o", tmp_path / "two.bed.gz") == 0
    one = [line.split("\t") for line in (windows / "all.bed").read_text().splitlines()]
    two = [line.split("\t") for line in gzip.decompress((tmp_path / "two.bed.gz").read_bytes()).decode().splitlines()]
    assert [[row[0], row[1], int(row[9]) * 2, row[10]] for row in one] == [
        [row[0], row[1], int(row[9]), row[10]] for row in two
    ]
    assert (tmp_path / "two.bed.gz.tbi").exists()


def test_parquet(made: ReadSet, tmp_path: Path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    assert run_command("call-methylation", *made.options(), "-o", tmp_path / "all.parquet") == 0
    assert run_command("merge", tmp_path / "all.parquet", "-o", tmp_path / "one.parquet") == 0
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "all.parquet").read_bytes()
    assert run_command("merge", tmp_path / "all.parquet", tmp_path / "all.parquet", "-o", tmp_path / "two.parquet") == 0
    one, two = (pyarrow.read_table(tmp_path / f"{name}.parquet") for name in ("all", "two"))
    assert two.slice(0, len(one)).to_pylist() == two.slice(len(one)).to_pylist() == one.to_pylist()


def test_parquet_of_events(made: ReadSet, tmp_path: Path):
    pytest.importorskip("pyarrow")
    events = tmp_path / "e.parquet"
    assert run_command("eventalign", *made.options(), "--samples", "--signal-index", "-o", events) == 0
    assert run_command("merge", events, "-o", tmp_path / "out.parquet") == 0
    assert (tmp_path / "out.parquet").read_bytes() == events.read_bytes()
