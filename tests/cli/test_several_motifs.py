"""Several motifs in one run, merged tags, and probabilities with a prior."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pysam
import pytest

import f5py

from ..made_data import ReadSet, last_of_each, refused, run_command

MOTIFS = ("gpc", "cpg", "dam")


@pytest.fixture(scope="module")
def tables(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("motifs")
    for name in (*MOTIFS, ",".join(MOTIFS)):
        outputs = ["-o", folder / f"{name}.tsv", "--modbam", folder / f"{name}.bam"]
        assert run_command("call-methylation", *made.options(), "-q", name, *outputs) == 0
    return folder


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep="\t")


def test_the_table_has_the_rows_of_each_motif_read_by_read(made: ReadSet, tables: Path):
    together = read(tables / f"{','.join(MOTIFS)}.tsv")
    assert list(together.columns)[-1] == "motif"
    parts = [read(tables / f"{name}.tsv").assign(motif=name) for name in MOTIFS]
    for part in parts:
        mine = together[together["motif"] == part["motif"][0]].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, part)
    order = {name: i for i, name in enumerate(dict.fromkeys(pd.concat(parts)["read_name"]))}
    reads = [name for name in made.names if name in order]
    place = together["read_name"].map({name: i for i, name in enumerate(reads)})
    assert place.is_monotonic_increasing
    assert (together["motif"].map(MOTIFS.index).groupby(together["read_name"]).diff().dropna() >= 0).all()


def test_batches_and_formats_do_not_matter(made: ReadSet, tables: Path, tmp_path: Path):
    name = ",".join(MOTIFS)
    whole = (tables / f"{name}.tsv").read_bytes()
    other = tmp_path / "other.tsv"
    assert (
        run_command("call-methylation", *last_of_each([*made.options(), "-q", name, "-K", "3", "-t", "1", "-o", other]))
        == 0
    )
    assert other.read_bytes() == whole
    parquet = tmp_path / "calls.parquet"
    assert run_command("call-methylation", *made.options(), "-q", name, "-o", parquet) == 0
    typed, text = pd.read_parquet(parquet), read(other)
    assert typed["motif"].astype(str).tolist() == text["motif"].tolist()
    np.testing.assert_allclose(typed["log_lik_ratio"], text["log_lik_ratio"], atol=0.0051)
    old = tmp_path / "old.tsv"
    assert run_command("call-methylation", *made.options(), "-q", name, "--meth-out-version", "1", "-o", old) == 0
    assert "strand" not in read(old)
    assert read(old)["motif"].tolist() == text["motif"].tolist()


def test_the_report_counts_all_calls(made: ReadSet, tables: Path, tmp_path: Path):
    report = tmp_path / "report.json"
    outputs = ["-o", tmp_path / "calls.tsv", "--report", report]
    assert run_command("call-methylation", *made.options(), "-q", ",".join(MOTIFS), *outputs) == 0
    run = json.loads(report.read_text())["run"]
    assert run["counts"]["results"] == len(read(tables / f"{','.join(MOTIFS)}.tsv"))
    assert run["distributions"]["contexts"] == {}
    assert sum(run["distributions"]["ratios"]["calls"]) == len(read(tmp_path / "calls.tsv"))


def test_other_commands_take_the_rows_of_their_motif(tables: Path, tmp_path: Path):
    together = tables / f"{','.join(MOTIFS)}.tsv"
    for name in MOTIFS:
        for options in ([], ["-s"], ["--bedmethyl"]):
            for source, out in ((together, "a"), (tables / f"{name}.tsv", "b")):
                assert run_command("meth-freq", "-i", source, "-q", name, *options, "-o", tmp_path / out) == 0
            assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        figures = [
            f5py.summary([path], methylation=name, output=tmp_path / "text")
            for path in (together, tables / f"{name}.tsv")
        ]
        assert figures[0] == figures[1]
    joined = tmp_path / "joined.tsv"
    joined.write_bytes(together.read_bytes() + together.read_bytes())
    assert run_command("meth-freq", "-i", joined, "-q", "dam", "-o", tmp_path / "a") == 0
    twice = [tables / "dam.tsv", tables / "dam.tsv"]
    assert run_command("meth-freq", *twice, "-q", "dam", "-o", tmp_path / "b") == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def records(path: Path) -> list[pysam.AlignedSegment]:
    with pysam.AlignmentFile(str(path)) as file:
        return list(file)


def calls_of(record: pysam.AlignedSegment) -> dict:
    return {key: dict(calls) for key, calls in (record.modified_bases or {}).items()}


@pytest.mark.parametrize("what", ["cut short", "no number"])
def test_a_damaged_row_is_named_with_its_line(
    tables: Path, tmp_path: Path, what: str, capfd: pytest.CaptureFixture[str]
):
    """Also of another motif's row if that cannot be told."""
    lines = (tables / f"{','.join(MOTIFS)}.tsv").read_text().splitlines()
    at = next(i for i in range(len(lines) - 1, 0, -1) if lines[i].endswith("\tcpg"))
    fields = lines[at].split("\t")
    lines[at] = "\t".join(fields[:-3]) if what == "cut short" else "\t".join([*fields[:5], "x", *fields[6:]])
    (tmp_path / "calls.tsv").write_text("\n".join(lines) + "\n")
    other = tables / f"{','.join(MOTIFS)}.tsv"
    for calls, line in ([tmp_path / "calls.tsv"], at + 1), ([other, tmp_path / "calls.tsv"], at + 1):
        assert f"calls.tsv, line {line}: " in refused(
            capfd, "meth-freq", *calls, "-q", "cpg", "-o", tmp_path / "freq.tsv"
        )


def test_one_modbam_has_all_motifs(tables: Path):
    together = records(tables / f"{','.join(MOTIFS)}.bam")
    alone = {name: records(tables / f"{name}.bam") for name in MOTIFS}
    n_both = 0
    for i, record in enumerate(together):
        gpc, cpg, dam = (calls_of(alone[name][i]) for name in MOTIFS)
        key = ("C", int(record.is_reverse), "m")
        both = {**cpg.get(key, {}), **gpc.get(key, {})}
        n_both += len(cpg.get(key, {}).keys() & gpc.get(key, {}).keys())
        assert calls_of(record) == ({key: both} if both else {}) | dam
    assert n_both > 10


def test_merged_tags_keep_other_modifications(made: ReadSet, tables: Path, tmp_path: Path):
    given = tables / "dam.bam"
    pysam.index(str(given))
    inputs = ["-r", made.reads, "-b", given, "-g", made.genome]
    merged = tmp_path / "merged.bam"
    assert run_command("call-methylation", *inputs, "-q", "cpg", "--merge-tags", "-o", merged) == 0
    n = 0
    for record, cpg, dam in zip(records(merged), records(tables / "cpg.bam"), records(given), strict=True):
        expected = calls_of(cpg) | calls_of(dam) if calls_of(cpg) else calls_of(dam)
        assert calls_of(record) == expected
        n += len(calls_of(record)) == 2
    assert n > 5
    again = tmp_path / "again.bam"
    inputs[3] = merged
    pysam.index(str(merged))
    assert run_command("call-methylation", *inputs, "-q", "cpg", "--merge-tags", "-o", again) == 0
    assert [calls_of(one) for one in records(again)] == [calls_of(one) for one in records(merged)]


def test_a_prior_shifts_the_probabilities(made: ReadSet, tables: Path, tmp_path: Path):
    shifted = tmp_path / "prior.bam"
    assert run_command("call-methylation", *made.options(), "--prior", "0.2", "-o", shifted) == 0
    plain = np.concatenate([one.get_tag("ML") for one in records(tables / "cpg.bam") if one.has_tag("ML")])
    found = np.concatenate([one.get_tag("ML") for one in records(shifted) if one.has_tag("ML")])
    odds = np.log((plain + 0.5) / (255.5 - plain)) + math.log(0.2 / 0.8)
    near = (plain > 10) & (plain < 245)
    np.testing.assert_allclose(found[near], 256 / (1 + np.exp(-odds[near])) - 0.5, atol=2)
    assert near.sum() > 50
