"""``f5py extract``: a row per read, base and modification, as an independent reader of the tags has them."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

import numpy as np
import pandas as pd
import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import f5py

from ..examples import examples
from ..made_data import ReadSet, refused, run_command
from ..outputs.made_modbam import HEADER as HEADER_OF_TAGS
from ..outputs.made_modbam import made_record
from ..site_frequencies.test_modbam_counts import HEADER, tagged_record

COLUMNS = ["read", "contig", "position", "strand", "base", "code", "probability", "mapq", "haplotype"]
COMPLEMENT = dict(zip("ACGTN", "TGCAN", strict=True))


def plain_rows(path: Path) -> pd.DataFrame:
    """Read the calls of all aligned, primary records with pysam."""
    rows = []
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        for record in file.fetch(until_eof=True):
            if record.is_unmapped or record.is_secondary:
                continue
            aligned = dict(record.get_aligned_pairs(matches_only=True))
            haplotype = str(record.get_tag("HP")) if record.has_tag("HP") else "."
            for (base, reverse, code), calls in (record.modified_bases or {}).items():
                is_of_other_strand = bool(reverse) != record.is_reverse
                rows += [
                    (
                        record.query_name, record.reference_name, aligned[place], "-" if reverse else "+",
                        COMPLEMENT[base] if is_of_other_strand else base, str(code), (value + 0.5) / 256,
                        record.mapping_quality, haplotype,
                    )
                    for place, value in calls
                    if place in aligned
                ]  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    as_text = rows.astype({name: str for name in COLUMNS if name not in ("position", "probability", "mapq")})
    typed = as_text.astype({"position": "int64", "mapq": "int64", "probability": "float64"})
    return typed.sort_values([*COLUMNS]).reset_index(drop=True)


def of_text(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep="\t", dtype={"read": str, "contig": str, "code": str, "haplotype": str})


def assert_equal(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    assert list(found.columns) == COLUMNS
    pd.testing.assert_frame_equal(in_order(found), in_order(expected), atol=1e-6, rtol=0, check_dtype=False)


@settings(max_examples=examples(60), deadline=None)
@given(records=st.lists(tagged_record(), min_size=1, max_size=5))
def test_tags_of_any_caller(records: list[pysam.AlignedSegment], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("x")
    with pysam.AlignmentFile(str(folder / "x.bam"), "wb", header=HEADER) as out:
        for record in records:
            out.write(record)
    expected = plain_rows(folder / "x.bam")
    status = run_command("extract", folder / "x.bam", "-o", folder / "x.tsv")
    if status:  # none has any tag
        assert expected.empty
        return
    assert_equal(of_text(folder / "x.tsv"), expected)
    assert_equal(f5py.extract(folder / "x.bam", returns="pandas"), expected)


@pytest.mark.shared
def test_real_reads(shared_data: Path, tmp_path: Path) -> None:
    folder, tags = shared_data / "ecoli_r94", tmp_path / "tags.bam"
    given = ["-b", folder / "reads8.bam", "-g", folder / "ref.fa", "--pod5", folder / "formats" / "reads.pod5"]
    assert run_command("call-methylation", *given, "-t", 2, "-o", tmp_path / "calls.tsv", "--modbam", tags) == 0
    for ending in ("tsv", "parquet", "tsv.gz"):
        assert run_command("extract", tags, "-o", tmp_path / f"x.{ending}") == 0
    expected = plain_rows(tags)
    assert len(expected) > 3000
    assert_equal(of_text(tmp_path / "x.tsv"), expected)
    assert_equal(of_text(tmp_path / "x.tsv.gz"), expected)
    assert_equal(pd.read_parquet(tmp_path / "x.parquet"), expected)


@pytest.fixture(scope="module")
def outputs(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    names = ("-o", folder / "calls.tsv", "--modbam", folder / "tags.bam")
    assert run_command("call-methylation", *made.options(), *names) == 0
    pysam.index(str(folder / "tags.bam"))
    return folder


def test_a_table_of_calls(outputs: Path, tmp_path: Path) -> None:
    """Its groups are split, and its ratios are the probabilities of the tags."""
    assert run_command("extract", outputs / "calls.tsv", "-o", tmp_path / "x.tsv") == 0
    found = of_text(tmp_path / "x.tsv")
    calls = pd.read_csv(outputs / "calls.tsv", sep="\t")
    assert len(found) == calls["num_motifs"].sum()
    singles = calls[calls["num_motifs"] == 1]
    shown = found.set_index(["read", "position"])["probability"]
    for row in singles.itertuples():
        at = row.start + (row.strand == "-")
        assert shown[row.read_name, at] == pytest.approx(1 / (1 + math.exp(-row.log_lik_ratio)), abs=1e-6)
    assert set(found["mapq"]) == {255}
    assert set(found["haplotype"]) == {"."}
    tags = plain_rows(outputs / "tags.bam").set_index(["read", "position"])["probability"]
    both = tags.index.intersection(shown.index)
    assert len(both) > 0.9 * len(tags)
    assert np.abs(tags[both] - shown[both]).max() < 0.5 / 256 + 0.003  # ratios have two decimals


@pytest.mark.parametrize("name", ["tags.bam", "calls.tsv"])
def test_regions_and_reads(name: str, outputs: Path, made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert run_command("extract", outputs / name, "-o", tmp_path / "all.tsv") == 0
    rows = of_text(tmp_path / "all.tsv")
    contig = rows["contig"][0]
    (tmp_path / "windows.bed").write_text(f"{contig}\t100\t900\tone\n{contig}\t2000\t4000\n")
    (tmp_path / "reads.txt").write_text("\n".join(made.names[:5]) + "\n")
    in_windows = rows["position"].between(100, 899) | rows["position"].between(2000, 3999)
    of_reads = rows["read"].isin(made.names[:5])
    for options, wanted in (
        (("-w", tmp_path / "windows.bed"), in_windows),
        (("-w", f"{contig}:101-900", "-w", f"{contig}:2,001-4,000"), in_windows),
        (("--read-ids", tmp_path / "reads.txt"), of_reads),
        (("--read-ids", tmp_path / "reads.txt", "-w", tmp_path / "windows.bed"), in_windows & of_reads),
    ):
        assert run_command("extract", outputs / name, *options, "-o", tmp_path / "x.tsv") == 0
        assert_equal(of_text(tmp_path / "x.tsv"), rows[wanted])
        assert 0 < wanted.sum() < len(rows)
    (tmp_path / "none.txt").write_text("nobody\n")
    assert "none of its 1 names" in refused(capfd, "extract", outputs / name, "--read-ids", tmp_path / "none.txt")


def test_haplotypes_and_codes(tmp_path: Path) -> None:
    path = tmp_path / "x.bam"
    records = [
        made_record("ACGTC", "5M", name="a", MM="C+mh,0,0;A+a.,0;", ML=array("B", [1, 2, 3, 4, 250]), HP=2),
        made_record(
            "ACGTC", "5M", name="b", flag=16, quality=3, MM="G-m,0;C+76792?,0;", ML=array("B", [9, 8]), HP="maternal"
        ),
        made_record("ACGTC", "1S4M", start=7, name="c", MM="A+17596,0;C+m,0;", ML=array("B", [7, 5])),
    ]
    with pysam.AlignmentFile(str(path), "wb", header=HEADER_OF_TAGS) as out:
        for record in records:
            out.write(record)
    assert run_command("extract", path, "-o", tmp_path / "x.tsv") == 0
    found = of_text(tmp_path / "x.tsv")
    assert_equal(found, plain_rows(path))
    assert set(found["haplotype"]) == {"2", "maternal", "."}
    assert set(found["code"]) == {"m", "h", "a", "76792"}
