"""``f5py eventalign`` against f5c on real reads: R9.4 DNA, R9.4 RNA and R10.4.1 DNA."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas
import pyarrow.parquet
import pysam
import pytest

from f5py.cli import command_of

from ..made_data import last_of_each

command = command_of("eventalign")

pytestmark = pytest.mark.shared

Align = Callable[..., bytes]


def expected_file(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


@pytest.fixture(scope="module")
def align_ecoli(indexed_ecoli: Path, ecoli: Path, tmp_path_factory: pytest.TempPathFactory) -> Align:
    """Return a function that runs eventalign on the E. coli reads as f5c counts clips, and returns the output."""
    folder = tmp_path_factory.mktemp("eventalign")

    def align(*options: str, bam: str = "reads8.bam", output: str = "out.txt") -> bytes:
        inputs = ["-r", str(indexed_ecoli / "reads.fasta"), "-b", str(ecoli / bam), "-g", str(ecoli / "ref.fa")]
        clips = [] if "--hard-clips=yes" in options else ["--hard-clips=no"]
        usual = [*inputs, *clips, "-t", "2", "--iop", "1", "-o", str(folder / output)]
        arguments = last_of_each([*usual, *options])
        command.main(arguments, standalone_mode=False)
        return (folder / output).read_bytes()

    return align


@pytest.fixture(scope="module")
def align_slow5(slow5_set: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Align:
    """Return a function that runs eventalign on a set of BLOW5 reads and returns the output."""
    out = tmp_path_factory.mktemp("eventalign") / "out.txt"

    def align(name: str, *options: str) -> bytes:
        folder = slow5_set(name)
        inputs = ["-r", str(folder / "reads.fastq"), "-b", str(folder / "reads.bam"), "-g", str(folder / "ref.fa")]
        arguments = [*inputs, "--slow5", str(folder / "signals.blow5"), "--hard-clips=no", "-t", "2", "-o", str(out)]
        command.main([*arguments, *options], standalone_mode=False)
        return out.read_bytes()

    return align


# R9.4 DNA


@pytest.mark.parametrize(
    ("options", "file"),
    [
        ([], "default.tsv.gz"),
        (["--print-read-names", "--scale-events", "--signal-index"], "names_scaled_index.tsv.gz"),
        (["--collapse-events"], "collapsed.tsv.gz"),
        (["--paf"], "out.paf"),
        (["--sam"], "out.sam"),
        (["-a", "--sam-out-version", "2"], "out.sam"),
        (["--sam", "--sam-out-version=1"], "out_v1.sam"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_all_bytes_equal_f5c(align_ecoli: Align, ecoli: Path, options: list[str], file: str):
    assert align_ecoli(*options) == expected_file(ecoli / "expected" / "eventalign" / file)


def test_m6anet_rows_equal_f5c_less_those_without_numbers(align_ecoli: Align, ecoli: Path):
    lines = expected_file(ecoli / "expected" / "eventalign" / "m6anet.tsv.gz").splitlines(keepends=True)
    with_numbers = [line for line in lines if b"-nan" not in line]
    assert len(with_numbers) < len(lines)
    assert align_ecoli("--m6anet") == b"".join(with_numbers)


def test_summary_equals_f5c_but_for_the_folder(align_ecoli: Align, ecoli: Path, tmp_path: Path):
    align_ecoli("--summary", str(tmp_path / "summary.tsv"))
    ours = [line.split("\t") for line in (tmp_path / "summary.tsv").read_text().splitlines()]
    theirs = [line.split("\t") for line in (ecoli / "expected" / "eventalign" / "summary.tsv").read_text().splitlines()]
    for row in ours[1:] + theirs[1:]:
        row[2] = Path(row[2]).name
    assert ours == theirs


_KINDS: list[tuple[list[str], str]] = [
    (["--samples"], "out.txt"),
    (["--collapse-events", "--signal-index"], "out.tsv.gz"),
    (["--paf"], "out.txt"),
    (["--sam"], "out.txt"),
    (["--sam", "--sam-out-version", "1"], "out.txt"),
    (["--sam"], "out.bam"),
    (["--m6anet"], "out.txt"),
]


@pytest.fixture(scope="module")
def aligned(align_ecoli: Align, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[bytes, bytes]]:
    """Return a function from a kind of output to it and to the summary, of a run with two threads and one batch."""

    @cache
    def align(*kind: str, output: str) -> tuple[bytes, bytes]:
        summary = tmp_path_factory.mktemp("whole") / "summary.tsv"
        return align_ecoli(*kind, "--summary", str(summary), output=output), summary.read_bytes()

    return align


# signals are read by processes or here before anything is known of the output
@pytest.mark.parametrize(
    ("options", "kind", "output"),
    [
        *((options, *one) for options in (["-t", "5", "-K", "2"], ["-t", "1", "-B", "10K"]) for one in _KINDS),
        (["-B", "10K", "--iop", "2"], *_KINDS[0]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_bytes_do_not_depend_on_threads_and_batches(
    align_ecoli: Align,
    aligned: Callable[..., tuple[bytes, bytes]],
    tmp_path: Path,
    kind: list[str],
    output: str,
    options: list[str],
):
    expected, whole = aligned(*kind, output=output)
    assert align_ecoli(*kind, "--summary", str(tmp_path / "parts.tsv"), *options, output=output) == expected
    assert len(expected) > 20_000
    assert (tmp_path / "parts.tsv").read_bytes() == whole
    assert whole.count(b"\n") == 1 + 9


def test_compressed_output(align_ecoli: Align, ecoli: Path):
    content = align_ecoli(output="out.tsv.gz")
    assert gzip.decompress(content) == expected_file(ecoli / "expected" / "eventalign" / "default.tsv.gz")


def test_bam_has_the_records_of_the_sam(align_ecoli: Align, ecoli: Path, tmp_path: Path):
    out = tmp_path / "out.bam"
    (tmp_path / "out.sam").write_bytes(align_ecoli("--sam"))
    (tmp_path / "out.bam").write_bytes(align_ecoli("--sam", output="out.bam"))
    with pysam.AlignmentFile(str(tmp_path / "out.sam")) as sam, pysam.AlignmentFile(str(out)) as bam:
        assert [record.to_string() for record in bam] == [record.to_string() for record in sam]
        program = bam.header.to_dict()["PG"][-1]
        assert program["PN"] == "f5py"
        assert program["CL"].startswith("f5py")
        assert program["DS"].startswith("chemistry R9.4 DNA (")


def test_hard_clipped_records_are_placed_right_by_default(align_ecoli: Align, indexed_ecoli: Path, ecoli: Path):
    """Their events fit the model then: the mean distance from the expected level is that of other records."""
    table = align_ecoli("--hard-clips=yes", bam="reads.bam")
    with pysam.AlignmentFile(str(ecoli / "reads.bam")) as file:
        clipped = {
            index
            for index, record in enumerate(file)
            if record.cigartuples and 5 in (record.cigartuples[0][0], record.cigartuples[-1][0])
        }
    assert len(clipped) == 3
    rows = pandas.read_csv(io.BytesIO(table), sep="\t", usecols=["read_index", "standardized_level"])
    rows = rows[np.isfinite(rows["standardized_level"])]
    mean = rows["standardized_level"].abs().groupby(rows["read_index"].isin(clipped)).mean()
    assert mean[True] < 1.1 * mean[False]


def test_region_keeps_the_k_mers_in_it_and_one_more(align_ecoli: Align, ecoli: Path, tmp_path: Path):
    """f5c takes the end of a region string as one more base; a BED window ends where it says."""
    with pysam.AlignmentFile(str(ecoli / "reads8.bam")) as file:
        record = next(record for record in file)
    start = record.reference_start + 1000
    bed = tmp_path / "windows.bed"
    bed.write_text(f"{record.reference_name}\t{start}\t{start + 500}\n")
    for window, last in ((f"{record.reference_name}:{start + 1}-{start + 500}", start + 500), (str(bed), start + 499)):
        rows = [row.split(b"\t") for row in align_ecoli("-w", window).splitlines()[1:]]
        positions = {int(row[1]) for row in rows}
        assert len(positions) > 400
        assert min(positions) >= start
        assert max(positions) <= last


# R9.4 RNA and R10.4.1 DNA


@pytest.mark.parametrize("options", [[], ["--rna"], ["--pore", "r9"]], ids=" ".join)
def test_rna_table_equals_f5c(align_slow5: Align, shared_data: Path, options: list[str]):
    table = align_slow5("rna002_sequin", *options)
    assert table.count(b"\n") == 48_559 + 1
    assert table == expected_file(shared_data / "rna002_sequin" / "expected" / "eventalign.tsv.gz")


@pytest.mark.parametrize(("option", "file"), [("--paf", "eventalign.paf"), ("--sam", "eventalign.sam")])
def test_rna_paf_and_sam_equal_f5c(align_slow5: Align, shared_data: Path, option: str, file: str):
    assert align_slow5("rna002_sequin", option) == expected_file(shared_data / "rna002_sequin" / "expected" / file)


@pytest.mark.parametrize("name", ["rna002_sequin", "r10_wga"])
def test_summary_of_slow5_reads_equals_f5c(align_slow5: Align, shared_data: Path, tmp_path: Path, name: str):
    align_slow5(name, "--summary", str(tmp_path / "summary.tsv"))
    assert (tmp_path / "summary.tsv").read_bytes() == expected_file(shared_data / name / "expected" / "summary.tsv")


def test_r10_equals_f5c(align_slow5: Align, shared_data: Path):
    """With the built-in model, found by the kit's name; all 27 reads."""
    expected = expected_file(shared_data / "r10_wga" / "expected" / "eventalign.paf")
    assert expected.count(b"\n") == 27
    assert align_slow5("r10_wga", "--paf") == expected


def test_r10_collapsed_table_equals_f5c(align_slow5: Align, shared_data: Path):
    expected = expected_file(shared_data / "r10_wga" / "expected" / "eventalign_collapsed_3reads.tsv.gz").splitlines()
    reads = {line.split(b"\t")[3] for line in expected[1:]}
    assert len(reads) == 3
    lines = align_slow5("r10_wga", "--collapse-events", "--print-read-names").splitlines()
    assert [lines[0], *(line for line in lines[1:] if line.split(b"\t")[3] in reads)] == expected


def test_parquet_has_the_rows_of_the_text(align_ecoli: Align):
    text = pandas.read_csv(io.BytesIO(align_ecoli()), sep="\t")
    content = align_ecoli("--output-format", "parquet", output="out.parquet")
    table = pyarrow.parquet.read_table(io.BytesIO(content)).to_pandas()
    assert list(table.columns) == list(text.columns)
    for column in text.columns:
        if text[column].dtype == "float64":
            np.testing.assert_array_equal(table[column], text[column].astype("float32"))
        else:
            assert table[column].astype(text[column].dtype).tolist() == text[column].tolist(), column
    assert len(content) < 0.12 * len(align_ecoli())
