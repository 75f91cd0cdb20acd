"""CpG calls of R10.4.1 with the built-in model: on real unmethylated reads, and on simulated ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import f5py
from f5py.compute.chemistry import R10_DNA, chemistry_of


@pytest.mark.shared
def test_few_accurate_calls_of_unmethylated_reads_are_wrong(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = shared_data / "r10_wga"
    calls = f5py.call_methylation(
        reads=source / "reads.fastq", bam=source / "reads.bam", genome=source / "ref.fa", slow5=source / "reads.blow5",
        pore="r10", accurate=True, returns="pandas",
    )  # fmt: skip
    assert len(calls) > 1_000
    beyond = calls.log_lik_ratio[calls.log_lik_ratio.abs() > 2]
    assert len(beyond) >= 0.55 * len(calls)
    assert (beyond > 0).mean() <= 0.02
    assert capsys.readouterr().err.count("f5py train --unlabeled") == 1


def test_simulated_reads_are_told_apart(tmp_path: Path):
    size = {"n_reads": 30, "genome_length": 30_000, "median_length": 3_000}
    f5py.simulate(output=tmp_path, pore="r10", methylation="per-read", seed=3, **size)
    calls = f5py.call_methylation(
        bam=tmp_path / "reads.bam", genome=tmp_path / "ref.fa", fast5=tmp_path / "fast5", returns="pandas"
    )
    lines = [line.split("\t") for line in (tmp_path / "truth_reads.tsv").read_text().splitlines()[1:]]
    truth = {line[0]: line[4] == "1" for line in lines}
    state = np.array([truth[name] for name in calls.read_name])
    rank = np.argsort(np.argsort(calls.log_lik_ratio.to_numpy()))
    n, m = state.sum(), (~state).sum()
    assert (rank[state].sum() - n * (n - 1) / 2) / n / m > 0.95


def test_simulated_files_say_their_pore(tmp_path: Path):
    from f5py.io.signals import open_signals

    f5py.simulate(output=tmp_path, pore="r10", n_reads=2, genome_length=3_000, median_length=1_000, seed=3)
    signals = open_signals(None, fast5=[str(tmp_path / "fast5")])
    try:
        info = signals.run_info(signals.first_names(2))
    finally:
        signals.close()
    assert chemistry_of(None, False, info, False) == R10_DNA
