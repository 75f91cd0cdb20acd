"""Tables named .csv have what those named .tsv have, in real CSV."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import pytest

from ..made_data import ReadSet, refused, run_command


def cells(path: Path) -> list[list[str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="") as file:
        if ".csv" in path.suffixes:
            return list(csv.reader(file, strict=True))
        return [line.rstrip("\n").split("\t") for line in file]


@pytest.fixture(scope="module")
def tables(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Every table of text, as .tsv, .csv and .csv.gz."""
    folder = tmp_path_factory.mktemp("tables")
    by_command: dict[str, list[Path]] = {}

    def run(command: str, name: str, *options: Any, **others: str) -> None:
        for ending in ("tsv", "csv", "csv.gz"):
            named = [
                word for other in others for word in (f"--{other.replace('_', '-')}", folder / f"{other}.{ending}")
            ]
            out = folder / f"{name}.{ending}"
            assert run_command(command, *options, "-o", out, *named) == 0
            for path in (out, *(word for word in named if isinstance(word, Path))):
                by_command.setdefault(path.name.partition(".")[0], []).append(path)

    few = made.with_records(folder, made.records()[1][:8])
    limited = [*few.options(), "--qc-max-events-per-base", "1.75"]
    run("call-methylation", "calls", *limited, failed_reads="")
    run("eventalign", "events", *few.options(), "--samples", "--signal-index", summary="")
    run("eventalign", "m6anet", *few.options(), "--m6anet")
    run("resquiggle", "moves", made.reads, made.signal_path, "--iop", "1")
    run("fast5-check", "check", "-r", made.reads, "--iop", "1")
    run("meth-freq", "frequencies", "-i", folder / "calls.tsv", "-s", "-c", "0", "--stranded")
    run("freq-merge", "sums", folder / "frequencies.tsv", folder / "frequencies.tsv")
    run("compare", "compared", folder / "events.tsv", folder / "events.tsv", "--by", "kmer", "--min-coverage", "3")
    return by_command


def test_tables_are_the_same(tables: dict[str, list[Path]]) -> None:
    assert len(tables) == 10
    for name, (tsv, plain, packed) in tables.items():
        expected = cells(tsv)
        assert len(expected) > 1, name
        assert cells(plain) == cells(packed) == expected, name
        assert b"\t" not in plain.read_bytes(), name
        assert b"\r" not in plain.read_bytes(), name


def test_samples_are_one_value(tables: dict[str, list[Path]]) -> None:
    header, *rows = cells(tables["events"][1])
    samples = header.index("samples")
    assert any("," in row[samples] for row in rows)
    assert {len(row) for row in rows} == {len(header)}


@pytest.mark.parametrize("command", ["call-methylation", "eventalign"])
def test_runs_in_parts(command: str, made: ReadSet, tmp_path: Path) -> None:
    """The text of parts has tabs, the output commas; it is not the file of the parts under another name."""
    options = ["--samples"] if command == "eventalign" else []
    summary = ["--summary", tmp_path / "whole_summary.csv"] if command == "eventalign" else []
    assert run_command(command, *made.options(), *options, *summary, "-o", tmp_path / "whole.csv") == 0
    summary = ["--summary", tmp_path / "summary.csv"] if command == "eventalign" else []
    for parts in (["--resume"], ["--plan", tmp_path / "plan"]):
        out = tmp_path / "parts.csv"
        words = [*made.options(), *options, *summary, *parts, "--partitions", "3", "-o", out]
        assert run_command(command, *words) == 0
        if "--plan" in parts:
            assert run_command("run-part", tmp_path / "plan") == 0
            assert run_command("finish", tmp_path / "plan") == 0
        assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
        out.unlink()
        if summary:
            assert (tmp_path / "summary.csv").read_bytes() == (tmp_path / "whole_summary.csv").read_bytes()


def test_the_option_overrides_the_name(
    made: ReadSet, made_calls: bytes, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    name = tmp_path / "calls.csv"
    assert run_command("call-methylation", *made.options(), "-o", name, "--output-format", "tsv") == 0
    assert name.read_bytes() == made_calls
    assert run_command("call-methylation", *made.options(), "-o", name) == 0
    capfdbinary.readouterr()
    assert run_command("call-methylation", *made.options(), "--output-format", "csv") == 0
    assert capfdbinary.readouterr().out == name.read_bytes()
    assert run_command("meth-freq", "-i", "calls.tsv", "--output-format", "csv", "--bedmethyl") == 2


def test_merged_tables(tables: dict[str, list[Path]], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("calls", "events"):
        tsv, plain, packed = tables[name]
        assert run_command("merge", plain, packed, "-o", tmp_path / "both.csv") == 0
        rows = cells(tsv)
        assert cells(tmp_path / "both.csv") == [*rows, *rows[1:]]
        line = refused(capfd, "merge", tsv, tsv, "-o", tmp_path / "other.csv", status=2)
        assert line.endswith("other.csv: would be csv, and the files are tsv; give another name")


def test_csv_is_not_read(tables: dict[str, list[Path]], capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    calls, events, frequencies = (tables[name][1] for name in ("calls", "events", "frequencies"))
    for words in (
        ["meth-freq", "-i", calls],
        ["freq-merge", frequencies],
        ["summary", calls],
        ["compare", events, events, "-o", tmp_path / "x.tsv"],
    ):
        line = refused(capfd, *words, status=1)
        assert line.endswith("has commas between its columns; give the table as .tsv or Parquet"), words
