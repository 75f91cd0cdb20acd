"""``f5py demo`` as a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from f5py.cli import options

from ..made_data import run_command

CALLED = (
    "chromosome\tstart\tend\tnum_motifs_in_group\tcalled_sites\tcalled_sites_methylated\tmethylated_frequency\t"
    "group_sequence\n"
)
TRUE = "chromosome\tstart\tend\tn_reads\tn_methylated\tfrequency\trate\n"


def test_calls_agree_with_the_truth(tmp_path, capsys):
    place = tmp_path / "demo"
    assert run_command("demo", str(place), "--seed", "3", "-t", "2") == 0
    captured = capsys.readouterr()
    match = re.search(r"Pearson correlation over ([\d,]+) sites of 5 or more calls: ([\d.]+)", captured.out)
    assert match
    assert int(match[1].replace(",", "")) > 500
    assert float(match[2]) > 0.95
    shown = re.findall(r"^\[demo\] f5py (\S+)", captured.err, flags=re.MULTILINE)
    assert "[demo] everything works: called and true frequencies correlate with 0.9" in captured.err
    assert shown == ["simulate", "index", "call-methylation", "meth-freq", "validate"]
    assert (place / "calls.tsv").stat().st_size > 100_000
    assert (place / "freq.tsv").exists()


def fake_steps(true: list[float], called: list[float]):
    """Make steps that write the tables of a caller that calls `called` where the truth is `true`."""

    def step(name: str, args: list[str]) -> None:
        if name == "simulate":
            rows = [f"a\t{i}\t{i}\t10\t{10 * value:g}\t{value}\t0.5\n" for i, value in enumerate(true)]
            (Path(args[args.index("-o") + 1]) / "truth.tsv").write_text(TRUE + "".join(rows))
        if name == "meth-freq":
            rows = [f"a\t{i}\t{i}\t1\t10\t{10 * value:g}\t{value}\tx\n" for i, value in enumerate(called)]
            Path(args[args.index("-o") + 1]).write_text(CALLED + "".join(rows))

    return step


@pytest.mark.parametrize("called", [[1.0, 0.5, 0.0], [0.4, 0.4, 0.4]])
def test_a_wrong_result_is_an_error(tmp_path, capsys, monkeypatch, called):
    monkeypatch.setattr(options, "run_step", fake_steps([0.0, 0.5, 1.0], called))
    assert run_command("demo", str(tmp_path / "demo")) == 1
    captured = capsys.readouterr()
    assert "true frequency" in captured.out
    assert "do not follow" in captured.err


def test_uses_only_its_own_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(options, "run_step", fake_steps([0.0, 1.0], [0.0, 1.0]))
    (tmp_path / "mine.txt").write_text("keep")
    assert run_command("demo", str(tmp_path)) == 1
    assert "not a demo's" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert run_command("demo", str(tmp_path / "mine.txt")) == 1
    assert "is not a folder" in capsys.readouterr().err
    assert run_command("demo", str(tmp_path), "--force") == 0
    assert (tmp_path / "mine.txt").read_text() == "keep"
    assert run_command("demo", str(tmp_path)) == 0  # it is a demo's folder now


def test_a_failing_step_leaves_no_old_result(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(options, "run_step", fake_steps([0.0, 1.0], [0.0, 1.0]))
    assert run_command("demo", str(tmp_path / "demo")) == 0

    def fail(name: str, args: list[str]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(options, "run_step", fail)
    assert run_command("demo", str(tmp_path / "demo")) == 1
    assert "No space left" in capsys.readouterr().err
    assert not (tmp_path / "demo" / "freq.tsv").exists()
