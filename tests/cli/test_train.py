"""``f5py train``: models of simulated reads against those that they follow, of real reads, and its files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import f5py
from f5py.cli import command_of
from f5py.commands import train as train_command
from f5py.core.motifs import reverse_complement
from f5py.errors import F5pyError, SignalError
from f5py.pore_model import PoreModel, builtin, read_model
from f5py.pore_model.model import Shifts, with_methylation
from f5py.pore_model.text_file import model_text
from f5py.training.sums import plain_ranks

from ..made_data import ReadSet

command = command_of("train")

SHIFTS = [0.5, 1.0, -3.5, 4.0, 0.0, -1.0]
START = "r9.4_450bps.nucleotide.6mer"


@pytest.fixture(scope="module", autouse=True)
def _noise_of_few_events() -> Iterator[None]:
    """How well it is estimated is tested in `tests/training`; of all events it would take half of the time."""
    with mock.patch.object(train_command, "_NOISE_EVENTS", 10_000):
        yield


def train(*arguments: object) -> None:
    command.main([str(argument) for argument in arguments], standalone_mode=False)


def counts_of(path: Path) -> np.ndarray:
    lines = path.read_text().splitlines()
    return np.array([int(line.rsplit("\t", 1)[1]) for line in lines if not line.startswith(("#", "kmer"))])


@pytest.fixture(scope="module")
def controls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulate reads that follow a model of plain and methylated k-mers, and write that model."""
    folder = tmp_path_factory.mktemp("controls")
    truth = with_methylation(builtin(START), Shifts.of_places(SHIFTS), "truth")
    (folder / "truth.model").write_bytes(b"".join(model_text(truth, np.zeros(5**6), "cpg", "made")))
    common: dict[str, Any] = {"methylation": "per-read", "meth_model": folder / "truth.model", "coverage": 6.0}
    # with many sites, so that many methylated k-mers are seen often in few reads
    f5py.simulate(output=folder / "m", genome_length=52_000, gc=0.57, methylated_reads=1.0, seed=1, **common)
    f5py.simulate(output=folder / "u", reference=folder / "m/ref.fa", methylated_reads=0.0, seed=2, **common)
    return folder


def inputs(folder: Path) -> dict[str, Any]:
    return {
        "methylated": [folder / "m/reads.bam"], "unmethylated": [folder / "u/reads.bam"], "genome": folder / "m/ref.fa",
        "fast5": folder, "start": START, "threads": 2, "iop": 1,
    }  # fmt: skip


@pytest.fixture(scope="module")
def trained(controls: Path) -> Any:
    return f5py.train(**inputs(controls), output=controls / "cpg.model", report=controls / "report.json")


def test_levels_are_those_that_the_reads_follow(controls: Path, trained: Any):
    truth = read_model(controls / "truth.model", "ACGMT")
    model, n = read_model(controls / "cpg.model", "ACGMT"), counts_of(controls / "cpg.model")
    np.testing.assert_allclose(model.level_mean, trained.model.level_mean, atol=1e-5)
    error = model.level_mean - truth.level_mean
    is_m = plain_ranks(6, "ACGMT", "C") >= 0
    for these in (~is_m, is_m):
        well_seen = these & (n >= 100)
        assert well_seen.sum() > 1_000
        assert np.sqrt((error[well_seen] ** 2).mean()) < 0.3
    assert np.sqrt((error[is_m & (n == 0)] ** 2).mean()) < 1.5
    assert trained.rounds[-1]["change"] < 0.05


def test_calls_are_as_good_as_with_the_true_model(controls: Path, trained: Any):
    def auc(model: Path) -> float:
        ratios = [
            f5py.call_methylation(
                bam=controls / name / "reads.bam", genome=controls / "m/ref.fa", fast5=controls, meth_model=model,
                returns="pandas",
            ).log_lik_ratio.to_numpy()
            for name in ("m", "u")
        ]  # fmt: skip
        joined = np.concatenate(ratios)
        rank = np.argsort(np.argsort(joined, kind="stable"), kind="stable")[: len(ratios[0])]
        return float((rank - np.arange(len(rank)).mean()).mean() / len(ratios[1]))

    true, ours = auc(controls / "truth.model"), auc(controls / "cpg.model")
    assert ours > true - 0.005
    assert trained.auc == pytest.approx(true, abs=0.02)


def test_report(controls: Path, trained: Any, tmp_path: Path):
    report = json.loads((controls / "report.json").read_text())
    assert report == trained.report
    shifts = np.array(report["methylation_shifts"][:5], float)  # an M at the end needs a k-mer beyond
    np.testing.assert_allclose(shifts, SHIFTS[:5], atol=0.5)
    assert report["kmers"]["plain"]["seen"] == 4096
    assert sum(report["kmers"]["plain"]["coverage"]["kmers"]) == 4096
    assert report["held_out"]["auc"] == trained.auc
    # the reads do not follow the start, which knows nothing of methylation
    comparison = report["comparison"]
    assert comparison["verdict"] == "better"
    assert comparison["start"]["name"] == START
    assert comparison["trained"]["auc"] == trained.auc
    assert (comparison["start"]["auc"] or 0.5) < 0.6
    assert comparison["trained"]["error_rate"] < 0.1
    assert comparison["trained"]["kmer_deviation"] < comparison["start"]["kmer_deviation"] - 0.1
    # the reads do not follow the built-in model
    known = report["held_out"]["known_model"]
    assert (known["name"], known["trained_is_better"]) == ("r9.4_450bps.cpg.6mer", True)
    assert known["auc"] < trained.auc - 0.05
    few: dict[str, Any] = {"rounds": 1, "window": "simulated:1-6000", "force": True}
    f5py.train(**inputs(controls) | few, output=tmp_path / "x.model", report=tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert page.count("<svg") >= 3
    assert "of the built-in model r9.4_450bps.cpg.6mer" in page
    assert not re.search(r'(src|href)="[^#]|@import|<script', page)


def test_only_events_in_the_windows_count(made: ReadSet, tmp_path: Path):
    """Reads that overlap them reach far beyond."""
    reads: dict[str, Any] = {
        "reads": made.reads, "unmethylated": [made.bam], "genome": made.genome, "iop": 1, "rounds": 1, "held_out": 0,
        "output": tmp_path / "x.model",
    }  # fmt: skip
    whole = f5py.train(**reads)
    summary = f5py.train(**reads, window="simulated:3000-3100")
    genome = "".join(made.genome.read_text().splitlines()[1:]).upper()[2999:3100]
    inside = {strand[i : i + 6] for strand in (genome, reverse_complement(genome)) for i in range(len(strand) - 5)}
    letters = np.array(list("ACGT"))[np.arange(4096)[:, None] // 4 ** np.arange(5, -1, -1) % 4]
    kmers = np.array(["".join(one) for one in letters])
    assert set(kmers[summary.n_events > 0]) <= inside
    assert 20 < summary.n_events.sum() < 0.05 * whole.n_events.sum()


def test_a_model_that_is_worse_is_not_written(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """These reads follow the start model, and are too few to tell levels without help."""
    arguments = [
        "-r", made.reads, "--unmethylated", made.bam, "-g", made.genome, "--iop", 1, "--rounds", 1, "--prior-events", 0,
        "-o", tmp_path / "x.model", "--report", tmp_path / "x.json",
    ]  # fmt: skip
    with pytest.raises(F5pyError, match=r"worse than the start model .*: levels of k-mers off by .* \(--force writes"):
        train(*arguments)
    assert list(tmp_path.iterdir()) == []
    train(*arguments, "--force")
    assert "WARNING] worse than the start model" in capfd.readouterr().err
    report = json.loads((tmp_path / "x.json").read_text())
    assert report["comparison"]["verdict"] == "worse"
    assert any("worse than the start model" in text for text in report["warnings"])
    assert read_model(tmp_path / "x.model", "ACGT").k == 6


def test_exchanged_labels_make_no_model(controls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    given = inputs(controls)
    wrong: dict[str, Any] = {"rounds": 1, "methylated": given["unmethylated"], "unmethylated": []}
    with pytest.raises(F5pyError, match=r"that were held out are wrong; the labels look exchanged.*--force writes"):
        f5py.train(**given | wrong | {"start": "r9.4_450bps.cpg.6mer"}, output=tmp_path / "x.model")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_learnt_of_methylation_from_few_reads(made: ReadSet, tmp_path: Path):
    few: dict[str, Any] = {
        "reads": made.reads, "methylated": [made.bam], "unmethylated": [made.bam], "genome": made.genome, "iop": 1,
        "rounds": 1, "output": tmp_path / "x.model",
    }  # fmt: skip
    with pytest.raises(F5pyError, match=r"not one of the .* methylated k-mers that occur has 100 events; .*--force"):
        f5py.train(**few)
    assert list(tmp_path.iterdir()) == []
    f5py.train(**few, force=True)
    assert (tmp_path / "x.model").exists()


def test_same_bytes_for_any_division_of_the_work(made: ReadSet, tmp_path: Path):
    models = []
    for threads, batchsize in ((1, 512), (4, 3)):
        out = tmp_path / f"{threads}.model"
        f5py.train(
            reads=made.reads, methylated=[made.bam], unmethylated=[made.bam], genome=made.genome, iop=1, rounds=2,
            held_out=0, force=True, threads=threads, batchsize=batchsize, output=out,
        )  # fmt: skip
        models.append(out.read_bytes())
    # sums are made read by read, in the order of the alignments
    assert models[0] == models[1]


def test_nucleotide_model_of_unmethylated_reads(controls: Path, tmp_path: Path):
    out = tmp_path / "n.model.gz"
    chosen = {name: value for name, value in inputs(controls).items() if name != "methylated"}
    summary = f5py.train(**chosen, output=out)
    model = read_model(out, "ACGT")
    assert model.k == 6
    error = model.level_mean - builtin(START).level_mean
    assert np.sqrt((error**2).mean()) < 0.3
    assert summary.auc is None


def test_truth_of_a_sample(controls: Path, tmp_path: Path):
    f5py.simulate(
        output=tmp_path / "s", reference=controls / "m/ref.fa", site_rates="0,1,0.5", linked_within=0, coverage=12.0,
        seed=3, meth_model=controls / "truth.model",
    )  # fmt: skip
    lines = [line.split("\t") for line in (tmp_path / "s/truth.tsv").read_text().splitlines()]
    columns = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    with (tmp_path / "truth.bed").open("w") as file:
        for row in columns:
            for strand, at in (("+", int(row["start"])), ("-", int(row["start"]) + 1)):
                fields = (row["chromosome"], at, at + 1, "m", 9, strand, at, at + 1, "0,0,0", 9)
                print(*fields, 100 * float(row["rate"]), *[0] * 7, sep="\t", file=file)
    f5py.train(
        bam=tmp_path / "s/reads.bam", truth=tmp_path / "truth.bed", genome=controls / "m/ref.fa", fast5=tmp_path / "s",
        start=START, threads=2, rounds=3, output=tmp_path / "out.model",
    )  # fmt: skip
    truth, model = read_model(controls / "truth.model", "ACGMT"), read_model(tmp_path / "out.model", "ACGMT")
    is_m, n = plain_ranks(6, "ACGMT", "C") >= 0, counts_of(tmp_path / "out.model")
    error = (model.level_mean - truth.level_mean)[is_m & (n >= 100)]
    assert len(error) > 500
    assert np.sqrt((error**2).mean()) < 0.6


@pytest.mark.shared
def test_real_reads_from_nothing_but_the_order_of_levels(indexed_ecoli: Path, ecoli: Path, tmp_path: Path):
    known = builtin(START)
    letters = np.frombuffer(b"ACGT", np.uint8)[np.arange(4096)[:, None] // 4 ** np.arange(5, -1, -1) % 4]
    order = np.argsort(np.argsort(known.level_mean))
    text = "".join(f"{kmer.tobytes().decode()}\t{place}\n" for kmer, place in zip(letters, order, strict=True))
    (tmp_path / "order.txt").write_text(text)
    aligned = {"reads": indexed_ecoli / "reads.fasta", "genome": ecoli / "ref.fa"}
    model_file = tmp_path / "n.model"
    f5py.train(unmethylated=[ecoli / "reads.bam"], start=tmp_path / "order.txt", rounds=2, output=model_file, **aligned)
    model, n = read_model(tmp_path / "n.model", "ACGT"), counts_of(tmp_path / "n.model")
    well_seen = n >= 100
    assert well_seen.sum() > 2_500
    assert np.corrcoef(model.level_mean[well_seen], known.level_mean[well_seen])[0, 1] > 0.98
    tables = [
        f5py.call_methylation(bam=ecoli / "reads.bam", kmer_model=name, returns="pandas", **aligned)
        for name in (tmp_path / "n.model", START)
    ]
    keys = ["chromosome", "strand", "start", "read_name"]
    both = tables[0].astype({key: str for key in keys}).merge(tables[1].astype({key: str for key in keys}), on=keys)
    assert len(both) > 0.9 * len(tables[1])
    assert both.log_lik_ratio_x.corr(both.log_lik_ratio_y) > 0.95


def test_signals_are_opened_once(made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And closed at the end, also if a pass over the reads is broken off."""
    opened, open_signals = [], train_command.open_signals_of

    def open_them(*given: Any) -> Any:
        opened.append(open_signals(*given))
        return opened[-1]

    monkeypatch.setattr(train_command, "open_signals_of", open_them)
    few: dict[str, Any] = {
        "reads": made.reads, "unmethylated": [made.bam] * 2, "genome": made.genome, "iop": 2, "threads": 2,
        "batchsize": 1, "rounds": 2,
    }  # fmt: skip
    f5py.train(**few, output=tmp_path / "two.model")
    monkeypatch.setattr(train_command.KmerSums, "add", failing("it is full"))
    with pytest.raises(F5pyError, match="it is full"):
        f5py.train(**few, output=tmp_path / "none.model")
    assert len(opened) == 2
    for signals in opened:
        with pytest.raises(SignalError):
            signals.fetch(made.names[:1])


def failing(text: str) -> Any:
    def fail(*_: Any) -> None:
        raise F5pyError(text)

    return fail


def test_model_text_is_read_back():
    random = np.random.default_rng(1)
    model = PoreModel("m", 2, "ACGMT", random.normal(90, 9, 25).astype(np.float32), np.full(25, 2, np.float32))
    text = b"".join(model_text(model, np.arange(25.0), "cpg", "made")).decode()
    assert text.splitlines()[:5] == [
        "#model_name\tf5py_train", "#source\tmade", "#k\t2", "#alphabet\tcpg",
        "kmer\tlevel_mean\tlevel_stdv\tsd_mean\tsd_stdv\tweight",
    ]  # fmt: skip
    assert text.splitlines()[8].startswith("AM\t")
    assert text.splitlines()[8].endswith("\t3")
