"""``f5py summary``: figures against pandas, reports, and wrong input."""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree as ET
from array import array
from pathlib import Path

import numpy as np
import pandas as pd
import pysam
import pytest

import f5py
from f5py.core.motifs import reverse_complement

from ..evaluation.made_calls import made_calls, written
from ..made_data import ReadSet, process_of, refused, run_command, run_process


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, str]:
    calls, _ = made_calls(400)
    return calls, written(calls, tmp_path_factory.mktemp("summary") / "calls.tsv")


def summary(tables, tmp_path: Path, **options):
    return f5py.summary(tables, output=tmp_path / "summary.txt", **options)


def test_errors_by_ratios_are_those_of_calibrated_ratios(table, tmp_path):
    calls, path = table
    surer = calls.assign(log_lik_ratio=2 * calls["log_lik_ratio"])
    expected = summary(written(surer, tmp_path / "surer.tsv"), tmp_path)
    data = summary(path, tmp_path, calibration=2)
    assert data["calibration"] == 2
    assert data["methylated_share_by_ratios"] == pytest.approx(expected["methylated_share_by_ratios"], abs=1e-3)
    errors = [[one["errors"]["by_ratios"] for one in found["thresholds"]] for found in (data, expected)]
    assert errors[0][0] == pytest.approx(errors[1][0], abs=1e-3)  # a threshold of 0 keeps all
    assert data["calls_beyond"] == summary(path, tmp_path)["calls_beyond"]


def test_figures_are_those_of_pandas(table, tmp_path):
    calls, path = table
    data = summary(path, tmp_path, threshold=3)
    ratio = calls["log_lik_ratio"]
    beyond = ratio.abs() >= 3
    assert data["calls"] == len(calls)
    assert data["sites"] == calls["num_motifs"].sum()
    assert data["reads"] == calls["read_name"].nunique()
    assert data["calls_beyond"] == beyond.sum()
    assert data["methylated"] == pytest.approx((ratio[beyond] > 0).mean())
    for one in data["thresholds"]:
        kept = ratio[ratio.abs() >= one["threshold"]]
        assert (one["calls"], one["share_of_calls"]) == (len(kept), pytest.approx(len(kept) / len(ratio)))
        assert one["methylated"] == pytest.approx((kept > 0).mean())
    assert data["ratios"]["calls"] == np.histogram(ratio.clip(-20, 19.99), np.arange(-20, 21))[0].tolist()
    groups = calls.assign(beyond=beyond, methylated=beyond & (ratio > 0)).groupby("num_motifs")
    for size, one in groups:
        found = data["groups"][size - 1]
        assert (found["calls"], found["beyond"]) == (len(one), one["beyond"].sum())
        assert found["methylated"] == one["methylated"].sum()
    reads = calls[beyond].assign(m=ratio > 0).groupby("read_name")["m"].agg(["size", "mean"]).query("size >= 5")
    assert data["read_methylation"]["reads"] == len(reads)
    expected = np.bincount(np.minimum((reads["mean"] * 20 + 1e-9).astype(int), 19), minlength=20)
    assert data["read_methylation"]["count"] == expected.tolist()


def test_contexts_are_those_along_the_read(table, tmp_path):
    calls, path = table
    single = calls[calls["num_motifs"] == 1]
    context = [
        reverse_complement(sequence[4:8]) if strand == "-" else sequence[4:8]
        for sequence, strand in zip(single["sequence"], single["strand"], strict=True)
    ]
    expected = single.assign(context=context).groupby("context")["log_lik_ratio"].agg(["size", "mean"])
    found = summary(path, tmp_path)["contexts"]
    assert list(found) == list(expected.index)
    assert all(name[1:3] == "CG" for name in found)
    for name, row in expected.iterrows():
        assert found[name]["calls"] == row["size"]
        assert found[name]["mean_ratio"] == pytest.approx(row["mean"], abs=0.0006)


def test_all_kinds_of_tables_say_the_same(table, tmp_path):
    calls, path = table
    data = summary(path, tmp_path)
    half = len(calls) // 2
    parts = [written(calls[:half], tmp_path / "a.tsv"), written(calls[half:], tmp_path / "b.tsv")]
    assert summary(parts, tmp_path) == data
    joined = tmp_path / "joined.tsv.gz"
    joined.write_bytes(gzip.compress(Path(parts[0]).read_bytes() + Path(parts[1]).read_bytes()))
    assert summary([joined], tmp_path) == data
    calls.to_parquet(tmp_path / "calls.parquet", index=False)
    assert summary([tmp_path / "calls.parquet"], tmp_path) == data
    old = calls.drop(columns="strand").rename(columns={"num_motifs": "num_cpgs"})
    without = summary([written(old, tmp_path / "old.tsv")], tmp_path)
    assert without.pop("contexts") == {}
    assert without == {name: value for name, value in data.items() if name != "contexts"}


def test_advice_of_controls_is_their_errors(tmp_path):
    calls, states = made_calls(300, spread=4)
    paths = [written(calls[states == state], tmp_path / f"{state}.tsv") for state in (True, False)]
    data = summary(
        [written(calls, tmp_path / "all.tsv")], tmp_path, methylated=paths[0], unmethylated=paths[1], error_rate=0.05
    )
    ratio = calls["log_lik_ratio"].to_numpy()
    one = next(one for one in data["thresholds"] if one["threshold"] == 2)
    for state, name in ((True, "methylated_control"), (False, "unmethylated_control")):
        kept = ratio[(states == state) & (np.abs(ratio) >= 2)]
        assert one["errors"][name] == pytest.approx(((kept > 0) != state).mean())
    threshold = data["advice"]["threshold"]

    def worst(limit: float) -> float:
        return max(
            ((ratio > 0) != state)[(states == state) & (np.abs(ratio) >= limit - 1e-9)].mean()
            for state in (True, False)
        )

    assert worst(threshold) <= 0.05 < worst(threshold - 0.1)
    assert "control" in data["advice"]["reasons"][0]


def test_no_figure_is_shown_as_known_that_is_assumed(table, tmp_path):
    """Only controls make errors known; the text, the page and the JSON report say on what a figure rests."""
    calls, states = made_calls(400, spread=2.5)
    every = written(calls, tmp_path / "all.tsv")
    parts = {state: written(calls[states == (state == "methylated")], tmp_path / f"{state}.tsv")
             for state in ("methylated", "unmethylated")}  # fmt: skip
    for basis, tables, options, words in (
        ("controls", every, parts, "In the controls at most"),
        ("one_control", every, {"unmethylated": parts["unmethylated"]}, "An estimated"),
        ("components", every, {}, "An estimated"),
        ("one_state", parts["unmethylated"], {}, "If all sites are of one state,"),
        ("one_state", parts["methylated"], {}, "If all sites are of one state,"),
    ):
        report = [tmp_path / "advice.html", tmp_path / "advice.json"]
        data = summary(tables, tmp_path, report=report, error_rate=0.05, **options)
        assert data["advice"]["basis"] == basis
        shown = re.search(r"Advice: a threshold of .* % of the calls\. (.*)", (tmp_path / "summary.txt").read_text())
        assert shown is not None
        assert re.fullmatch(rf"{words} \d+\.\d\d % of (these|such calls) are wrong:", shown[1])
        assert shown[1] in report[0].read_text()
        assert json.loads(report[1].read_text()) == data
        known = "without controls nothing shows how many calls are wrong" not in " ".join(data["advice"]["reasons"])
        assert known == bool(options)


@pytest.mark.parametrize("motif", ["cpg", "gpc"])
@pytest.mark.parametrize("goal", [0.005, 0.01, 0.02, 0.05])
def test_calls_of_unmethylated_bacteria_are_wrong_no_more_often_than_claimed(shared_data, tmp_path, motif, goal):
    """Calls of f5c and nanopolish in E. coli, which has neither motif methylated: positive ratios are wrong."""
    folder = shared_data / "ecoli_r94" / "expected"
    for path in [folder / "nanopolish" / f"{motif}.tsv", *([folder / "meth.tsv.gz"] if motif == "cpg" else [])]:
        advice = summary(path, tmp_path, error_rate=goal, methylation=motif)["advice"]
        if advice["threshold"] is not None:
            ratio = pd.read_csv(path, sep="\t")["log_lik_ratio"]
            kept = ratio[ratio.abs() >= advice["threshold"] - 1e-9]
            assert len(kept) >= 3 / goal
            assert (kept > 0).mean() <= advice["error_rate"] <= goal


@pytest.mark.parametrize("goal", [0.02, 0.05, 0.1])
def test_calls_of_amplified_dna_are_wrong_no_more_often_than_claimed(shared_data, tmp_path, goal):
    """R10.4.1 reads of amplified DNA, which is unmethylated, where ratios alone claim less than what is."""
    data, calls = shared_data / "r10_wga", tmp_path / "calls.tsv"
    given = {"bam": data / "reads.bam", "genome": data / "ref.fa", "slow5": data / "reads.blow5"}
    f5py.call_methylation(**given, reads=data / "reads.fastq", output=calls)
    found = summary(calls, tmp_path, error_rate=goal)
    ratio = pd.read_csv(calls, sep="\t")["log_lik_ratio"]
    one = next(one for one in found["thresholds"] if one["threshold"] == 2.5)
    assert one["errors"]["by_ratios"] < (ratio[ratio.abs() >= 2.5] > 0).mean() == one["errors"]["by_other_state"]
    threshold = found["advice"]["threshold"]
    assert threshold is not None
    kept = ratio[ratio.abs() >= threshold - 1e-9]
    assert (kept > 0).mean() <= found["advice"]["error_rate"] <= goal


def test_few_calls_from_standard_input(table, tmp_path):
    _, path = table
    lines = Path(path).read_bytes().splitlines(keepends=True)
    command = process_of("summary")
    for text in (b"".join(lines[:6]), gzip.compress(b"".join(lines[:6]))):
        done = run_process(command, input=text)
        assert done.returncode == 0
        shown = done.stdout.decode()
        assert shown.startswith("calls                 5 of ")
        assert "No threshold is advised:\n  there are too few calls: 5, without controls" in shown
    undefined = lines[1].split(b"\t")
    undefined[5] = b"nan"
    text = lines[0] + b"\t".join(undefined)
    done = run_process(command, input=text)
    assert done.returncode == 1
    assert "standard input: has no calls" in done.stderr.decode()


def test_reports(table, tmp_path, capsys):
    _, path = table
    names = [tmp_path / f"summary.{kind}" for kind in ("html", "json", "png", "svg")]
    arguments = [argument for name in names for argument in ("--report", name)]
    assert run_command("summary", path, *arguments) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("calls  ")
    assert "Advice: a threshold of" in shown
    data = json.loads(names[1].read_text())
    assert data == summary(path, tmp_path)
    assert "Advice: a threshold" in names[0].read_text()
    assert names[0].read_text().count("<svg") == 6
    assert names[2].read_bytes().startswith(b"\x89PNG")
    ET.parse(names[3])
    again = tmp_path / "again.svg"
    assert run_command("summary", path, "--report", again, "-o", tmp_path / "text") == 0
    assert again.read_bytes() == names[3].read_bytes()


def test_modbam(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """Ours has the calls of the table; pysam counts those of a caller with two modifications of a base."""
    calls, modbam = tmp_path / "calls.tsv", tmp_path / "calls.bam"
    assert run_command("call-methylation", *made.options(), "-o", calls, "--modbam", modbam) == 0
    of_table, of_bam = (summary(path, tmp_path) for path in (calls, modbam))
    assert 0.9 * of_table["sites"] < of_bam["sites"] == of_bam["calls"] <= of_table["sites"]
    assert 0.9 * of_table["reads"] < of_bam["reads"] <= of_table["reads"]
    assert of_bam["groups"][0]["calls"] == of_bam["calls"]
    assert of_bam["contexts"] == {}
    controls = summary(modbam, tmp_path, methylated=modbam, unmethylated=calls)
    assert controls["advice"]["basis"] == "controls"
    piped = process_of("summary", "--report", tmp_path / "x.json", "-o", tmp_path / "x.txt")
    assert run_process(piped, input=modbam.read_bytes()).returncode == 0
    assert json.loads((tmp_path / "x.json").read_text()) == json.loads(json.dumps(of_bam))

    two, expected = tmp_path / "two.bam", {"m": [], "h": []}
    with pysam.AlignmentFile(str(modbam)) as source, pysam.AlignmentFile(str(two), "wb", template=source) as out:
        for record in source:
            listed = str(record.get_tag("MM")).rstrip(";").split(",")[1:]
            values = list(record.get_tag("ML"))
            others = [(255 - value) // 2 for value in values]
            if listed:
                record.set_tag("MM", "C+mh?," + ",".join(listed) + ";")
                record.set_tag("ML", array("B", [one for pair in zip(values, others, strict=True) for one in pair]))
            out.write(record)
            aligned = dict(record.get_aligned_pairs(matches_only=True))
            bases = record.query_sequence
            for (_, reverse, code), found in (record.modified_bases or {}).items():
                expected[str(code)] += [
                    value for place, value in found
                    if place in aligned and bases[place - reverse : place - reverse + 2] == "CG"
                ]  # fmt: skip
    for code, values in expected.items():
        probability = (np.array(values) + 0.5) / 256
        beyond = np.abs(np.log(probability / (1 - probability))) >= 2
        found = summary(two, tmp_path, mod_code=code, threshold=2)
        assert (found["calls"], found["calls_beyond"]) == (len(values), beyond.sum())
        assert found["methylated"] == pytest.approx((probability[beyond] > 0.5).mean())
    assert "no read has calls C+f at CG" in refused(capfd, "summary", two, "--mod-code", "f")
    assert "--calibration 2: is a factor of ratios" in refused(capfd, "summary", two, "--calibration", 2, status=2)
    assert "no read has calls C+m at CG" in refused(capfd, "summary", made.bam)
