"""Runs with correlated noise."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pysam
import pytest

from f5py.commands.simulate import simulate
from f5py.core.noise import CALIBRATION, INDEPENDENT
from f5py.evaluation.agreement import LabelledRatios
from f5py.evaluation.ratios import area_under_curve, probability
from f5py.options.declaration import declarations
from f5py.options.table_commands import SummaryOptions
from f5py.pore_model import builtin
from f5py.pore_model.model import PoreModel
from f5py.pore_model.text_file import model_text
from f5py.simulation.settings import CHEMISTRIES, SimulationSettings

from ..index_files import index_quietly
from ..made_data import ReadSet, last_of_each, run_main


def _call(data: ReadSet, *options: str) -> bytes:
    out = data.folder / "noise.tsv"
    assert run_main(*last_of_each([*data.options(), "-o", out, *options])) == 0
    return out.read_bytes()


def _ratios(table: bytes) -> np.ndarray:
    return np.array(
        [float(row["log_lik_ratio"]) for row in csv.DictReader(io.StringIO(table.decode()), delimiter="\t")]
    )


def test_independent_noise_is_the_default(made: ReadSet, made_calls: bytes) -> None:
    assert _call(made, "--noise", "independent") == made_calls


@pytest.mark.parametrize(
    "more",
    [(), ("--per-site",), ("-q", "cpg,gpc"), ("--rescale=yes",), ("--rescale=yes", "--per-site", "-q", "cpg,gpc")],
    ids=["groups", "sites", "motifs", "rescaled", "rescaled sites of motifs"],
)
def test_the_same_bytes_for_any_threads_and_batches(made: ReadSet, more: tuple[str, ...]) -> None:
    table = _call(made, "--accurate", *more)
    assert _call(made, "--noise", "correlated", "-t", "1", "-K", "3", *more) == table
    independent = _call(made, *(one for one in more if one != "--rescale=yes"))
    assert table != independent
    a, b = (_ratios(one) for one in (table, independent))
    assert len(a) == len(b)
    assert np.corrcoef(a, b)[0, 1] > 0.9


def test_a_model_of_independent_noise_gives_the_bytes_of_independent_noise(made: ReadSet, tmp_path: Path) -> None:
    model = builtin("r9.4_450bps.cpg.6mer")
    zero = PoreModel(model.name, model.k, model.alphabet, model.level_mean, model.level_stdv, INDEPENDENT)
    path = tmp_path / "zero.model"
    path.write_bytes(b"".join(model_text(zero, np.zeros(len(model.level_mean)), "cpg", "made")))
    assert b"#noise\t0\t0\tgaussian" in path.read_bytes()
    for more in ((), ("--per-site",)):
        expected = _call(made, "--meth-model", str(path), *more)
        assert _call(made, "--meth-model", str(path), "--accurate", *more) == expected


def test_contradictions_are_refused(made: ReadSet, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(*made.options(), "-o", made.folder / "no.tsv", "--accurate", "--noise", "independent") == 2
    assert "choose one" in capsys.readouterr().err
    assert run_main(*made.options(), "-o", made.folder / "no.tsv", "--rescale=yes") == 2
    assert "--rescale yes needs --noise correlated or --accurate" in capsys.readouterr().err


def test_rescaling_changes_ratios_and_no_printed_scaling(made: ReadSet) -> None:
    table = _call(made, "--accurate")
    assert _call(made, "--accurate", "--rescale=no") == table
    assert _call(made, "--accurate", "--rescale=yes") != table
    printed = [
        [line for line in _call(made, "--accurate", "--print-scaling=yes", one).splitlines() if line.count(b"\t") == 3]
        for one in ("--rescale=no", "--rescale=yes")
    ]
    assert printed[0]
    assert printed[0] == printed[1]


def _tags(data: ReadSet, *options: str) -> list[int]:
    out = data.folder / "noise.bam"
    assert run_main(*data.options(), "--output-format", "none", "--modbam", out, *options) == 0
    with pysam.AlignmentFile(str(out), check_sq=False) as file:
        return [one for record in file for one in (record.get_tag("ML") if record.has_tag("ML") else ())]


def test_tags_have_calibrated_probabilities_of_correlated_noise(made: ReadSet) -> None:
    """A table has the ratios of the model, whatever the tags have."""
    for option, factor in (("--accurate", CALIBRATION["r9"]), ("--noise=independent", 1.0)):
        ratios = _ratios(_call(made, "--per-site", option))  # two decimals
        found = np.array(_tags(made, "--per-site", option))
        assert len(found) > 20
        near = [np.floor(256 * probability(np.sort(ratios) + e, 0.5, factor)).clip(0, 255) for e in (-0.006, 0.006)]
        n_without = len(ratios) - len(found)  # sites where the read has no C
        assert 0 <= n_without < 0.03 * len(ratios)
        for value in range(256):
            n = (found <= value).sum()
            assert (near[1] <= value).sum() - n_without <= n <= (near[0] <= value).sum()


def test_the_help_says_the_constants_of_the_calibration() -> None:
    said = declarations(SummaryOptions)["calibration"].help
    assert f"{CALIBRATION['r9']:g} (R9.4)" in said
    assert f"{CALIBRATION['r10']:g} (R10.4.1)" in said


def _labelled(data: ReadSet, *options: str) -> pd.DataFrame:
    """Ratios of calls that simulated reads of one state have, by read and start, with their state."""
    calls = pd.read_csv(io.BytesIO(_call(data, *options)), sep="\t")[["read_name", "start", "log_lik_ratio"]]
    truth = pd.read_csv(data.folder / "truth_reads.tsv", sep="\t").rename(columns={"position": "start"})
    return calls.merge(truth[["read_name", "start", "methylated"]], on=["read_name", "start"], validate="one_to_one")


def test_simulated_reads_gain_and_are_calibrated(tmp_path: Path) -> None:
    """With the noise of real reads, groups and single sites.

    Measured in 80 reads: the area of 10,936 groups rises by 0.0009 to 0.0024, that of 25,252 sites by 0.0003 to 0.0011;
    the calibration errors are 0.012 and 0.008.
    """
    folder = tmp_path / "simulated"
    noise = CHEMISTRIES["r9"].statistics
    settings = SimulationSettings(
        seed=5, genome_length=60_000, gc=0.55, n_reads=80, fixed_length=4000, per_read=True, **noise
    )
    simulate(folder, settings, fasta=True)
    index_quietly(folder / "reads.fasta", folder / "fast5")
    data = ReadSet(folder, folder / "reads.fasta", folder / "reads.bam", folder / "ref.fa", folder / "fast5")
    for per_site in ((), ("--per-site",)):
        tables = [_labelled(data, f"--noise={noise}", *per_site) for noise in ("independent", "correlated")]
        reads, names = pd.factorize(tables[0]["read_name"])
        assert (tables[1]["start"] == tables[0]["start"]).all()
        state = tables[0]["methylated"].to_numpy() == 1
        ratios = [table["log_lik_ratio"].to_numpy() for table in tables]
        rng = np.random.default_rng(1)
        gains = []
        for _ in range(60):
            weight = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))
            drawn = np.repeat(np.arange(len(reads)), weight[reads])
            areas = [area_under_curve(state[drawn], ratio[drawn]) for ratio in ratios]
            gains.append(areas[1] - areas[0])
        counts = LabelledRatios()
        counts.add(ratios[1], state.astype(np.int64))
        found = counts.reliability(0.5, is_balanced=True, calibration=CALIBRATION["r9"])
        assert np.quantile(gains, 0.025) > 0
        assert found["expected_calibration_error"] <= 0.02


def test_real_reads_without_methylation(call_ecoli) -> None:
    """E. coli has no methylated CpG. Measured: 1.58 % of the 81.5 % beyond 2 are wrong; 2.14 % of 78.4 % else.

    Rescaled, 1.40 % of 82.0 % are.
    """
    for options, most, least in (
        (["--accurate"], 0.0165, 0.8),
        (["--accurate", "--rescale=yes"], 0.0145, 0.8),
        (["--noise=independent"], 0.0225, 0.75),
    ):
        ratios = _ratios(call_ecoli("reads.bam", *options))
        called = np.abs(ratios) > 2
        assert len(ratios) == 19_537
        assert called.mean() >= least
        assert (ratios[called] > 0).mean() <= most
