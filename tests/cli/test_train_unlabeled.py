"""``f5py train --unlabeled``: shifts of simulated reads against those that they follow, and refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest

import f5py
from f5py.errors import F5pyError, PoreModelError, UsageError
from f5py.pore_model import read_model
from f5py.pore_model.model import R10_CPG_SHIFTS, Shifts
from f5py.pore_model.shift_file import shift_text

NUCLEOTIDE = "r10.4.1_400bps.nucleotide.9mer"
TRUTH = Shifts((0.5, 0.5, -0.5, 0.0, -3.0, -7.0, -16.0, -5.0, 2.0), (0.0, 0.0, 0.0, 0.0, 0.5, -1.0, 2.0, 3.5, 0.0))
#: Sites that are mostly methylated, and some that are not, as in mammals.
RATES = "beta:8:2*3,0.05"


def simulated(folder: Path, **settings: Any) -> Path:
    size = {"n_reads": 24, "fixed_length": 2_500, "genome_length": 60_000, "site_rates": RATES, "seed": 5}
    f5py.simulate(output=folder, pore="r10", signal_format="blow5", **size | settings)
    return folder


def inputs(folder: Path, **more: Any) -> dict[str, Any]:
    found = {"unlabeled": [folder / "reads.bam"], "genome": folder / "ref.fa", "slow5": folder / "reads.blow5"}
    return {**found, "gpu": "off", "threads": 2, **more}


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulate reads whose shifts are not the built-in ones, and write a file of those."""
    folder = tmp_path_factory.mktemp("unlabeled")
    (folder / "truth.model").write_text(shift_text(NUCLEOTIDE, TRUTH, ([0.0] * 9, [0.0] * 9), None, "made"))
    return simulated(folder / "reads", shifts=folder / "truth.model")


@pytest.fixture(scope="module")
def fitted(reads: Path) -> Any:
    return f5py.train(**inputs(reads), output=reads / "cpg.model", report=reads / "fit.json")


def test_shifts_are_those_that_the_reads_follow(reads: Path, fitted: Any) -> None:
    model = read_model(reads / "cpg.model", "ACGMT")
    assert model.shifts is not None
    error = np.array(model.shifts) - np.array(TRUTH)
    assert np.abs(error[0, 5:7]).max() < 1
    assert np.sqrt((error[0] ** 2).mean()) < 0.8
    assert np.abs(error[1]).max() < 1.5
    lines = [line.split("\t") for line in (reads / "truth.tsv").read_text().splitlines()[1:]]
    assert fitted.share == pytest.approx(
        sum(int(line[4]) for line in lines) / sum(int(line[3]) for line in lines), abs=0.05
    )
    assert fitted.verdict == "fitted"


def test_report(reads: Path, fitted: Any, tmp_path: Path) -> None:
    report = json.loads((reads / "fit.json").read_text())
    assert report == fitted.report
    assert report["start"]["shifts"] == list(R10_CPG_SHIFTS.by_place)
    assert (report["groups"], report["reads"], report["settled"]) == (fitted.n_groups, fitted.n_reads, True)
    assert report["likelihood"] > report["likelihood_of_start"] > 25
    assert report["second_stage"]["taken"]
    for gain in (report["held_out_gain"], report["second_stage"]["held_out_gain"]):
        assert gain["sum"] > 2 * gain["se"]
        assert gain["per_group"] == pytest.approx(gain["sum"] / report["groups"])
    error = np.abs(np.array(report["shifts"]) - TRUTH.by_place)
    assert (error < 6 * np.array(report["standard_errors"])).all()
    f5py.train(**inputs(reads, groups=250), output=tmp_path / "x.model", report=tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert "250 of 2" in page
    assert page.count("place ") >= 9
    assert not re.search(r'(src|href)="[^#]|@import|<script', page)


def test_calls_with_the_fitted_shifts_are_better(reads: Path, fitted: Any, tmp_path: Path) -> None:
    def auc(**model: Any) -> float:
        f5py.call_methylation(
            bam=reads / "reads.bam", genome=reads / "ref.fa", slow5=reads / "reads.blow5", accurate=True,
            output=tmp_path / "calls.tsv", **model,
        )  # fmt: skip
        return f5py.validate(tmp_path / "calls.tsv", reads / "truth_reads.tsv", output=tmp_path / "text")["auc"]

    true, ours = (auc(meth_model=path) for path in (reads.parent / "truth.model", reads / "cpg.model"))
    assert ours > auc() + 0.002
    assert ours > true - 0.003


@pytest.mark.parametrize(
    "options", [{"threads": 1, "batchsize": 1}, {"threads": 4, "max_bases": 20_000}, {"gpu": "auto"}]
)
def test_the_same_bytes_for_any_batches(reads: Path, fitted: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    f5py.train(**inputs(reads, **options), output=tmp_path / "x.model")
    assert (tmp_path / "x.model").read_bytes() == (reads / "cpg.model").read_bytes()


def test_parts_of_the_alignments_are_as_good_as_all(reads: Path, fitted: Any, tmp_path: Path) -> None:
    parts = [tmp_path / "b.bam", tmp_path / "a.bam"]
    with pysam.AlignmentFile(str(reads / "reads.bam")) as source:
        outputs = [pysam.AlignmentFile(str(part), "wb", template=source) for part in parts]
        for i, record in enumerate(source):
            outputs[i % 2].write(record)
    for output in outputs:
        output.close()
    f5py.train(**inputs(reads, unlabeled=parts), output=tmp_path / "x.model")
    assert (tmp_path / "x.model").read_bytes() == (reads / "cpg.model").read_bytes()


def test_the_full_text_has_the_same_levels(reads: Path, fitted: Any, tmp_path: Path) -> None:
    f5py.train(**inputs(reads), full=True, output=tmp_path / "full.model.gz")
    full, short = (read_model(path, "ACGMT") for path in (tmp_path / "full.model.gz", reads / "cpg.model"))
    np.testing.assert_allclose(full.level_mean, short.level_mean, atol=1e-5)
    np.testing.assert_allclose(full.level_stdv, short.level_stdv, atol=1e-5)
    assert full.calibration == short.calibration is not None


def test_a_fit_can_go_on_from_another(reads: Path, fitted: Any, tmp_path: Path) -> None:
    again = f5py.train(**inputs(reads), start=reads / "cpg.model", output=tmp_path / "x.model")
    assert again.verdict == "nothing to gain"
    assert again.model.shifts == fitted.model.shifts


@pytest.mark.parametrize("settings", [{}, {"level_bias": 2.1}])
def test_nothing_methylated_is_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    folder = simulated(tmp_path / "reads", site_rates="0", **settings)
    with pytest.raises(F5pyError, match="no evidence that anything is methylated"):
        f5py.train(**inputs(folder), output=tmp_path / "x.model", report=tmp_path / "x.json")
    assert not list(tmp_path.glob("x.*"))
    forced = f5py.train(**inputs(folder), output=tmp_path / "x.model", force=True)
    assert forced.verdict == "nothing methylated"
    assert forced.model.shifts is not None
    np.testing.assert_allclose(forced.model.shifts.by_place, R10_CPG_SHIFTS.by_place, atol=0.5)


def test_reads_of_the_built_in_shifts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = simulated(tmp_path / "reads", seed=8)
    found = f5py.train(**inputs(folder, groups=400), output=tmp_path / "x.model")
    assert found.verdict == "nothing to gain"
    assert found.model.shifts == R10_CPG_SHIFTS
    assert "nothing to gain" in capsys.readouterr().err


def test_few_reads_are_refused(reads: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.bam"
    with (
        pysam.AlignmentFile(str(reads / "reads.bam")) as source,
        pysam.AlignmentFile(str(few), "wb", template=source) as out,
    ):
        for record in [*source][:5]:
            out.write(record)
    with pytest.raises(F5pyError, match=r"too few reads: .* in 5 reads"):
        f5py.train(**inputs(reads, unlabeled=[few]), output=tmp_path / "x.model")
    assert not (tmp_path / "x.model").exists()


def test_what_has_no_shifts_is_refused(reads: Path, tmp_path: Path) -> None:
    with pytest.raises(PoreModelError, match="no built-in model of GC:1"):
        f5py.train(**inputs(reads), motif="GC:1", output=tmp_path / "x.model")
    with pytest.raises(PoreModelError, match="measured k-mer by k-mer; give controls"):
        f5py.train(**inputs(reads), start="r9.4_450bps.cpg.6mer", output=tmp_path / "x.model")
    with pytest.raises(UsageError, match="exclude each other"):
        f5py.train(**inputs(reads), methylated=[reads / "reads.bam"], output=tmp_path / "x.model")
    assert not (tmp_path / "x.model").exists()


def test_r9_is_refused(tmp_path: Path) -> None:
    f5py.simulate(output=tmp_path / "r9", n_reads=2, genome_length=3_000, signal_format="blow5", fixed_length=1_000)
    with pytest.raises(PoreModelError, match="measured k-mer by k-mer"):
        f5py.train(**inputs(tmp_path / "r9"), output=tmp_path / "x.model")


def test_a_short_file_is_of_its_motif(reads: Path, fitted: Any, tmp_path: Path) -> None:
    with pytest.raises(PoreModelError, match="is a model of cpg, not of gpc"):
        f5py.call_methylation(
            bam=reads / "reads.bam", genome=reads / "ref.fa", slow5=reads / "reads.blow5", methylation="gpc",
            meth_model=reads / "cpg.model", output=tmp_path / "x.tsv",
        )  # fmt: skip


@pytest.mark.shared
def test_amplified_reads_are_refused(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "r10_wga"
    with pytest.raises(F5pyError, match="no evidence that anything is methylated"):
        f5py.train(
            unlabeled=[source / "reads.bam"], reads=source / "reads.fastq", genome=source / "ref.fa",
            slow5=source / "reads.blow5", pore="r10", output=tmp_path / "x.model",
        )  # fmt: skip


def test_few_controls_are_offered_a_fit_of_shifts(reads: Path, tmp_path: Path) -> None:
    few = {**inputs(reads), "unlabeled": (), "methylated": [reads / "reads.bam"], "rounds": 1, "held_out": 0}
    with pytest.raises(
        F5pyError, match=r"methylated k-mers .*; or fit nine shifts to the same reads: --unlabeled .*\.bam"
    ):
        f5py.train(**few, output=tmp_path / "x.model")
    assert not (tmp_path / "x.model").exists()
