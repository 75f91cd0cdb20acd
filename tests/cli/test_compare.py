"""``f5py compare``: tables against pandas and scipy, methylation found without a model, and wrong use."""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy

import f5py
from f5py.core.motifs import reverse_complement
from f5py.errors import UsageError

from ..made_data import last_of_each, run_command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make reads of both strands of one reference, methylated and not, and their events."""
    place = tmp_path_factory.mktemp("compare")
    shape = {"n_reads": 40, "fixed_length": 700, "methylation": "per-read"}
    f5py.simulate(output=place / "b", genome_length=900, gc=0.5, seed=2, methylated_reads=0, **shape)
    f5py.simulate(output=place / "a", reference=place / "b" / "ref.fa", seed=3, methylated_reads=1, **shape)
    for name in "ab":
        data = {"bam": place / name / "reads.bam", "genome": place / "b" / "ref.fa", "fast5": place / name / "fast5"}
        for kind in ("tsv", "parquet"):
            f5py.eventalign(**data, output=place / f"{name}.{kind}")
        f5py.eventalign(**data, output=place / f"{name}.scaled.tsv", scale_events=True, print_read_names=True)
        pd.read_csv(place / f"{name}.tsv", sep="\t", nrows=3000).to_csv(
            place / f"{name}.few.tsv", sep="\t", index=False
        )
    return place


def compared(folder: Path, *inputs: str, **options) -> pd.DataFrame:
    return f5py.compare(*inputs, output=folder / "out.tsv", threads=2, **options).to_pandas()


def collapsed(path: Path) -> pd.DataFrame:
    """Compute a level and a dwell time of each read and position."""
    rows = pd.read_csv(path, sep="\t")
    rows = rows[rows["model_kmer"] != "NNNNNN"]
    rows["reverse"] = (rows["model_kmer"] != rows["reference_kmer"]).groupby(rows["read_index"]).transform("any")
    rows["weighted"] = rows["standardized_level"] * rows["event_length"]
    keys = ["read_index", "contig", "position", "reverse", "model_kmer"]
    sums = rows.groupby(keys, sort=False).agg(
        weighted=("weighted", "sum"), dwell=("event_length", "sum"), mean=("model_mean", "first"),
        stdv=("model_stdv", "first"),
    )  # fmt: skip
    return sums.assign(level=(sums["weighted"] / sums["dwell"]).round(6), dwell=sums["dwell"].round(7)).reset_index()


def test_table_is_what_pandas_and_scipy_make_of_the_events(folder: Path):
    found = compared(folder, folder / "a.tsv", folder / "b.tsv", min_coverage=8)
    a, b = (collapsed(folder / f"{name}.tsv") for name in "ab")
    keys = ["contig", "position", "reverse"]
    groups_a, groups_b = dict(list(a.groupby(keys))), dict(list(b.groupby(keys)))
    expected = [
        key for key in sorted(groups_a)
        if key in groups_b and min(len(groups_a[key]), len(groups_b[key])) >= 8
    ]  # fmt: skip
    assert len(found) == len(expected) > 500
    assert [
        (contig, position, strand == "-")
        for contig, position, strand in sorted(zip(found["contig"], found["position"], found["strand"], strict=True))
    ] == sorted(expected)
    for row in found.iloc[::17].itertuples():
        key = (row.contig, row.position, row.strand == "-")
        one, two = groups_a[key], groups_b[key]
        assert {row.kmer} == set(one["model_kmer"]) | set(two["model_kmer"])
        assert (row.c1_reads, row.c2_reads) == (len(one), len(two))
        both = pd.concat([one, two])
        for values, sample in ((one, "c1"), (two, "c2")):
            level = values["level"] * both["stdv"].mean() + both["mean"].mean()
            for name, figures in (("intensity", level), ("dwell", values["dwell"])):
                for fact, figure in (("mean", figures.mean()), ("median", figures.median()), ("sd", figures.std())):
                    assert getattr(row, f"{sample}_{fact}_{name}") == pytest.approx(figure, rel=1e-4)
        for name, column in (("intensity", "level"), ("dwell", "dwell")):
            ks = scipy.stats.ks_2samp(one[column], two[column], method="exact")
            assert getattr(row, f"KS_{name}_statistic") == pytest.approx(ks.statistic, rel=1e-4)
            assert getattr(row, f"KS_{name}_pvalue") == pytest.approx(ks.pvalue, rel=1e-4)
            mw = scipy.stats.mannwhitneyu(one[column], two[column], method="asymptotic")
            assert getattr(row, f"MW_{name}_statistic") == pytest.approx(mw.statistic, rel=1e-4)
            assert getattr(row, f"MW_{name}_pvalue") == pytest.approx(min(mw.pvalue, 1), rel=1e-3)
    for test in ("KS", "MW"):
        for name in ("intensity", "dwell"):
            q = scipy.stats.false_discovery_control(np.minimum(found[f"{test}_{name}_pvalue"], 1))
            np.testing.assert_allclose(found[f"{test}_{name}_qvalue"], q, rtol=1e-3)


def test_methylated_positions_stand_out(folder: Path):
    found = compared(folder, folder / "a.tsv", folder / "b.tsv")
    near = found["kmer"].str.contains("CG")
    significant = found["KS_intensity_qvalue"] < 0.01
    assert significant[near].mean() > 0.15
    assert significant[~near & ~found["kmer"].str.endswith("C")].mean() < 0.02
    assert set(found["strand"]) == {"+", "-"}
    same = compared(folder, folder / "a.tsv", folder / "a.tsv")
    assert (same["KS_intensity_pvalue"] == 1).all()


def test_kinds_of_input_and_output(folder: Path, tmp_path: Path):
    options = ["-t", "2", "--min-coverage", "8"]
    tables = {}
    for kind in ("tsv", "parquet"):
        tables[kind] = tmp_path / f"of_{kind}.tsv"
        inputs = [folder / f"{name}.{kind}" for name in "ab"]
        assert run_command("compare", *inputs, *options, "-o", tables[kind]) == 0
    text = pd.read_csv(tables["tsv"], sep="\t")
    of_parquet = pd.read_csv(tables["parquet"], sep="\t")
    assert list(text.columns) == list(of_parquet.columns)
    # Parquet and text round the same figures; ties may break otherwise
    np.testing.assert_allclose(of_parquet["c1_mean_intensity"], text["c1_mean_intensity"], rtol=1e-4)
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress((folder / "a.tsv").read_bytes()))
    out = tmp_path / "out.parquet"
    assert (
        run_command("compare", tmp_path / "a.tsv.gz", folder / "b.tsv", *last_of_each([*options, "-t", "1"]), "-o", out)
        == 0
    )
    pd.testing.assert_frame_equal(pd.read_parquet(out), text, check_dtype=False)
    packed = tmp_path / "out.tsv.gz"
    assert run_command("compare", folder / "a.tsv", folder / "b.tsv", *options, "-o", packed) == 0
    assert gzip.decompress(packed.read_bytes()) == tables["tsv"].read_bytes()

    of_reads = compared(
        folder, folder / "a" / "reads.bam", folder / "b" / "reads.bam", genome=folder / "b" / "ref.fa", min_coverage=8,
        fast5=[folder / "a" / "fast5", folder / "b" / "fast5"],
    )  # fmt: skip
    scaled = compared(folder, folder / "a.scaled.tsv", folder / "b.scaled.tsv", min_coverage=8)
    assert of_reads["kmer"].tolist() == scaled["kmer"].tolist()
    np.testing.assert_allclose(of_reads["c1_mean_intensity"], scaled["c1_mean_intensity"], rtol=1e-3)
    np.testing.assert_allclose(of_reads["c1_mean_intensity"].mean(), 90, atol=10)


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
@pytest.mark.parametrize("kind", ["tsv", "parquet"])
def test_rows_with_lengths_that_are_none_are_left_out(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], value: str, kind: str
):
    """They made the test of two samples run for ever."""
    n = 300
    rows = pd.read_csv(folder / "a.few.tsv", sep="\t")
    rows.loc[5 : 4 + n, "event_length"] = float(value)
    sound = rows.drop(index=range(5, 5 + n))
    changed, fewer = tmp_path / f"changed.{kind}", tmp_path / "fewer.tsv"
    if kind == "tsv":
        rows.to_csv(changed, sep="\t", index=False, na_rep="nan")
    else:
        rows.to_parquet(changed, index=False)
    sound.to_csv(fewer, sep="\t", index=False)
    n_rows = int((rows["model_kmer"] != "NNNNNN").sum())
    n_left_out = int((rows["model_kmer"].iloc[5 : 5 + n] != "NNNNNN").sum())
    for by in ("position", "kmer"):
        found, expected = (
            compared(folder, path, folder / "b.few.tsv", min_coverage=1, by=by, strict=path == fewer)
            for path in (changed, fewer)
        )
        assert len(found) > 100
        pd.testing.assert_frame_equal(found, expected)
    given = ["compare", changed, folder / "b.few.tsv", "--min-coverage", 1, "-o", tmp_path / "o.tsv"]
    assert run_command(*given) == 0
    told = capfd.readouterr().err
    assert f"{n_left_out} of {n_rows:,} rows are left out" in told
    assert "RuntimeWarning" not in told
    assert run_command(*given, "--strict") == 1


def test_limits_are_those_of_eventalign(folder: Path, tmp_path: Path):
    limit = {"max_events_per_base": 1.9}
    given = {"genome": folder / "b" / "ref.fa", "fast5": folder / "a" / "fast5"}
    events = tmp_path / "limited.tsv"
    bam = folder / "a" / "reads.bam"
    f5py.eventalign(bam=bam, output=events, scale_events=True, print_read_names=True, **given, **limit)
    of_reads = compared(folder, bam, bam, min_coverage=1, **given, **limit)
    of_table = compared(folder, events, events, min_coverage=1)
    assert of_reads["c1_reads"].tolist() == of_table["c1_reads"].tolist()
    assert of_reads["c1_reads"].sum() < compared(folder, bam, bam, min_coverage=1, **given)["c1_reads"].sum()
    with pytest.raises(UsageError, match="--max-events-per-base: is for alignments"):
        compared(folder, events, events, **limit)


def test_by_kmer(folder: Path):
    found = compared(folder, folder / "a.tsv", folder / "b.tsv", by="kmer", min_coverage=30)
    assert found["kmer"].is_monotonic_increasing
    assert found["kmer"].is_unique
    a, b = (collapsed(folder / f"{name}.tsv").groupby("model_kmer")["level"] for name in "ab")
    counts = pd.DataFrame({"a": a.size(), "b": b.size()}).dropna().astype(int)
    counts = counts[counts.min(axis=1) >= 30]
    assert found["kmer"].tolist() == counts.index.tolist()
    assert found["c1_reads"].tolist() == counts["a"].tolist()
    for row in found.iloc[::25].itertuples():
        mw = scipy.stats.mannwhitneyu(a.get_group(row.kmer), b.get_group(row.kmer), method="asymptotic")
        assert row.MW_intensity_pvalue == pytest.approx(mw.pvalue, rel=1e-3)
    kmers = set(compared(folder, folder / "a.tsv", folder / "b.tsv", min_coverage=8)["kmer"])
    assert {reverse_complement(kmer) for kmer in kmers} & kmers


@pytest.mark.parametrize("by", ["position", "kmer"])
def test_picture_marks_the_most_different_places(folder: Path, tmp_path: Path, by: str):
    reports = [tmp_path / f"x.{kind}" for kind in ("json", "html", "svg", "png")]
    found = compared(folder, folder / "a.tsv", folder / "b.tsv", min_coverage=8, by=by, report=reports)
    data = json.loads(reports[0].read_text())
    assert data["compared"] == len(found)
    assert data["significant"] == (found["KS_intensity_qvalue"] < 0.01).sum() > 10
    ordered = found.sort_values(["KS_intensity_pvalue", "KS_intensity_statistic"], ascending=[True, False])
    if by == "position":
        kept: list = []
        for row in ordered.itertuples():
            if all((row.strand != one.strand) | (abs(row.position - one.position) >= 6) for one in kept):
                kept.append(row)
        expected = [f"{row.contig}:{row.position + 1:,} {row.strand} {row.kmer}" for row in kept[:10]]
    else:
        expected = ordered["kmer"].tolist()[:10]
    assert [one["name"] for one in data["top"]] == expected
    page = reports[1].read_text()
    for name, one in zip(expected, data["top"], strict=True):
        assert f"<title>{name}, q {one['KS_intensity_qvalue']:.2g}</title>" in page
    assert page.count('<circle class="mark"') == 10
    n_points = [len(re.findall(f'<circle class="s{i}"', page)) for i in (0, 1)]
    assert 10 < n_points[1] <= data["significant"]
    assert n_points[0] <= len(found) - data["significant"]
    assert ET.parse(reports[2]).getroot().tag.endswith("svg")
    assert reports[3].read_bytes().startswith(b"\x89PNG")
    again = tmp_path / "again.svg"
    compared(folder, folder / "a.tsv", folder / "b.tsv", min_coverage=8, by=by, report=again)
    assert again.read_bytes() == reports[2].read_bytes()


def test_picture_of_samples_that_do_not_differ(folder: Path, tmp_path: Path):
    reports = [tmp_path / f"x.{kind}" for kind in ("json", "html", "png")]
    compared(folder, folder / "a.few.tsv", folder / "a.few.tsv", min_coverage=1, report=reports)
    assert json.loads(reports[0].read_text())["significant"] == 0
    assert '<circle class="s1"' not in reports[1].read_text()
