"""Options of ``f5py call-methylation``: usage, profiles, regions, filters, and that the output is always the same."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pysam
import pytest

from ..made_data import N_READS, error_line, last_of_each, refused, rows_by_read, run_main, run_process


@pytest.fixture
def call(made, tmp_path, capfd):
    """Run on the made set (or another) and return the output and the messages."""

    def run(*options, reads=made, says_iop=True):
        out = tmp_path / "calls.tsv"
        assert run_main(*last_of_each([*(reads.options() if says_iop else reads.inputs()), "-o", out, *options])) == 0
        return out.read_bytes(), capfd.readouterr().err

    return run


# Usage


@pytest.mark.parametrize(
    ("value", "count"),
    [("1", 1), ("2.5", 2), ("2.6", 3), ("500K", 500_000), ("0.5m", 500_000), ("5M", 5_000_000), ("1G", 10**9)],
)
def test_numbers_of_bases(value, count):
    from f5py.cli.options import BaseCount

    assert BaseCount()(value) == count


# Profiles


def profile_line(messages):
    (line,) = [line for line in messages.splitlines() if line.startswith("[set_opt_profile]")]
    return line


def test_profile_stands_in_for_options_not_given(call, made_calls):
    """Wherever -x stands; options given explicitly win, also with their default's value."""
    given = ["-K", "512", "-B", "1M"]
    lines = []
    for options in (["-x", "laptop-low", *given], [*given, "-x", "laptop-low"]):
        output, told = call(*options, says_iop=False)
        assert output == made_calls
        lines.append(profile_line(told))
    assert lines[0] == lines[1]
    assert "K: 512, B: 1.0M, t: 2," in lines[0]  # -t 2 is given too
    assert "max-lf: 5.0" in lines[0]
    _, told = call("-x", "laptop-low", says_iop=False)
    assert "K: 256, B: 1.5M, t: 2, ultra-thresh: 100.0k, iop: 1" in profile_line(told)
    assert "iop: 2" in profile_line(call("-x", "laptop", says_iop=False)[1])


def test_profile_file(call, made_calls, tmp_path):
    file = tmp_path / "mine"
    file.write_text("4.5 2\n6 7 -1\t3 1000\n")
    output, told = call("-x", file, says_iop=False)
    assert output == made_calls
    expected = "max-lf: 4.5, avg-epk: 2.0, max-epk: 6.0, K: 7, B: 5.0M, t: 2, ultra-thresh: 1.0k, iop: auto"
    assert expected in profile_line(told)
    assert told.count("loaded") == -(-N_READS // 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "neither a readable profile file nor one of the profiles desktop, desktop-high"),
        ("1 2 3 4 5 6", "a profile file has seven numbers"),
        ("1 2 3 4 5 six 7", "a profile file has seven numbers"),
        ("1 2 3 nan 5 6 7", "a profile file has seven numbers"),
        ("1 2 3 0 5 6 7", "are positive, or -1"),
        ("-2 2 3 4 5 6 7", "are positive, or -1"),
        ("nan 2 3 4 5 6 7", "are positive, or -1"),
        ("1 inf 3 4 5 6 7", "are positive, or -1"),
        (b"\xff\xfe\x00", "neither a readable profile file"),
    ],
)
def test_wrong_profile(made, tmp_path, capfd, text, message):
    file = tmp_path / "mine"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    line = refused(capfd, "call-methylation", "-x", file, *made.options())
    assert str(file) in line
    assert message in line


# Regions


def rows_inside(table, windows, clip=False):
    """Select the header and rows whose first site (and, to `clip`, last one) lies in one of one contig's windows."""
    header, *rows = table.splitlines(keepends=True)
    places = [[int(field) for field in row.split(b"\t")[2:4]] for row in rows]
    inside = [any(s <= first < e and (last < e or not clip) for s, e in windows) for first, last in places]
    return header + b"".join(row for row, wanted in zip(rows, inside, strict=True) if wanted)


@pytest.mark.parametrize(
    ("region", "window"),
    [
        ("simulated", (0, 12_000)),
        ("simulated:4000", (3999, 12_000)),
        ("simulated:3,001-6,000", (3000, 6000)),
        ("simulated:-5000", (0, 5000)),
        ("simulated:5000-99999", (4999, 12_000)),
    ],
)
def test_region(call, made_calls, region, window):
    output, told = call("-w", region)
    assert output == rows_inside(made_calls, [window])
    assert output.count(b"\n") > 20
    assert f"Iterating over region: {region}\n" in told


def test_windows_side_by_side_have_each_group_once(call, made_calls, tmp_path):
    rows = made_calls.splitlines()[1:]
    ends = sorted({int(row.split(b"\t")[3]) for row in rows if row.split(b"\t")[2] != row.split(b"\t")[3]})
    borders = [0, *ends[:: len(ends) // 6], 12_000]  # each within a group
    parts, clipped = [], []
    for start, end in pairwise(borders):
        (bed := tmp_path / "window.bed").write_text(f"simulated\t{start}\t{end}\n")
        parts += call("-w", bed)[0].splitlines()[1:]
        clipped += call("-w", bed, "--window-mode", "clip")[0].splitlines()[1:]
    assert sorted(parts) == sorted(rows)
    assert set(clipped) < set(rows)


def test_clipped_region_ends_at_its_last_site(call, made_calls):
    places = [[int(field) for field in row.split(b"\t")[2:4]] for row in made_calls.splitlines()[200:]]
    start, end = next(place for place in places if place[0] < place[1])
    for region, count in (((start, end), 1), ((start + 1, end), 0), ((start, end - 1), 0)):
        output, _ = call("-w", f"simulated:{region[0] + 1}-{region[1] + 1}", "--window-mode", "clip")
        rows = [row.split(b"\t")[2:4] for row in output.splitlines()[1:]]
        assert ([str(start).encode(), str(end).encode()] in rows) == bool(count)


def test_bed_windows_put_each_read_out_once(call, made_calls, tmp_path):
    """Windows in any order, overlapping, several to a read, and longer than the contig."""
    rng = np.random.default_rng(1)
    for trial in range(4):
        starts = rng.integers(0, 11_900, 12)
        windows = [(int(start), int(start + rng.integers(1, 700))) for start in starts]
        windows += [(start, end + 50) for start, end in windows[:2]]
        bed = tmp_path / f"{trial}.bed"
        lines = [f"simulated\t{start}\t{end}\tname\n" for start, end in windows]
        bed.write_text("track name=x\n# comment\n\n" + "".join(lines))
        output, told = call("-w", bed, "-K", "3")
        merged: list[list[int]] = []
        for start, end in sorted(windows):
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        assert output == rows_inside(made_calls, merged)
        assert output.count(b"\n") > 20
        names = [row.split(b"\t")[4] for row in output.splitlines()[1:]]
        assert len(set(names)) == 1 + sum(a != b for a, b in pairwise(names))
        (total,) = [line for line in told.splitlines() if "total entries: " in line]
        assert int(total.split("total entries: ")[1].split(",")[0]) <= N_READS


# Filters


def test_skipped_records_are_counted(call, made, made_calls, tmp_path):
    _, records = made.records()
    records[1].mapping_quality = 19
    records[2].mapping_quality = 0
    records[3].is_secondary = True
    records[4].is_unmapped = True
    records[5].is_supplementary = True
    records[6].is_duplicate = records[6].is_qcfail = True
    changed = made.with_records(tmp_path, records)
    names = [record.query_name for record in records]
    expected = rows_by_read(made_calls)

    def without(*left_out):
        return {name: rows for name, rows in expected.items() if name not in {names[i] for i in left_out}}

    output, told = call(reads=changed)
    assert "skipped unmapped: 1, skipped secondary: 1, skipped low_mapq: 2\n" in told
    assert f"total entries: {N_READS - 4}," in told
    assert rows_by_read(output) == without(1, 2, 3, 4)
    output, told = call("--min-mapq", "0", "--secondary=yes", reads=changed)
    assert "skipped unmapped: 1, skipped secondary: 0, skipped low_mapq: 0\n" in told
    assert rows_by_read(output) == without(4)


def test_unmapped_records_are_no_reason_to_lower_the_mapping_quality(call, made, tmp_path):
    """f5c counts them as of low mapping quality; so does the count, but the advice does not."""
    _, records = made.records()
    for record in records[4:]:
        record.is_unmapped = True
        record.mapping_quality = 0
    _, told = call(reads=made.with_records(tmp_path, records))
    n = N_READS - 4
    assert f"skipped low_mapq: {n}\n" in told
    assert f"{n} of the {n} records counted as of low mapping quality, as f5c counts them, are unmapped" in told
    assert "left out for a mapping quality" not in told


def test_duplicates_are_skipped_on_request(made, made_calls, call, tmp_path):
    """Those that are marked, and those that repeat an earlier record; modBAM has all of them."""
    _, records = made.records()
    marked = [pysam.AlignedSegment.from_dict(record.to_dict(), record.header) for record in records[:3]]
    for record in marked:
        record.is_duplicate = True
    twice = made.with_records(tmp_path, [*marked, *records, *records[5:9]], index=False)
    assert call(reads=twice)[0].count(b"\n") > made_calls.count(b"\n")
    out = tmp_path / "mod.bam"
    output, told = call("--skip-duplicates", "--modbam", out, reads=twice)
    assert output == made_calls
    assert "skipped duplicates: 7\n" in told
    with pysam.AlignmentFile(str(out)) as file:
        tagged = [record.has_tag("MM") for record in file.fetch(until_eof=True)]
    assert len(tagged) == N_READS + 7
    assert not any(tagged[:3] + tagged[-4:])
    assert all(tagged[3:-4])


def test_ultra_long_reads_go_to_a_file_that_can_be_run_from(made, made_calls, tmp_path, capfd):
    lengths = [len(made.sequence(name)) for name in made.names]
    threshold = sorted(lengths)[-5]  # what is longer, strictly, is ultra-long
    long_ones = [name for name, length in zip(made.names, lengths, strict=True) if length > threshold]
    assert 0 < len(long_ones) < N_READS
    ultra, out, rest = tmp_path / "ultra.bam", tmp_path / "calls.tsv", tmp_path / "rest.tsv"
    options = [*made.options(), "-o", out, "--ultra-thresh", threshold]
    assert run_main(*options, "--skip-ultra", ultra) == 0
    told = capfd.readouterr().err
    assert (
        f"{len(long_ones)} reads longer than {threshold / 1e3:.1f} kbases were left out; their records go to {ultra}"
        in told
    )
    assert f"total entries: {N_READS}," in told

    pysam.quickcheck(str(ultra))
    pysam.index(str(ultra))
    with pysam.AlignmentFile(str(ultra)) as file:
        assert [record.query_name for record in file.fetch("simulated")] == long_ones
    assert run_main(*replace(made, bam=ultra).options(), "-o", rest) == 0
    left, right = rows_by_read(out.read_bytes()), rows_by_read(rest.read_bytes())
    assert set(right) == set(long_ones)
    assert not set(left) & set(right)
    assert left | right == rows_by_read(made_calls)
    assert run_main(*options) == 0  # the threshold alone does nothing
    assert out.read_bytes() == made_calls


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("spliced", "spliced"),
        ("full disk", "No space left on device"),
        ("full disk at the end of parts", "No space left on device"),
        ("damaged last read", "--strict"),
        ("no signals", "reads failed"),
    ],
)
def test_a_failed_run_leaves_no_file_of_ultra_long_reads(made, tmp_path, capfd, fault, words):
    changed, options = made, ["-o", tmp_path / "calls.tsv", "--modbam", tmp_path / "calls.bam"]
    names = [name for name in made.names if len(made.sequence(name)) <= 1200]
    assert 0 < len(names) < N_READS
    if fault == "spliced":
        _, records = made.records()
        records[9].cigarstring = f"600M100N{len(records[9].query_sequence) - 600}M"
        changed, options = made.with_records(tmp_path, records), [*options, "-K", 2]
    elif "full disk" in fault:
        in_parts = ["-o", "/dev/full", "--plan", tmp_path / "p", "--partitions", 2, "--engine", "local"]
        options += in_parts if "parts" in fault else ["--bedmethyl", "/dev/full"]
    else:
        lost = names[-1:] if "last" in fault else names
        changed = made.with_signals(tmp_path, dict.fromkeys(lost, tmp_path / "lost.fast5"))
        options += ["--strict"] * ("last" in fault)
    report, failed = tmp_path / "report.json", tmp_path / "failed.tsv"
    before = {*tmp_path.iterdir(), report, failed}
    left_out = ["--ultra-thresh", 1200, "--skip-ultra", tmp_path / "u.bam"]
    told = ["--report", report, "--failed-reads", failed]
    line = refused(capfd, "call-methylation", *last_of_each([*changed.options(), *left_out, *told, *options]))
    assert words in line
    assert {path for path in tmp_path.iterdir() if path.name not in ("p", ".unfinished-calls.tsv")} == before
    warnings = json.loads(report.read_text())["run"]["warnings"]
    assert words in warnings[-1]


def test_layout_without_strand(call, made_calls):
    output, _ = call("--meth-out-version=1")
    without = [b"\t".join(f for i, f in enumerate(row.split(b"\t")) if i != 1) for row in made_calls.splitlines()]
    assert output.splitlines()[1:] == without[1:]


# Standard input, and other formats than BAM


@pytest.mark.parametrize("option", [[], ["-h"], ["-b"], ["-u"]], ids=["no header", "SAM", "BAM", "plain BAM"])
def test_standard_input(made, made_calls, option):
    viewed = subprocess.run(["samtools", "view", *option, str(made.bam)], capture_output=True, check=True).stdout
    told = run_process(replace(made, bam="-").command(), input=viewed)
    if option:
        assert told.returncode == 0
        assert told.stdout == made_calls
    else:
        assert told.returncode == 1
        assert "standard input: the header names no contigs" in error_line(told.stderr.decode())


# The same output, always


@pytest.mark.parametrize(
    "options",
    [
        ["-t", "1", "-K", "1"],
        ["-t", "4", "-K", "3", "--iop", "3"],
        ["-t", "2", "-B", "2K"],
        ["-t", "3", "-B", "5M", "-v", "3"],
        ["-x", "hpc-low", "--iop", "1"],
        ["--disable-cuda=yes"],
    ],
    ids=" ".join,
)
def test_batches_and_threads_change_nothing(call, made_calls, options):
    assert call(*options)[0] == made_calls
