"""``meth-freq --format dss``, ``methylkit`` and ``bismark``: tables as the documents of these formats have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..made_data import run_command

HEADER = (
    "chromosome\tstrand\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\tnum_motifs\tsequence\n"
)
#: Three calls of the CpG at 10, one of them on the reverse strand; a group of two at 20 and 25; one that is not sure.
CALLS = [
    ("+", 10, 10, "5.00", 1, "AAAAACGAAAA"),
    ("+", 10, 10, "-4.00", 1, "AAAAACGAAAA"),
    ("-", 10, 10, "6.00", 1, "AAAAACGAAAA"),
    ("+", 20, 25, "-9.00", 2, "AAAAACGAAACGAAAA"),
    ("+", 40, 40, "1.00", 1, "AAAAACGAAAA"),
]
#: DSS: chr, pos, N, X (vignette of DSS, section 3.1). methylKit: vignette, section 2.1; freqC and freqT are per cent.
#: Bismark's coverage: chromosome, start, end, percentage, methylated, unmethylated (its manual, "coverage output").
STRANDS = {
    "dss": "chr\tpos\tN\tX\nc1\t11\t2\t1\nc1\t12\t1\t1\nc1\t21\t1\t0\nc1\t26\t1\t0\n",
    "methylkit": (
        "chrBase\tchr\tbase\tstrand\tcoverage\tfreqC\tfreqT\n"
        "c1.11\tc1\t11\tF\t2\t50.0000\t50.0000\nc1.12\tc1\t12\tR\t1\t100.0000\t0.0000\n"
        "c1.21\tc1\t21\tF\t1\t0.0000\t100.0000\nc1.26\tc1\t26\tF\t1\t0.0000\t100.0000\n"
    ),
    "bismark": (
        "c1\t11\t11\t50.000000\t1\t1\nc1\t12\t12\t100.000000\t1\t0\nc1\t21\t21\t0.000000\t0\t1\n"
        "c1\t26\t26\t0.000000\t0\t1\n"
    ),
}
COMBINED = {
    "dss": "chr\tpos\tN\tX\nc1\t11\t3\t2\nc1\t21\t1\t0\nc1\t26\t1\t0\n",
    "methylkit": (
        "chrBase\tchr\tbase\tstrand\tcoverage\tfreqC\tfreqT\n"
        "c1.11\tc1\t11\tF\t3\t66.6667\t33.3333\nc1.21\tc1\t21\tF\t1\t0.0000\t100.0000\n"
        "c1.26\tc1\t26\tF\t1\t0.0000\t100.0000\n"
    ),
    "bismark": "c1\t11\t11\t66.666667\t2\t1\nc1\t21\t21\t0.000000\t0\t1\nc1\t26\t26\t0.000000\t0\t1\n",
}


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    rows = [
        f"c1\t{strand}\t{start}\t{end}\tread\t{ratio}\t-1.00\t-1.00\t1\t{n}\t{sequence}\n"
        for strand, start, end, ratio, n, sequence in CALLS
    ]
    (tmp_path / "calls.tsv").write_text(HEADER + "".join(rows))
    return tmp_path / "calls.tsv"


@pytest.mark.parametrize("kind", STRANDS)
def test_rows(kind: str, calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command("meth-freq", calls, "--format", kind) == 0
    assert capfd.readouterr().out == STRANDS[kind]
    assert run_command("meth-freq", calls, "--format", kind, "--combine-strands", "-o", tmp_path / "x.txt") == 0
    assert (tmp_path / "x.txt").read_text() == COMBINED[kind]
    assert run_command("meth-freq", calls, "--bedmethyl", "-o", tmp_path / "x.bed") == 0
    assert run_command("meth-freq", tmp_path / "x.bed", "--output-format", kind, "-o", tmp_path / "y.txt") == 0
    assert (tmp_path / "y.txt").read_text() == STRANDS[kind]
    assert run_command("meth-freq", calls, "--format", kind, "--min-coverage", 2, "-o", tmp_path / "z.txt") == 0
    rows = (tmp_path / "z.txt").read_text().splitlines()
    assert rows == [line for line in STRANDS[kind].splitlines() if "11" in line.split("\t")[1:3] or line[:2] == "ch"]


def test_the_score_of_bedmethyl_is_one_of_bed(calls: Path, tmp_path: Path) -> None:
    """It is at most 1000; the number of calls is in column 10."""
    header, first = calls.read_text().splitlines(keepends=True)[:2]
    calls.write_text(header + first * 1500)
    assert run_command("meth-freq", calls, "-o", tmp_path / "x.bed") == 0
    row = (tmp_path / "x.bed").read_text().split("\t")
    assert (row[4], row[9], row[11]) == ("1000", "1500", "1500")
