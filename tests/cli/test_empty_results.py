"""Results without a row although reads were aligned: a line says why."""

from __future__ import annotations

from pathlib import Path

import pysam
import pytest

from ..made_data import ReadSet, run_command


@pytest.fixture
def between_sites(made: ReadSet) -> str:
    """Name the longest stretch without a CpG, without its ends."""
    with pysam.FastaFile(str(made.genome)) as reference:
        (contig,) = reference.references
        bases = reference.fetch(contig).upper()
    sites = [i for i in range(len(bases) - 1) if bases[i : i + 2] == "CG"]
    end, begin = max(zip(sites[1:], sites, strict=False), key=lambda pair: pair[0] - pair[1])
    return f"{contig}:{begin + 10}-{end - 10}"


def warnings(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capfd.readouterr().err.splitlines() if "::WARNING]" in line]


@pytest.mark.parametrize("parts", [(), ("--resume",)])
def test_calls(
    made: ReadSet, between_sites: str, tmp_path: Path, parts: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "calls.tsv"
    assert run_command("call-methylation", *made.options(), "-o", out, "-w", between_sites, *parts) == 0
    assert out.read_text().count("\n") == 1
    (line,) = warnings(capfd)
    assert f"cover no site of cpg in {between_sites} with enough bases on both sides; there are no calls" in line


def test_results_with_rows_need_no_words(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command("call-methylation", *made.options(), "-o", tmp_path / "calls.tsv") == 0
    assert warnings(capfd) == []


def test_events(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A window that is smaller than a k-mer."""
    contig = made.records()[0].references[0]
    place = max(record.reference_start for record in made.records()[1]) + 300
    out = tmp_path / "events.tsv"
    assert run_command("eventalign", *made.options(), "-o", out, "-w", f"{contig}:{place}-{place + 1}") == 0
    assert out.read_text().count("\n") == 1
    (line,) = warnings(capfd)
    assert f"have no events on k-mers of the reference in {contig}:{place}-{place + 1}; the table has no rows" in line
