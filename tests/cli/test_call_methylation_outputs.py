"""Outputs of ``f5py call-methylation`` beside its table: modBAM, bedMethyl, Parquet, single sites and the report."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pysam
import pytest

from f5py.errors import OutputFileError
from f5py.outputs.sites import bedmethyl

from ..made_data import N_READS, ReadSet, error_line, last_of_each, refused, rows_by_read, run_command, run_main

Call = Callable[..., tuple[bytes, str]]


@pytest.fixture
def call(made: ReadSet, tmp_path: Path, capfd) -> Call:
    """Run on the made set, or another, and return the table and the messages."""

    def run(*options: object, reads: ReadSet = made) -> tuple[bytes, str]:
        out = tmp_path / "calls.tsv"
        capfd.readouterr()
        assert run_main(*last_of_each([*reads.options(), "-o", out, *options])) == 0
        return out.read_bytes(), capfd.readouterr().err

    return run


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode()), delimiter="\t"))


def bed(path: Path) -> list[list[str]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    rows = [line.split("\t") for line in text.splitlines()]
    assert all(len(row) == 18 for row in rows)
    return rows


# modBAM


def varied(made: ReadSet, folder: Path) -> ReadSet:
    """Write records that are left out for every reason, in between, at the begin and at the end."""
    _, records = made.records()
    records[0].mapping_quality = 3
    records[4].is_secondary = True
    records[5].is_unmapped = True
    records[9].is_supplementary = True
    records[-1].mapping_quality = 3
    return made.with_records(folder, records)


@pytest.mark.parametrize("options", [[], ["-K", 3], ["--iop", 2, "-K", 5]], ids=str)
def test_modbam_has_all_records_in_order(made: ReadSet, made_calls: bytes, tmp_path: Path, call: Call, options: list):
    reads, out = varied(made, tmp_path), tmp_path / "mod.bam"
    rows, _ = call("--modbam", out, *options, reads=reads)
    expected = rows_by_read(made_calls)
    called = [name for i, name in enumerate(made.names) if i not in (0, 4, 5, N_READS - 1)]
    assert rows_by_read(rows) == {name: expected[name] for name in called if name in expected}
    subprocess.run(["samtools", "quickcheck", str(out)], check=True)
    with pysam.AlignmentFile(str(out)) as file, pysam.AlignmentFile(str(reads.bam)) as before:
        *programs, program = file.header.to_dict()["PG"]
        assert program["PN"] == "f5py"
        assert program["PP"] == programs[-1]["ID"] != program["ID"]
        assert program["DS"].startswith("chemistry R9.4 DNA (")
        assert "cpg model r9.4_450bps.cpg.6mer; " in program["DS"]
        assert file.header.references == before.header.references
        for record, original in zip(file, before, strict=True):
            tags = {name: record.get_tag(name) for name in ("MM", "ML", "MN") if record.has_tag(name)}
            assert (set(tags) == {"MM", "ML", "MN"}) == (record.query_name in rows_by_read(rows))
            if tags:
                assert tags["MN"] == len(record.query_sequence or "")
                assert tags["MM"].startswith("C+m?,")
            for name in tags:
                record.set_tag(name, None)
            assert record.to_string() == original.to_string()


def test_modbam_lists_the_calls_of_the_table(made: ReadSet, made_calls: bytes, tmp_path: Path, call: Call):
    """Each listed base is a site of a row, with the row's probability."""
    out = tmp_path / "mod.bam"
    assert call("--modbam", out)[0] == made_calls
    rows: dict[str, list[dict[str, str]]] = {}
    for row in table(made_calls):
        rows.setdefault(row["read_name"], []).append(row)
    n_listed = 0
    with pysam.AlignmentFile(str(out)) as file:
        for record in file:
            place = dict(record.get_aligned_pairs(matches_only=True))
            for (base, _, code), calls in (record.modified_bases or {}).items():
                assert (base, code) == ("C", "m")
                for at, quality in calls:
                    site = place[at] - record.is_reverse
                    (row,) = [r for r in rows[record.query_name] if int(r["start"]) <= site <= int(r["end"])]
                    probability = 1 / (1 + np.exp(-float(row["log_lik_ratio"])))
                    assert abs(quality - 256 * probability) <= 1.5
                    n_listed += 1
    n_sites = sum(int(row["num_motifs"]) for row in table(made_calls))
    assert 0.9 * n_sites < n_listed <= n_sites  # a base that is not aligned, or is another one, is not listed


def test_modbam_of_a_region(made: ReadSet, tmp_path: Path, call: Call):
    """The records that overlap it, with calls inside of it only."""
    out = tmp_path / "mod.bam"
    rows, _ = call("--modbam", out, "-w", "simulated:4001-6000")
    assert rows.count(b"\n") > 10
    with pysam.AlignmentFile(str(made.bam)) as file:
        expected = [record.query_name for record in file.fetch("simulated", 4000, 6000)]
    with pysam.AlignmentFile(str(out)) as file:
        records = list(file)
    assert [record.query_name for record in records] == expected
    assert 0 < len(expected) < N_READS
    tagged = set()
    for record in records:
        place = dict(record.get_aligned_pairs(matches_only=True))
        for calls in (record.modified_bases or {}).values():
            tagged.add(record.query_name)
            assert all(4000 <= place[at] < 6001 for at, _ in calls)
    assert tagged == set(rows_by_read(rows))


def test_modbam_in_reference_style(made: ReadSet, tmp_path: Path, call: Call):
    out = tmp_path / "mod.bam"
    call("--modbam", out, "--modbam-style", "reference")
    with pysam.AlignmentFile(str(out)) as file, pysam.FastaFile(str(made.genome)) as genome:
        records = list(file)
        for record in records:
            bases = genome.fetch("simulated", record.reference_start, record.reference_end).upper()
            assert record.cigarstring == f"{len(bases)}M"
            assert record.query_sequence == bases


# bedMethyl


@pytest.mark.parametrize(
    "options", [[], ["--combine-strands", "--threshold-per-site"], ["--call-threshold", 1.25]], ids=str
)
def test_bedmethyl_equals_that_of_the_table(made_calls: bytes, tmp_path: Path, call: Call, options: list):
    out, later = tmp_path / "calls.bed", tmp_path / "later.bed"
    rows, _ = call("--bedmethyl", out, *options, "-K", 3)
    assert rows == made_calls
    assert run_command("meth-freq", "--bedmethyl", "-i", tmp_path / "calls.tsv", "-o", later, *options) == 0
    assert out.read_bytes() == later.read_bytes()
    assert len(bed(out)) > 100


@pytest.mark.parametrize("folder", ["plain", "a##idx##b"])  # htslib takes the latter for two names
def test_bedmethyl_with_an_index(tmp_path: Path, call: Call, folder: str):
    plain, packed = tmp_path / "calls.bed", tmp_path / folder / "calls.bed.gz"
    packed.parent.mkdir()
    call("--bedmethyl", plain)
    call("--bedmethyl", packed)
    packed = packed.parent.rename(tmp_path / "other") / packed.name
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    with pysam.TabixFile(str(packed)) as file:
        found = [row.split("\t") for row in file.fetch("simulated", 3000, 5000)]
    inside = [row for row in bed(plain) if 3000 <= int(row[1]) < 5000]
    assert found == inside
    assert 0 < len(inside) < len(bed(plain))


def test_bedmethyl_of_a_region(tmp_path: Path, call: Call):
    out, later = tmp_path / "calls.bed", tmp_path / "later.bed"
    call("--bedmethyl", out, "-w", "simulated:3001-5000")
    assert run_command("meth-freq", "--bedmethyl", "-i", tmp_path / "calls.tsv", "-o", later) == 0
    assert out.read_bytes() == later.read_bytes()
    assert len(bed(out)) > 20


def test_partitions_sum_up_to_the_whole(made: ReadSet, made_calls: bytes, tmp_path: Path, call: Call):
    _, records = made.records()
    for i, record in enumerate(records):
        record.set_tag("HP", [None, 1, 2][i % 3])
    tagged, out = made.with_records(tmp_path, records), tmp_path / "calls.bed.gz"
    rows, _ = call("--bedmethyl", out, "--partition-tag", "HP", "-K", 4, reads=tagged)
    assert rows == made_calls
    names = sorted(path.name for path in tmp_path.glob("calls*.bed.gz*"))
    assert names == [f"calls.{part}.bed.gz{index}" for part in ("1", "2", "ungrouped") for index in ("", ".tbi")]
    whole = tmp_path / "whole.bed"
    call("--bedmethyl", whole, reads=tagged)
    sums: dict[tuple, np.ndarray] = {}
    for path in sorted(tmp_path.glob("calls.*.bed.gz")):
        for row in bed(path):
            key = (row[0], row[1], row[5])
            sums[key] = sums.get(key, 0) + np.array([int(row[i]) for i in (9, 11, 12)])
    assert {key: tuple(value) for key, value in sums.items()} == {
        (row[0], row[1], row[5]): tuple(int(row[i]) for i in (9, 11, 12)) for row in bed(whole)
    }
    by_read = {record.query_name for record in records[1::3]}
    only = [row for row in table(made_calls) if row["read_name"] in by_read]
    certain = sum(int(row["num_motifs"]) for row in only if abs(float(row["log_lik_ratio"])) >= 2.5)
    assert sum(int(row[9]) for row in bed(tmp_path / "calls.1.bed.gz")) == certain


# Parquet


# Other motifs


@pytest.mark.parametrize("motif", ["gpc", "dam", "dcm"])
def test_other_motifs_in_all_outputs(tmp_path: Path, call: Call, motif: str):
    code = {"gpc": "C+m?", "dam": "A+a?", "dcm": "C+m?"}[motif]
    rows, _ = call("-q", motif, "--modbam", tmp_path / "mod.bam", "--bedmethyl", tmp_path / "calls.bed")
    assert rows.count(b"\n") > 10
    with pysam.AlignmentFile(str(tmp_path / "mod.bam")) as file:
        tags = [record.get_tag("MM") for record in file if record.has_tag("MM")]
    assert tags
    assert all(tag.startswith(code) for tag in tags)
    later = tmp_path / "later.bed"
    assert run_command("meth-freq", "--bedmethyl", "-q", motif, "-i", tmp_path / "calls.tsv", "-o", later) == 0
    assert (tmp_path / "calls.bed").read_bytes() == later.read_bytes()
    assert {row[3] for row in bed(later)} == {code[2]}


# The report


def test_report_has_the_counts_that_were_printed(made: ReadSet, tmp_path: Path, call: Call):
    _, records = made.records()
    records[1].mapping_quality = 0
    records[2].is_secondary = True
    records[3].query_name = "unknown"
    path = tmp_path / "run_mqc.json"
    rows, told = call("--report", path, "-q", "cpg", reads=made.with_records(tmp_path, records))
    report = json.loads(path.read_text())
    assert {"id", "section_name", "description", "plot_type", "pconfig", "data"} <= set(report)
    assert report["plot_type"] == "table"
    counts = report["run"]["counts"]
    assert (
        f"skipped unmapped: {counts['skipped_unmapped']}, skipped secondary: {counts['skipped_secondary']}, "
        f"skipped low_mapq: {counts['skipped_low_mapq']}\n"
    ) in told
    assert (
        f"total entries: {counts['total_entries']}, qc fail: {counts['qc_fail']}, could not calibrate: "
        f"{counts['could_not_calibrate']}, no alignment: {counts['no_alignment']}, bad reads: {counts['bad_reads']}\n"
    ) in told
    assert (counts["total_entries"], counts["bad_reads"], counts["passed"]) == (N_READS - 2, 1, N_READS - 3)
    assert counts["skipped_low_mapq"] == counts["skipped_secondary"] == 1
    assert counts["results"] == rows.count(b"\n") - 1
    ((sample, shown),) = report["data"].items()
    assert sample.endswith("_calls")  # the output's folder and name
    assert shown == pytest.approx({**counts, **report["run"]["rates"]}, abs=1e-6)
    assert all(isinstance(value, int | float) for value in shown.values())
    assert report["run"]["command"] == "call-methylation"
    assert report["run"]["parameters"]["bam"].endswith("changed.bam")
    assert {"f5py", "python", "numba"} <= set(report["run"]["versions"])
    assert {"loading", "processing", "output", "hmm"} <= set(report["run"]["seconds"])


def test_report_of_eventalign(made: ReadSet, tmp_path: Path, capfd):
    path, out = tmp_path / "report.json", tmp_path / "rows.tsv"
    assert run_command("eventalign", *made.options(), "-o", out, "--report", path) == 0
    report = json.loads(path.read_text())
    assert report["run"]["command"] == "eventalign"
    assert report["run"]["counts"]["results"] == out.read_bytes().count(b"\n") - 1
    assert report["run"]["counts"]["passed"] == N_READS


# What cannot be


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
@pytest.mark.parametrize("subcommand", ["call-methylation", "eventalign"])
def test_full_disk_and_parquet(made: ReadSet, capfd, subcommand: str):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    assert "/dev/full: cannot write: No space left on device" in refused(
        capfd, subcommand, *made.options(), "-o", "/dev/full", "--output-format", "parquet"
    )


@pytest.mark.parametrize("format_", ["tsv", "parquet"])
def test_no_file_is_named_if_another_fails_at_the_end(
    made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd, format_: str
):
    if format_ == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")

    def fail(path: str, *_: object) -> None:
        raise OutputFileError(f"{path}: its index cannot be written")

    monkeypatch.setattr(bedmethyl, "_index", fail)
    table, tagged, bed = tmp_path / f"calls.{format_}", tmp_path / "tagged.bam", tmp_path / "calls.bed.gz"
    options = ["-o", table, "--output-format", format_, "--modbam", tagged, "--bedmethyl", bed]
    assert run_main(*made.options(), *options) == 1
    assert "its index cannot be written" in error_line(capfd.readouterr().err)
    assert not any(path.exists() for path in (table, tagged, bed))
