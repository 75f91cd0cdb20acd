"""``f5py simulate`` as a command."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

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
