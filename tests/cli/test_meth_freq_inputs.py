"""``f5py meth-freq`` of tags and bedMethyl, and with the counts of strands."""

from __future__ import annotations

import gzip
import math
import subprocess
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pysam
import pytest

from ..made_data import ReadSet, process_of, refused, run_command, run_process, start_process


@pytest.fixture(scope="module")
def outputs(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    names = ("-o", folder / "calls.tsv", "--modbam", folder / "calls.bam", "--bedmethyl", folder / "calls.bed")
    assert run_command("call-methylation", *made.options(), *names, "--modbam-style", "reference") == 0
    return folder


def counted(capfd: pytest.CaptureFixture[str], *arguments: object) -> list[list[str]]:
    """Run the command and return the rows of its output, the header first."""
    capfd.readouterr()
    assert run_command("meth-freq", *arguments) == 0
    return [line.split("\t") for line in capfd.readouterr().out.splitlines()]


def test_tags_say_what_the_table_does(outputs: Path, capfd):
    """A value of ML is one of 256 equal parts of the probability: their borders are thresholds that both know."""
    rows = [line.split("\t") for line in (outputs / "calls.tsv").read_text().splitlines()[1:]]
    ratios = np.abs([float(row[5]) for row in rows])
    n_compared = 0
    for border in range(129, 256, 9):
        threshold = math.log(border / (256 - border))
        if np.abs(ratios - threshold).min() < 0.006:  # the table rounds to two decimals
            continue
        of_table = counted(capfd, "-s", outputs / "calls.tsv", "-c", threshold)
        of_tags = counted(capfd, outputs / "calls.bam", "-c", threshold)
        assert [row[:7] for row in of_tags] == [row[:7] for row in of_table]
        n_compared += 1
    assert n_compared > 5


@pytest.mark.parametrize("options", [(), ("--min-coverage", 2), ("--stranded",)])
def test_bedmethyl_says_what_the_table_does(outputs: Path, options: tuple, capfd):
    of_table = counted(capfd, "-s", outputs / "calls.tsv", *options)
    of_sites = counted(capfd, outputs / "calls.bed", *options)
    assert [row[:7] + row[8:] for row in of_sites] == [row[:7] + row[8:] for row in of_table]
    assert len(of_sites) > 20
    for row in of_sites[1:]:
        assert int(row[4]) >= (2 if "--min-coverage" in options else 1)
        if options == ("--stranded",):
            called, methylated, *strands = (int(row[i]) for i in (4, 5, 8, 9, 10, 11))
            assert (called, methylated) == (strands[0] + strands[2], strands[1] + strands[3])
            assert strands[2] > 0 or strands[0] > 0


def test_bedmethyl_comes_out_as_it_went_in(outputs: Path, tmp_path: Path, capfd):
    """Also with blanks between its last columns, as early modkit wrote it, and with a header, through a pipe."""
    own = (outputs / "calls.bed").read_text()
    again = tmp_path / "again.bed"
    assert run_command("meth-freq", outputs / "calls.bed", "-o", again) == 0
    assert again.read_text() == own
    rows = [line.split("\t") for line in own.splitlines()]
    blanks = "".join("\t".join(row[:10]) + " " + " ".join(row[10:]) + "\n" for row in rows)
    done = run_process(process_of("meth-freq", "--bedmethyl"), input="#chrom\tstart\n" + blanks, text=True)
    assert (done.returncode, done.stdout) == (0, own)
    combined = tmp_path / "combined.bed"
    assert run_command("meth-freq", outputs / "calls.tsv", "--bedmethyl", "--combine-strands", "-o", combined) == 0
    assert counted(capfd, combined) == counted(capfd, outputs / "calls.bed")


def test_tags_as_bedmethyl_parquet_and_two_files(outputs: Path, tmp_path: Path, capfd):
    sites, table = tmp_path / "x.bed", tmp_path / "x.parquet"
    calls = outputs / "calls.bam"
    threshold = math.log(236 / 20)
    assert run_command("meth-freq", calls, "-o", sites, "-c", threshold) == 0
    assert counted(capfd, sites) == counted(capfd, calls, "-c", threshold)
    assert run_command("meth-freq", calls, calls, "-o", table, "-c", threshold, "--stranded") == 0
    rows = pyarrow.parquet.read_table(table)
    text = counted(capfd, calls, "-c", threshold, "--stranded")
    assert rows.column_names == text[0]
    assert rows["called_sites_reverse"].to_pylist() == [2 * int(row[10]) for row in text[1:]]


def test_the_reference_says_where_sites_are(made: ReadSet, tmp_path: Path, capfd):
    """With it, the calls of a read whose own bases differ count as well: those of call-methylation itself."""
    calls, sites = tmp_path / "calls.bam", tmp_path / "calls.bed"
    assert run_command("call-methylation", *made.options(), "-o", tmp_path / "calls.tsv", "--modbam", calls) == 0
    threshold = math.log(236 / 20)
    counts = [
        sum(int(row[4]) for row in counted(capfd, path, "-c", threshold, *options)[1:])
        for path, options in ((calls, ()), (calls, ("-g", made.genome)), (tmp_path / "calls.tsv", ("-s",)))
    ]
    assert counts[0] < counts[1] < counts[2]  # those of bases that the read lacks are in the table only
    with pysam.AlignmentFile(str(calls)) as records, pysam.FastaFile(str(made.genome)) as genome:
        expected = 0
        for record in records:
            pairs = dict(record.get_aligned_pairs(matches_only=True))
            bases = genome.fetch(record.reference_name)
            for places in record.modified_bases.values():
                for place, value in places:
                    at = pairs.get(place, -2) - record.is_reverse
                    expected += bases[at : at + 2] == "CG" and (value >= 236 or value <= 19)
    assert counts[1] == expected
    assert not sites.exists()


def test_counts_of_strands_are_added_up(outputs: Path, tmp_path: Path, capfd):
    half, all_of_it = tmp_path / "half.tsv", tmp_path / "all.tsv"
    assert run_command("meth-freq", outputs / "calls.tsv", "--stranded", "-o", half) == 0
    assert run_command("freq-merge", half, half, "-o", all_of_it) == 0
    once, twice = ([line.split("\t") for line in path.read_text().splitlines()] for path in (half, all_of_it))
    assert once[0] == twice[0]
    for one, other in zip(once[1:], twice[1:], strict=True):
        assert [*one[:4], *one[6:8]] == [*other[:4], *other[6:8]]
        assert [2 * int(one[i]) for i in (4, 5, 8, 9, 10, 11)] == [int(other[i]) for i in (4, 5, 8, 9, 10, 11)]
    plain = tmp_path / "plain.tsv"
    assert run_command("meth-freq", outputs / "calls.tsv", "-o", plain) == 0
    assert "counts of both strands" in refused(capfd, "freq-merge", half, plain)
    half.write_text(half.read_text().replace("\t1\t1\t0\t0\n", "\t1\t1\t1\t0\n", 1))
    assert "do not fit" in refused(capfd, "freq-merge", half)


@pytest.mark.parametrize("options", [(), ("-o", "sites.bed"), ("--stranded", "-c", "1")])
@pytest.mark.parametrize("kind", ["bam", "uncompressed", "sam", "cram"])
def test_alignments_through_standard_input(
    outputs: Path, made: ReadSet, tmp_path: Path, kind: str, options: tuple[str, ...]
) -> None:
    """In one pass, byte by byte, and told from text by their first bytes; what they are named is of no account."""
    form = {"bam": "wb", "uncompressed": "wbu", "sam": "wh", "cram": "wc"}[kind]
    source = tmp_path / "source"
    with (
        pysam.AlignmentFile(str(outputs / "calls.bam")) as records,
        pysam.AlignmentFile(str(source), form, template=records, reference_filename=str(made.genome)) as out,
    ):
        for record in records:
            out.write(record)
    arguments = [*options, "-g", str(made.genome)]
    found = []
    for name, content in ((str(outputs / "calls.bam"), b""), ("-", source.read_bytes())):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        done = start_process(process_of("meth-freq", name, *arguments), cwd=tmp_path, **pipes)
        assert done.stdin is not None
        for i in range(min(len(content), 40)):  # as a slow writer sends it
            done.stdin.write(content[i : i + 1])
            done.stdin.flush()
        out, messages = done.communicate(content[40:])
        assert done.returncode == 0, messages.decode()
        found.append((tmp_path / "sites.bed").read_bytes() if "sites.bed" in options else out)
    assert found[0] == found[1]
    assert found[0].count(b"\n") > 20


def test_cut_alignments_through_standard_input_are_refused(outputs: Path, tmp_path: Path) -> None:
    content = (outputs / "calls.bam").read_bytes()
    for cut in (len(content) // 2, len(content) - 28):
        done = run_process(process_of("meth-freq", "-", "-o", "out.tsv"), input=content[:cut], cwd=tmp_path)
        assert done.returncode == 1
        assert b"standard input" in done.stderr
        assert b"Traceback" not in done.stderr
        assert not (tmp_path / "out.tsv").exists()


def test_text_through_standard_input_is_still_text(outputs: Path, tmp_path: Path) -> None:
    """Compressed or not, alone or beside a file, and if there is nothing."""
    table = (outputs / "calls.tsv").read_bytes()

    def told(content: bytes, *arguments: str) -> bytes:
        done = run_process(process_of("meth-freq", *arguments), input=content)
        assert done.returncode == 0, done.stderr
        return done.stdout

    expected = told(b"", str(outputs / "calls.tsv"))
    assert told(table) == told(gzip.compress(table)) == told(table, "-") == told(table, "-i", "-") == expected
    twice = told(b"", str(outputs / "calls.tsv"), str(outputs / "calls.tsv"))
    assert told(table, "-", str(outputs / "calls.tsv")) == told(table, str(outputs / "calls.tsv"), "-") == twice
    done = run_process(process_of("meth-freq", "-"), input=b"BA")
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    mixed = run_process(process_of("meth-freq", "-", outputs / "calls.tsv"), input=(outputs / "calls.bam").read_bytes())
    assert mixed.returncode == 2
    assert b"cannot be counted together" in mixed.stderr
