"""The command meth-freq."""

from __future__ import annotations

import gzip
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest

from f5py.io.bytes.bgzf_blocks import END_BLOCK, bgzf_blocks

from ..made_data import process_of, run_command, run_process, start_process

_HEADER = (
    "chromosome\tstrand\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\tnum_motifs\tsequence\n"
)
_CALLS = _HEADER + (
    "chr1\t+\t5\t5\tread1\t3.00\t-1.00\t-4.00\t1\t1\tAACGTT\n"
    "chr1\t-\t5\t5\tread2\t-2.40\t-1.00\t-4.00\t1\t1\tAACGTT\n"
    "chr1\t-\t9\t11\tread2\t-5.00\t-1.00\t-4.00\t1\t2\tAACGCGTT\n"
)
_OUTPUT_HEADER = (
    "chromosome\tstart\tend\tnum_motifs_in_group\tcalled_sites\tcalled_sites_methylated\tmethylated_frequency\t"
    "group_sequence\n"
)
_FREQUENCIES = _OUTPUT_HEADER + "chr1\t5\t5\t1\t1\t1\t1.000\tAACGTT\nchr1\t9\t11\t2\t2\t0\t0.000\tAACGCGTT\n"


_run = partial(run_command, "meth-freq")


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    path = tmp_path / "calls.tsv"
    path.write_text(_CALLS)
    return path


def test_to_standard_output(calls: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _run("-i", calls) == 0
    assert capfd.readouterr() == (_FREQUENCIES, "")
    assert _run("--input", calls, "--output", "-") == 0
    assert capfd.readouterr() == (_FREQUENCIES, "")


def test_to_a_file(calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.tsv"
    assert _run("-i", calls, "-o", out) == 0
    assert capfd.readouterr() == ("", f"[meth-freq] 2 sites, 33.3 % of 3 calls methylated; written: {out}\n")
    assert out.read_text() == _FREQUENCIES
    assert sorted(file.name for file in tmp_path.iterdir()) == ["calls.tsv", "out.tsv"]


def test_options(calls: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _run("-i", calls, "-c", "2.4") == 0
    assert "chr1\t5\t5\t1\t2\t1\t0.500\tAACGTT\n" in capfd.readouterr().out
    assert _run("-i", calls, "--call-threshold", "4", "--split-groups") == 0
    split = "chr1\t9\t9\t1\t1\t0\t0.000\tsplit-group\nchr1\t11\t11\t1\t1\t0\t0.000\tsplit-group\n"
    assert capfd.readouterr().out == _OUTPUT_HEADER + split


@pytest.mark.parametrize("form", ["plain", "gzip", "gzip members", "bgzip"])
@pytest.mark.parametrize("piped", [False, True])
def test_compression_is_seen_in_the_content(tmp_path: Path, form: str, piped: bool) -> None:
    path = tmp_path / "calls"
    data = _CALLS.encode()
    if form == "bgzip":
        path.write_bytes(b"".join([*bgzf_blocks(data, 1 << 14), END_BLOCK]))
    elif form == "gzip members":
        path.write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
    else:
        path.write_bytes(gzip.compress(data) if form == "gzip" else data)
    command = process_of("meth-freq")
    if not piped:
        done = run_process([*command, "-i", str(path)], text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, _FREQUENCIES, "")
        return
    # byte by byte, as a slow pipe may deliver the magic number
    with start_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        for byte in path.read_bytes():
            os.write(process.stdin.fileno(), bytes([byte]))
        out, err = process.communicate()
    assert (process.returncode, out.decode()) == (0, _FREQUENCIES)
    assert err.decode() == "[meth-freq] Scanning the input from stdin ...\n"


def test_an_earlier_output_is_replaced_and_its_mode_kept(calls: Path, tmp_path: Path) -> None:
    out = tmp_path / "earlier.tsv"
    out.write_text("old\n")
    out.chmod(0o640)
    assert _run("-i", calls, "-o", out) == 0
    assert out.read_text() == _FREQUENCIES
    assert out.stat().st_mode & 0o777 == 0o640


def test_a_failed_run_leaves_no_output(calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    calls.write_text(_CALLS + "chr1\t+\t5\n")
    out, old = tmp_path / "out.tsv", tmp_path / "old.tsv"
    old.write_text("old")
    for path in (out, old, "-"):
        assert _run("-i", calls, "-o", path) == 1
        shown, message = capfd.readouterr()
        assert shown == ""
        assert message == (
            f"[f5py::ERROR] {calls}, line 5: 3 columns, fewer than the header's 11; is the file damaged?\n"
        )
    assert old.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["calls.tsv", "old.tsv"]


def _one_error(capfd: pytest.CaptureFixture[str]) -> str:
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("[f5py::ERROR] ")
    return err


def test_damaged_compressed_calls(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "calls.gz"
    whole = gzip.compress(_CALLS.encode() * 50)
    for data in (whole[:-20], whole[:30] + b"\xff" * 20 + whole[50:], whole + b"rubbish"):
        path.write_bytes(data)
        assert _run("-i", path, "-o", tmp_path / "out") == 1
        assert f"{path}: damaged or truncated gzip data (" in _one_error(capfd)
    assert [file.name for file in tmp_path.iterdir()] == ["calls.gz"]


def test_a_full_disk_is_an_error(calls: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _run("-i", calls, "-o", "/dev/full") == 1
    assert "/dev/full: cannot write: No space left on device" in _one_error(capfd)
    command = process_of("meth-freq", "-i", calls)
    with open("/dev/full", "wb") as full:
        done = run_process(command, stdout=full, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


@pytest.mark.shared
@pytest.mark.parametrize(("options", "expected"), [([], "freq.tsv"), (["-s"], "freq_split.tsv")])
def test_real_calls_give_the_reference_tables(ecoli: Path, tmp_path: Path, options: list[str], expected: str) -> None:
    out = tmp_path / "freq.tsv"
    assert _run("-i", str(ecoli / "expected" / "meth.tsv.gz"), "-o", out, *options) == 0
    assert out.read_bytes() == (ecoli / "expected" / expected).read_bytes()


def test_threshold_per_site(calls: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _run("-i", calls, "--threshold-per-site") == 0
    assert capfd.readouterr().out == _FREQUENCIES  # 5.00 for two motifs is just enough
    assert _run("-i", calls, "--threshold-per-site", "-c", "2.51") == 0
    assert capfd.readouterr().out == _OUTPUT_HEADER + "chr1\t5\t5\t1\t1\t1\t1.000\tAACGTT\n"


def test_other_motifs_split_at_their_own_sites(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gpc.tsv"
    path.write_text(_HEADER + "chr1\t+\t9\t12\tread\t-5.00\t-1.00\t-4.00\t1\t2\tAAGCAGCTT\n")
    split = "chr1\t9\t9\t1\t1\t0\t0.000\tsplit-group\nchr1\t12\t12\t1\t1\t0\t0.000\tsplit-group\n"
    for options in (["-q", "gpc"], ["--methylation", "gpc"], ["--motif", "GC:1"]):
        assert _run("-i", path, "-s", *options) == 0
        assert capfd.readouterr() == (_OUTPUT_HEADER + split, "")
    assert _run("-i", path, "-s") == 0
    assert capfd.readouterr() == (
        _OUTPUT_HEADER,
        "[meth-freq::WARNING] 1 groups hold another number of CG than their rows say; if these are calls of another "
        "motif, name it with -q or --motif\n",
    )


def test_a_motif_that_the_calls_are_not_of(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cpg.tsv"
    rows = (
        "20\t20\tread\t5.00\t-1.00\t-6.00\t1\t1\tTTTAACGTTTT",
        "40\t44\tread\t5.00\t-1.00\t-6.00\t1\t2\tAACGTACGTTT",
    )
    path.write_text(_HEADER + "".join(f"chr1\t+\t{row}\n" for row in rows))
    for options in ([], ["-q", "cpg"], ["--motif", "CG:0"], ["--motif", "AACGTTTTT:2"]):  # too long to be shown
        assert _run("-i", path, *options) == 0
        table, told = capfd.readouterr()
        assert told == ""
    for options in (["-q", "gpc"], ["-q", "gpc", "-s"], ["--motif", "CHG:0"]):
        assert _run("-i", path, *options) == 0
        out, told = capfd.readouterr()
        assert ("-s" in options) or out == table
        assert told.startswith("[meth-freq::WARNING] 2 groups hold another number of ")
        assert told.count("\n") == 1


def test_bedmethyl(calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [
        "chr1\t5\t6\tm\t1\t+\t5\t6\t255,0,0\t1\t100.00\t1\t0\t0\t0\t0\t0\t0\n",
        "chr1\t10\t11\tm\t1\t-\t10\t11\t0,0,255\t1\t0.00\t0\t1\t0\t0\t0\t0\t0\n",
        "chr1\t12\t13\tm\t1\t-\t12\t13\t0,0,255\t1\t0.00\t0\t1\t0\t0\t0\t0\t0\n",
    ]
    assert _run("-i", calls, "--bedmethyl") == 0
    assert capfd.readouterr() == ("".join(rows), "")
    out = tmp_path / "out.bed.gz"
    assert _run("-i", calls, "--bedmethyl", "-o", out) == 0
    assert gzip.decompress(out.read_bytes()).decode() == "".join(rows)
    assert (tmp_path / "out.bed.gz.tbi").is_file()
    assert _run("-i", calls, "--bedmethyl", "--combine-strands") == 0
    combined = "chr1\t5\t6\tm\t1\t.\t5\t6\t255,0,0\t1\t100.00\t1\t0\t0\t0\t1\t0\t0\n"
    assert capfd.readouterr().out.startswith(combined)


def test_a_failed_bedmethyl_leaves_no_output(calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    calls.write_text(_CALLS + "chr1\t+\t5\n")
    assert _run("-i", calls, "--bedmethyl", "-o", tmp_path / "out.bed.gz") == 1
    assert "line 5: 3 columns" in _one_error(capfd)
    calls.write_text(_CALLS)
    assert _run("-i", calls, "--bedmethyl", "-q", "gpc", "-o", tmp_path / "out.bed.gz") == 1
    assert "line 2: the sequence does not hold the sites of gpc" in _one_error(capfd)
    assert _run("-i", calls, "--bedmethyl", "-o", tmp_path / "no" / "out.bed.gz") == 1
    assert "there is no such folder" in _one_error(capfd)
    assert [file.name for file in tmp_path.iterdir()] == ["calls.tsv"]


# Several tables


def test_several_tables_count_as_one(calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As nanopolish's script takes them; plain, gzip, and without a newline at the end."""
    other = tmp_path / "other.tsv.gz"
    other.write_bytes(gzip.compress((_HEADER + "chr2\t+\t5\t5\tread1\t3.00\t-1.00\t-4.00\t1\t1\tAACGTT").encode()))
    header_only = tmp_path / "none.tsv"
    header_only.write_text(_HEADER)
    joined = tmp_path / "joined.tsv"
    joined.write_text(_CALLS + gzip.decompress(other.read_bytes()).decode() + "\n" + _CALLS)
    for options in ([], ["-s"], ["--bedmethyl"]):
        assert _run("-i", joined, *options) == 0
        expected = capfd.readouterr().out
        assert expected.count("\n") > 2
        assert _run(*options, calls, other, header_only, calls) == 0
        assert capfd.readouterr().out == expected


def test_errors_of_one_of_several_tables(calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each names the table and its own line."""
    bad = tmp_path / "bad.tsv"
    bad.write_text(_CALLS.replace("\t9\t", "\tnine\t"))
    assert _run(calls, bad, calls) == 1
    assert f"{bad}, line 4: start is 'nine'" in capfd.readouterr().err
    assert _run("-", calls, "-") == 2
    assert "standard input (-) can be read only once" in capfd.readouterr().err
