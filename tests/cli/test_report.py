"""The report of a run: what it says is what the outputs say."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from f5py import __version__
from f5py.reports.axis import COUNT, NUMBER, SHARE
from f5py.reports.svg_charts import bar_chart, line_chart

from ..made_data import ReadSet, run_command, run_main


@pytest.fixture
def run(made: ReadSet, tmp_path: Path) -> dict[str, Any]:
    """Read the JSON report of a run in several batches, and its calls."""
    report, calls = tmp_path / "report.json", tmp_path / "calls.parquet"
    assert run_main(*made.options(), "-K", "5", "--report", report, "-o", calls) == 0
    about = json.loads(pq.read_schema(calls).metadata[b"f5py"])
    return {**json.loads(report.read_text())["run"], "calls": pd.read_parquet(calls), "about_calls": about}


def test_the_report_and_the_table_say_what_the_results_rest_on(run: dict[str, Any]) -> None:
    about = run["rests_on"]
    assert run["about_calls"] == {"version": __version__, "command": "call-methylation", **about}
    assert about["chemistry"] == "R9.4 DNA"
    assert about["models"] == {"pore model": "r9.4_450bps.nucleotide.6mer", "cpg model": "r9.4_450bps.cpg.6mer"}
    assert about["options"]["min_mapq"] == run["parameters"]["min_mapq"] == 20


def test_distributions_are_those_of_the_calls(run: dict[str, Any], made: ReadSet) -> None:
    shown, calls = run["distributions"], run["calls"]
    ratio = calls.log_lik_ratio.to_numpy()
    edges = [*shown["ratios"]["from"], 20.0]
    assert shown["ratios"]["calls"] == np.histogram(np.clip(ratio, -20, 20), edges)[0].tolist()

    counts = run["counts"]
    assert counts["methylated"] == (ratio >= 2.5).sum()
    assert counts["unmethylated"] == (ratio <= -2.5).sum()
    assert run["rates"]["methylated_fraction"] == pytest.approx(
        counts["methylated"] / (counts["methylated"] + counts["unmethylated"])
    )

    decided = calls[calls.log_lik_ratio.abs() >= 2.5].groupby("start").size()
    of_sites = shown["calls_of_sites"]
    assert of_sites["sites"] == np.bincount(decided // of_sites["width"]).tolist()
    assert (of_sites["median"], of_sites["share_of_reference"]) == (decided.median(), 1.0)

    # a row's sequence begins 5 bases before its first site
    single = calls[(calls.num_motifs == 1) & (calls.log_lik_ratio.abs() >= 2.5)]
    single = single[single.sequence.str.len() == 11]  # not at the end of a read
    context = single.sequence.str[4] + "[CG]" + single.sequence.str[7]
    expected = context.groupby([context, single.log_lik_ratio > 0]).size()
    for name, pair in shown["contexts"].items():
        assert pair["methylated"] == expected.get((name, True), 0)
        assert pair["unmethylated"] == expected.get((name, False), 0)
    assert len(shown["contexts"]) == 16


def test_sums_of_reads_and_contigs(run: dict[str, Any], made: ReadSet) -> None:
    shown = run["distributions"]
    _, records = made.records()
    lengths = [len(record.query_sequence or "") for record in records]
    edges = [*shown["read_lengths"]["from"], 1e8]
    assert sum(shown["read_lengths"]["reads"]) == len(records)
    assert shown["read_lengths"]["reads"] == np.histogram(lengths, edges)[0].tolist()
    (contig,) = shown["contigs"]
    covered = sum((record.reference_end or 0) - record.reference_start for record in records)
    assert contig["name"] == "simulated"
    assert (contig["reads"], contig["coverage"]) == (16, pytest.approx(covered / 12_000, abs=0.001))
    assert (contig["methylated"], contig["unmethylated"]) == (
        run["counts"]["methylated"], run["counts"]["unmethylated"],
    )  # fmt: skip
    depth, first, last = shown["depth"], *np.array(
        [(record.reference_start, record.reference_end) for record in records]
    ).T  # fmt: skip
    assert depth["from"] == list(range(1, 12_001, 50))
    assert depth["contig"] == ["simulated"] * 240
    over = [np.clip(np.minimum(last, low + 49) - np.maximum(first, low - 1), 0, None).sum() for low in depth["from"]]
    np.testing.assert_allclose(depth["reads"], np.array(over) / 50, atol=0.001)
    assert depth["mean"] == pytest.approx(covered / 12_000, abs=0.001)
    assert sum(shown["read_lengths"]["bases_used"]) == sum(lengths)
    assert [point["reads"] for point in shown["scaling"]] == [5, 10, 15, 16]
    assert all(0.5 < point["scale"] < 2 for point in shown["scaling"])


_EMPTY = ("meta", "rect", "line", "polyline", "polygon", "circle")


class Page(HTMLParser):
    """Collects the texts of a page and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [str(value) for name, value in attrs if name in ("src", "href", "xlink:href", "action")]
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _EMPTY:
            assert self.open.pop() == tag


@pytest.mark.parametrize("command", ["call-methylation", "eventalign"])
def test_the_page(made: ReadSet, tmp_path: Path, command: str) -> None:
    page = tmp_path / "report.html"
    odd = '<script>alert(1)</script> & "Co"'
    options = ["-K", "5", "--report", page, "--sample", odd, "-o", tmp_path / "out"]
    broken = made.with_signals(tmp_path, {made.names[3]: tmp_path / "gone<b>.fast5"})
    assert run_command(command, *broken.options(), *options) == 0
    text = page.read_text()
    read = Page(text)
    assert read.open == []
    assert read.loads == []
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", text)
    assert "<script" not in text
    assert "gone<b>" not in text
    assert "&lt;script&gt;" in text
    assert "1 of 16 reads have no usable signal" in text  # the warning
    assert "<b>15</b><span>of 16 reads used</span>" in text
    assert "<tr><td>pore model</td><td>r9.4_450bps.nucleotide.6mer</td></tr>" in text
    titles = re.findall("<h2>(.*?)</h2>", text)
    assert {"Warnings", "Outcome of the reads", "Read lengths", "Yield by read length", "Reads"} <= set(titles)
    assert {"Depth along the reference", "Seconds"} <= set(titles)
    assert ("Depth of the called sites" in titles) == (command == "call-methylation")
    assert "<pre>f5py" in text  # the command line
    assert ("Log-likelihood ratios" in titles) == (command == "call-methylation")
    for figure in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(figure)


def test_charts_of_nothing_and_of_one_thing() -> None:
    for chart in (
        bar_chart([], {"x": []}, "", COUNT), bar_chart(["a"], {"x": [0]}, "", COUNT),
        bar_chart(["a"], {"x": [-2.0]}, "", NUMBER), line_chart([5], {"": [0.0]}, COUNT, SHARE),
        line_chart([], {"": []}, NUMBER, NUMBER),
    ):  # fmt: skip
        ElementTree.fromstring(chart)
        assert "nan" not in chart
        assert "inf" not in chart


def test_names_of_samples(made: ReadSet, tmp_path: Path) -> None:
    def name(*options: Any, reads: ReadSet = made) -> str:
        report = tmp_path / "x_mqc.json"
        assert run_main(*reads.options(), "-o", tmp_path / "x", "--report", report, *options) == 0
        table, bars = json.loads(report.read_text()), json.loads((tmp_path / "x_reads_mqc.json").read_text())
        assert table["data"].keys() == bars["data"].keys() == {next(iter(table["data"]))}
        assert sum(next(iter(bars["data"].values())).values()) == 16
        assert table["headers"].keys() == next(iter(table["data"].values())).keys()
        assert table["id"] != bars["id"]
        return next(iter(table["data"]))

    assert name() == f"{tmp_path.name}_x"
    assert name("--sample", "mine") == "mine"
    header, records = made.records()
    groups = [{"ID": "1", "SM": "blood"}, {"ID": "2", "SM": "blood"}]
    with_groups = made.with_records(tmp_path, records, {**header.to_dict(), "RG": groups})
    assert name(reads=with_groups) == "blood"
    groups[1]["SM"] = "liver"
    assert name(reads=made.with_records(tmp_path, records, {**header.to_dict(), "RG": groups})) == f"{tmp_path.name}_x"


def test_a_run_without_a_result_has_its_report(made: ReadSet, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--min-recalib-events", "100000", "-o", tmp_path / "x", "--report", report]
    assert run_main(*made.options(), *options) == 1
    counts = json.loads(report.read_text())["run"]["counts"]
    assert (counts["passed"], counts["could_not_calibrate"]) == (0, 16)
