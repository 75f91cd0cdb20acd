"""``f5py regions``: sums of sites by region and sample, as pandas makes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import f5py

from ..made_data import ReadSet, run_command

COLUMNS = [
    "chromosome", "start", "end", "name", "sample", "sites", "calls", "mean", "weighted_mean", "standard_deviation",
]  # fmt: skip
REGIONS = [
    (0, 900, "first"),
    (500, 4000, "wide region"),
    (3000, 3001, ""),
    (11_990, 12_500, "last"),
    (0, 12_000, "all"),
]


@pytest.fixture(scope="module")
def samples(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the same calls in all forms, and some of them as a second sample."""
    folder = tmp_path_factory.mktemp("samples")
    outputs = ("-o", folder / "calls.tsv", "--bedmethyl", folder / "sites.bed", "--modbam", folder / "tags.bam")
    assert run_command("call-methylation", *made.options(), *outputs) == 0
    assert run_command("meth-freq", "-s", folder / "calls.tsv", "-o", folder / "freq.tsv") == 0
    assert run_command("meth-freq", "-s", folder / "calls.tsv", "-o", folder / "freq.parquet") == 0
    lines = (folder / "calls.tsv").read_text().splitlines(keepends=True)
    (folder / "half.tsv").write_text("".join(lines[: len(lines) // 2]))
    assert run_command("meth-freq", "-s", folder / "half.tsv", "-o", folder / "half.freq.tsv") == 0
    contig = made.records()[1][0].reference_name
    rows = [f"{contig}\t{start}\t{end}" + f"\t{name}\t0\t+" * bool(name) for start, end, name in REGIONS]
    (folder / "regions.bed").write_text("#chrom\n" + "\n".join([*rows, "elsewhere\t0\t10\tnone"]) + "\n")
    return folder


def by_pandas(regions: Path, tables: dict[str, Path], least: int = 1) -> pd.DataFrame:
    """Sum tables of frequencies in the simplest way."""
    rows = []
    for line in regions.read_text().splitlines()[1:]:
        chromosome, start, end, *name = line.split("\t")[:4]
        for sample, path in tables.items():
            table = pd.read_csv(path, sep="\t")
            inside = table[
                (table["chromosome"] == chromosome) & (table["start"] >= int(start)) & (table["start"] < int(end))
                & (table["called_sites"] >= least)
            ]  # fmt: skip
            frequency = inside["called_sites_methylated"] / inside["called_sites"]
            calls = inside["called_sites"].sum()
            weighted = inside["called_sites_methylated"].sum() / calls if calls else np.nan
            values = len(inside), calls, frequency.mean(), weighted, frequency.std()
            rows.append((chromosome, int(start), int(end), name[0] if name else ".", sample, *values))
    return pd.DataFrame(rows, columns=COLUMNS)


def assert_equal(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    texts = {name: str for name in ("chromosome", "name", "sample")}
    pd.testing.assert_frame_equal(found.astype(texts), expected.astype(texts), rtol=1e-12, check_dtype=False)


def test_sums_are_those_of_pandas(samples: Path, tmp_path: Path) -> None:
    regions, tables = samples / "regions.bed", {"freq": samples / "freq.tsv", "half.freq": samples / "half.freq.tsv"}
    for ending in ("tsv", "tsv.gz", "csv", "parquet"):
        out = tmp_path / f"x.{ending}"
        assert run_command("regions", regions, *tables.values(), "-o", out) == 0
        found = pd.read_parquet(out) if ending == "parquet" else pd.read_csv(out, sep=None, engine="python")
        expected = by_pandas(regions, tables)
        assert_equal(found, expected)
        assert expected["sites"].max() > 100
        assert expected["standard_deviation"].isna().any()
    assert run_command("regions", regions, *tables.values(), "--min-coverage", 3, "-o", tmp_path / "x.tsv") == 0
    assert_equal(pd.read_csv(tmp_path / "x.tsv", sep="\t"), by_pandas(regions, tables, 3))


def test_the_form_of_the_input_does_not_matter(samples: Path, tmp_path: Path) -> None:
    """Frequencies, bedMethyl and calls have the same counts; those of tags are nearly the same."""
    names = ("freq.tsv", "freq.parquet", "sites.bed", "calls.tsv", "tags.bam")
    labels = [word for name in names for word in ("--sample", name)]
    paths = [samples / name for name in names]
    assert run_command("regions", samples / "regions.bed", *paths, *labels, "-o", tmp_path / "x.tsv") == 0
    found = pd.read_csv(tmp_path / "x.tsv", sep="\t")
    assert list(found["sample"][:5]) == list(names)
    by_sample = {name: rows.drop(columns="sample").reset_index(drop=True) for name, rows in found.groupby("sample")}
    for name in names[1:4]:
        pd.testing.assert_frame_equal(by_sample[name], by_sample["freq.tsv"])
    tags, calls = (by_sample[name].iloc[4] for name in ("tags.bam", "calls.tsv"))
    assert tags["calls"] == pytest.approx(calls["calls"], rel=0.05)
    assert tags["weighted_mean"] == pytest.approx(calls["weighted_mean"], abs=0.02)
    frame = f5py.regions(samples / "regions.bed", samples / "freq.tsv", returns="pandas")
    assert_equal(frame, by_pandas(samples / "regions.bed", {"freq": samples / "freq.tsv"}))
