"""``f5py validate``: figures against pandas and scipy, all kinds of calls and truth, and wrong use."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pysam
import pytest
import scipy

import f5py
from f5py.errors import UsageError

from ..evaluation.made_calls import made_calls, written
from ..made_data import ReadSet, run_command

TRUTH_OF_READS = ["read_name", "chromosome", "strand", "position", "methylated"]


def validate(*inputs, tmp_path: Path, **options):
    return f5py.validate(*inputs, output=tmp_path / "validation.txt", **options)


def sites_of(calls: pd.DataFrame, states: np.ndarray) -> pd.DataFrame:
    repeated = calls.assign(methylated=states.astype(int)).loc[calls.index.repeat(calls["num_motifs"])]
    second = repeated.index.duplicated()
    return repeated.assign(position=repeated["start"] + 3 * second)


def bed(frequencies: pd.DataFrame, path: Path, minus: bool = False) -> str:
    """bedMethyl of sites; on the minus strand the C is one further."""
    at = frequencies["position"] + minus
    rows = pd.DataFrame(
        {
            "c": frequencies["chromosome"],
            "s": at,
            "e": at + 1,
            "m": "m",
            "n": frequencies["n"],
            "t": "-" if minus else "+",
        }
    )
    rows = rows.assign(s2=at, e2=at + 1, rgb="0,0,0", n2=frequencies["n"], p=100 * frequencies["m"] / frequencies["n"])
    rows.to_csv(path, sep="\t", index=False, header=False)
    return str(path)


def frequencies_of(sites: pd.DataFrame) -> pd.DataFrame:
    found = sites.groupby(["chromosome", "position"])["methylated"].agg(["size", "sum"]).reset_index()
    return found.rename(columns={"size": "n", "sum": "m"})


@pytest.fixture(scope="module")
def made_set(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("validate")
    calls, states = made_calls(300)
    sites = sites_of(calls, states)
    truth = folder / "truth_reads.tsv"
    sites[TRUTH_OF_READS].to_csv(truth, sep="\t", index=False)
    return calls, states, written(calls, folder / "calls.tsv"), str(truth)


def test_calls_against_the_state_in_every_read(made_set, tmp_path):
    calls, states, path, truth = made_set
    data = validate(path, truth, tmp_path=tmp_path, prior=0.35)
    ratio = calls["log_lik_ratio"].to_numpy()
    statistic = scipy.stats.mannwhitneyu(ratio[states], ratio[~states]).statistic
    assert data["auc"] == pytest.approx(statistic / states.sum() / (~states).sum())
    assert (data["calls"], data["methylated_calls"], data["mixed_groups"]) == (len(calls), states.sum(), 0)
    for one in data["thresholds"]:
        kept = np.abs(ratio) >= one["threshold"]
        called, true = ratio[kept] > 0, states[kept]
        assert one["calls"] == kept.sum()
        assert one["accuracy"] == pytest.approx((called == true).mean())
        assert one["precision"] == pytest.approx(true[called].mean())
        assert one["recall"] == pytest.approx(called[true].mean())
        assert one["specificity"] == pytest.approx((~called)[~true].mean())
        assert one["f1"] == pytest.approx(2 * (called & true).sum() / (called.sum() + true.sum()))
    p = 1 / (1 + np.exp(-ratio) * 0.65 / 0.35)
    bins = pd.DataFrame({"p": p, "state": states}).groupby(np.minimum((p * 10).astype(int), 9)).agg(["mean", "size"])
    found = data["reliability"]
    assert found["calls"] == bins["p"]["size"].tolist()
    np.testing.assert_allclose(found["predicted"], bins["p"]["mean"])
    np.testing.assert_allclose(found["observed"], bins["state"]["mean"])
    error = (bins["p"]["size"] * (bins["p"]["mean"] - bins["state"]["mean"]).abs()).sum() / len(calls)
    assert found["expected_calibration_error"] == pytest.approx(error)
    assert found["brier_score"] == pytest.approx(((p - states) ** 2).mean())
    # a sample of which 35 % are methylated, as the prior says
    balanced = data["reliability_balanced"]
    weight = np.where(states, 0.35 / states.mean(), 0.65 / (1 - states.mean()))
    assert balanced["brier_score"] == pytest.approx((weight * (p - states) ** 2).mean())
    of_bin = (
        pd.DataFrame({"w": weight, "error": weight * (p - states)}).groupby(np.minimum((p * 10).astype(int), 9)).sum()
    )
    assert balanced["expected_calibration_error"] == pytest.approx(of_bin["error"].abs().sum() / len(calls))


def test_a_calibration_is_a_factor_of_the_ratios_for_probabilities_only(made_set, tmp_path):
    calls, _, path, truth = made_set
    data = validate(path, truth, tmp_path=tmp_path, calibration=0.5)
    scaled = written(calls.assign(log_lik_ratio=calls["log_lik_ratio"] / 2), tmp_path / "scaled.tsv")
    expected = validate(scaled, truth, tmp_path=tmp_path)
    for name in ("reliability", "reliability_balanced"):
        assert data[name].pop("calibration") == 0.5
        assert expected[name].pop("calibration") == 1.0
        for key, value in expected[name].items():
            assert data[name][key] == pytest.approx(value, abs=5e-3 if key != "calls" else 60)
    assert data["thresholds"] == validate(path, truth, tmp_path=tmp_path)["thresholds"]
    text = (tmp_path / "validation.txt").read_text()
    assert "ratios times" not in text


def test_probabilities_of_tags_are_not_calibrated_again(made_set, tmp_path):
    with pytest.raises(UsageError, match=r"--calibration 1\.1: .* leave it out"):
        validate("calls.bam", made_set[3], tmp_path=tmp_path, calibration=1.1)


def test_frequencies_of_called_sites(made_set, tmp_path):
    calls, states, path, truth = made_set
    data = validate(path, truth, tmp_path=tmp_path, min_coverage=40)["frequencies"]
    beyond = calls["log_lik_ratio"].abs() >= 2.5
    called = frequencies_of(sites_of(calls[beyond], (calls["log_lik_ratio"] > 0).to_numpy()[beyond]))
    both = called.merge(frequencies_of(sites_of(calls, states)), on=["chromosome", "position"], suffixes=("", "_true"))
    both = both[both["n"] >= 40]
    a, b = both["m"] / both["n"], both["m_true"] / both["n_true"]
    assert data["sites"] == len(both) > 20
    assert data["correlation"] == pytest.approx(scipy.stats.pearsonr(a, b).statistic)
    assert data["rms"] == pytest.approx(((a - b) ** 2).mean() ** 0.5)
    assert data["difference"] == pytest.approx((a - b).abs().mean())
    for one in data["by_coverage"]:
        chosen = (both["n"] >= one["from"]) & (both["n"] <= (one["to"] or np.inf))
        assert (one["sites"], one["rms"]) == (chosen.sum(), pytest.approx(((a - b)[chosen] ** 2).mean() ** 0.5))
    assert sum(one["sites"] for one in data["by_frequency"]) == len(both)


def test_bedmethyl_knows_extreme_sites_only(made_set, tmp_path):
    calls, _, path, _ = made_set
    # three states by position: always, never, in half of the reads
    kind = (calls["start"] // 12) % 3
    states = np.where(kind == 2, np.arange(len(calls)) % 2, kind).astype(bool)
    true = frequencies_of(sites_of(calls, states))
    truth = bed(true, tmp_path / "truth.bed")
    data = validate(path, truth, tmp_path=tmp_path)
    known = sites_of(calls, states).merge(true, on=["chromosome", "position"])
    extreme = (known["m"] / known["n"]).isin([0, 1]).groupby([known["read_name"], known["start"]]).all()
    assert data["calls"] == extreme.sum()
    assert data["mixed_groups"] == len(calls) - extreme.sum()
    # the minus strand's rows at the same sites, of another state: then the site is of no known state
    flipped = true.assign(m=true["n"] - true["m"])
    both = Path(truth).read_text() + Path(bed(flipped, tmp_path / "minus.bed", minus=True)).read_text()
    (tmp_path / "both.bed").write_text(both)
    assert "auc" not in validate(path, tmp_path / "both.bed", tmp_path=tmp_path)


def test_sites_against_sites(made_set, tmp_path):
    calls, states, path, _ = made_set
    truth = bed(frequencies_of(sites_of(calls, states)), tmp_path / "truth.bed")
    table = tmp_path / "freq.tsv"
    f5py.frequencies([path], output=table, split_groups=True)
    of_table = validate(table, truth, tmp_path=tmp_path)
    of_calls = validate(path, truth, tmp_path=tmp_path)["frequencies"]
    assert json.dumps(of_table["frequencies"]) == json.dumps(of_calls)
    called = tmp_path / "freq.bed"
    f5py.frequencies([path], output=called)
    assert validate(called, truth, tmp_path=tmp_path)["frequencies"]["sites"] == of_calls["sites"]
    assert validate(truth, truth, tmp_path=tmp_path)["frequencies"]["rms"] == 0


def test_controls_and_reports(made_set, tmp_path):
    calls, states, path, truth = made_set
    paths = [written(calls[states == state], tmp_path / f"{state}.tsv") for state in (True, False)]
    names = [tmp_path / f"report.{kind}" for kind in ("json", "html", "png", "pdf")]
    data = validate(tmp_path=tmp_path, methylated=paths[0], unmethylated=paths[1], report=names)
    expected = validate(path, truth, tmp_path=tmp_path)
    assert data == {name: expected[name] for name in data}
    assert json.loads(names[0].read_text()) == data
    assert names[1].read_text().count("<svg") == 4
    assert names[2].read_bytes().startswith(b"\x89PNG")
    assert names[3].read_bytes().startswith(b"%PDF")


def test_modbam_says_what_the_table_does(made: ReadSet, tmp_path):
    calls, modbam = tmp_path / "calls.tsv", tmp_path / "calls.bam"
    assert run_command("call-methylation", *made.options(), "-o", calls, "--modbam", modbam) == 0
    truth = made.folder / "truth_reads.tsv"
    of_table, of_bam = (validate(path, truth, tmp_path=tmp_path) for path in (calls, modbam))
    assert of_bam["unknown"] == of_table["unknown"] == 0
    # tags have every site of a group, but none whose base is not in the read
    n_sites = pd.read_csv(calls, sep="\t")["num_motifs"].sum()
    assert 0.9 * n_sites < of_bam["calls"] <= n_sites
    assert of_bam["auc"] == pytest.approx(of_table["auc"], abs=0.02)
    assert of_bam["auc"] > 0.95
    # what is left out is counted: tags at places without the motif, and on bases that are not aligned
    tags = of_bam["tags"]
    assert tags["n"] - tags["not_aligned"] - tags["not_at_motif"] == of_bam["calls"]
    shifted, n_called = tmp_path / "shifted.bam", 0
    with pysam.AlignmentFile(str(modbam)) as source, pysam.AlignmentFile(str(shifted), "wb", template=source) as out:
        for record in source:
            name, *skips = str(record.get_tag("MM")).rstrip(";").split(",")
            n_called += len(skips)
            if skips and record.query_name == made.names[0]:  # the next C, which is no CpG
                record.set_tag("MM", ",".join([name, str(int(skips[0]) + 1), *skips[1:]]) + ";")
            out.write(record)
    found = validate(shifted, truth, tmp_path=tmp_path)
    assert found["tags"]["n"] == tags["n"] == n_called
    assert found["tags"]["not_at_motif"] > tags["not_at_motif"]
    assert "tags, where the read does not have the motif" in (tmp_path / "validation.txt").read_text()
