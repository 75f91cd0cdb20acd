"""``f5py simulate`` as a command."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import f5py
from f5py.compute.chemistry import R10_DNA, chemistry_of

from ..made_data import run_command
from ..patience import PATIENCE


def test_writes_a_data_set_and_tells(tmp_path, capsys):
    out = tmp_path / "new" / "sim"
    args = ["-o", out, "--genome-length", "3K", "-n", "4", "--length", "500", "--ultra-long", "2K"]
    assert run_command("simulate", *args, "--methylation", "per-read", "--methylated-reads", "1", "--strand", "-") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "5 reads, 4000 bases (longest read 2000)" in captured.err
    rows = (out / "truth_reads.tsv").read_text().splitlines()[1:]
    assert rows
    assert all(row.split("\t")[2] == "-" and row.endswith("\t1") for row in rows)
    assert run_command("simulate", *args) == 1
    assert "is not empty" in capsys.readouterr().err
    assert run_command("simulate", *args, "--force", "--no-read-truth", "--fasta") == 0
    assert not (out / "truth_reads.tsv").exists()
    assert not (out / "reads.fastq").exists()


def test_interrupt_leaves_nothing(tmp_path):
    code = "import sys; from f5py.cli import main; main(sys.argv[1:])"
    out = tmp_path / "out"
    arguments = ["simulate", "-o", str(out), "--genome-length", "10K", "-n", "100000", "--length", "200"]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    try:
        while not list(out.glob(".unfinished-*/fast5/*")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130, messages
    assert "interrupted" in messages
    assert messages.strip().count("\n") == 0, messages
    assert list(out.iterdir()) == []


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
