"""``f5py index`` as a user runs it, and nanopolish's files beside ours."""

from __future__ import annotations

import gzip
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from f5py.io.reads.read_files import ReadFiles
from f5py.io.reads.read_index import ReadIndex

from ..index_files import fasta, multi_fast5, readdb, single_fast5
from ..made_data import ReadSet, error_line, process_of, run_command, run_main, start_process, write_signals
from ..patience import PATIENCE
from ..readers_here import scans_here

needs_nanopolish = pytest.mark.skipif(not shutil.which("nanopolish"), reason="nanopolish is not on PATH")


index = partial(run_command, "index")


def nanopolish(*arguments: object) -> str:
    command = ["nanopolish", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def contents(reads: Path) -> dict[str, bytes]:
    """Read what must be equal: the text of the sequences, and two of the files as they are."""
    return {
        "text": gzip.decompress(Path(f"{reads}.index").read_bytes()),
        "fai": Path(f"{reads}.index.fai").read_bytes(),
        "readdb": Path(f"{reads}.index.readdb").read_bytes(),
    }


def both(tmp_path: Path, reads: Path, *options: object) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Index copies of `reads` with f5py, in this process, and nanopolish."""
    ours, theirs = tmp_path / "ours" / reads.name, tmp_path / "theirs" / reads.name
    for copy in (ours, theirs):
        copy.parent.mkdir()
        copy.write_bytes(reads.read_bytes())
    with scans_here():
        assert index(*options, ours) == 0
    nanopolish("index", *options, theirs)
    return contents(ours), contents(theirs)


def test_counts_and_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reads = fasta(tmp_path / "r.fa", [f"r{i}" for i in range(100)])
    single_fast5(tmp_path / "d/a.fast5", "r0")
    multi_fast5(tmp_path / "d/b.fast5", [f"r{i}" for i in range(1, 99)])
    assert index("-d", tmp_path / "d", reads) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "[readdb] num reads: 100, num reads with path to fast5: 99\n" in told.err
    assert "WARNING" not in told.err
    multi_fast5(tmp_path / "d/b.fast5", [f"r{i}" for i in range(1, 98)])
    assert index("-d", tmp_path / "d", "-v", 0, reads) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(
        "[readdb] num reads: 100, num reads with path to fast5: 98\n"
        "[readdb::WARNING] fast5 files could not be located for 2 reads\n"
    )


@needs_nanopolish
def test_nanopolish_writes_and_calls_the_same_for_real_reads(tmp_path: Path, ecoli: Path) -> None:
    ours, theirs = both(tmp_path, ecoli / "reads.fasta", "-d", f"{ecoli}/fast5/")
    assert ours == theirs
    wanted = sorted(ReadFiles.read(f"{tmp_path}/ours/reads.fasta.index.readdb"))
    ours_read, theirs_read = (
        ReadIndex.open(f"{tmp_path}/{whose}/reads.fasta").sequences(wanted) for whose in ("ours", "theirs")
    )
    assert len(ours_read[0]) > 600_000
    np.testing.assert_array_equal(ours_read[0], theirs_read[0])
    np.testing.assert_array_equal(ours_read[1], theirs_read[1])
    inputs = ["-b", ecoli / "reads8.bam", "-g", ecoli / "ref.fa", "-t", 1]
    calls = [nanopolish("call-methylation", *inputs, "-r", tmp_path / of / "reads.fasta") for of in ("ours", "theirs")]
    assert calls[0] == calls[1]
    assert calls[0].count("\n") > 100


@needs_nanopolish
@pytest.mark.parametrize("kind", ["gzip", "vbz"])
def test_nanopolish_writes_the_same_for_multi_read_files(tmp_path: Path, ecoli: Path, kind: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/multi.fast5").symlink_to(ecoli / f"formats/multi_{kind}.fast5")
    ours, theirs = both(tmp_path, ecoli / "reads.fasta", "-d", tmp_path / "d")
    assert ours == theirs
    assert ours["readdb"].count(b"multi.fast5\n") == 112


@needs_nanopolish
def test_nanopolish_finds_the_same_reads_in_every_kind_of_file(tmp_path: Path, shared_data: Path, ecoli: Path) -> None:
    """Not the same files: some reads are in several, and nanopolish takes them as the folder lists them."""
    zoo = shared_data / "format_zoo"
    options = ["-d", zoo / "fast5", "-d", zoo / "vbz"]
    ours, theirs = both(tmp_path, ecoli / "reads.fasta", *options)
    known, theirs_known = (
        dict(line.split("\t") for line in one["readdb"].decode().splitlines()) for one in (ours, theirs)
    )
    assert list(known) == list(theirs_known)
    assert [bool(path) for path in known.values()] == [bool(path) for path in theirs_known.values()]
    assert sum(map(bool, known.values())) > 30


@needs_nanopolish
def test_nanopolish_writes_the_same_for_awkward_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = tmp_path / "r.fastq.gz"
    records = [
        "@a runid=1 x/1.fast5", "ACGU", "+", "@@@@",
        "@b x/1.fast5 runid=1", "acgtn", "+", "IIIII",
        "@c\tx/2.fast5", "A", "+", "I",
        "@a again/3.fast5", "TTTT", "+", "IIII",
        "@e x/4.fast5 ", "AC", "+", "II",
        "@not.in.any.file", "GG", "+", "II", "",
    ]  # fmt: skip
    reads.write_bytes(gzip.compress("\r\n".join(records).encode()))
    single_fast5(tmp_path / "d/sub/b.fast5", "b")
    multi_fast5(tmp_path / "d/x.fast5dir/plain", ["not.in.the.fasta", "e"])
    (tmp_path / "d/broken.fast5").write_text("?")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    for i in (1, 2, 4):
        (tmp_path / f"x/{i}.fast5").touch()
    ours, theirs = both(tmp_path, reads, "-d", tmp_path / "d")
    assert ours == theirs


@needs_nanopolish
@pytest.mark.parametrize("column", ["filename", "filename_fast5"])
def test_nanopolish_writes_the_same_with_a_summary(tmp_path: Path, column: str) -> None:
    reads = fasta(tmp_path / "r.fa", [*"abcde", *(f"r{i}" for i in range(63))])
    rows = [("a", "one.fast5"), ("b", "one.fast5"), ("x", "one.fast5"), ("c", "absent.fast5")]
    # 21 files of three reads make three the limit, so big.fast5 will be opened
    rows += [(f"r{i}", f"{i // 3}.fast5") for i in range(63)] + [(f"w{i}", "big.fast5") for i in range(4)]
    lines = [f"{column}\tread_id\trun", *(f"{name}\t{read}\tz" for read, name in rows)]
    (tmp_path / "s.txt").write_text("".join(line + "\n" for line in lines))
    (tmp_path / "list").write_text(f"{tmp_path}/s.txt\n")
    (tmp_path / "d").mkdir()
    for name in ("one", *map(str, range(20))):
        (tmp_path / f"d/{name}.fast5").write_text("must not be opened")
    multi_fast5(tmp_path / "d/big.fast5", ["d", "r62"])
    ours, theirs = both(tmp_path, reads, "-d", tmp_path / "d", "-s", tmp_path / "s.txt")
    assert ours == theirs
    assert b"d\t%s/d/big.fast5\n" % str(tmp_path).encode() in ours["readdb"]
    assert b"a\t%s/d/one.fast5\n" % str(tmp_path).encode() in ours["readdb"]
    assert index("-d", tmp_path / "d", "-f", tmp_path / "list", "--iop", 2, tmp_path / "ours/r.fa") == 0
    assert contents(tmp_path / "ours/r.fa") == theirs


@pytest.mark.parametrize("is_listed", [False, True])
def test_compressed_summaries(tmp_path: Path, is_listed: bool) -> None:
    """As MinKNOW's are kept: signal files whose reads they tell are not opened; the plain ones give the same."""
    reads = fasta(tmp_path / "r.fa", [*"abcd"])
    rows = [("a", "one.fast5"), ("b", "one.fast5"), ("c", "two.fast5"), ("d", "two.fast5")]
    text = "".join(f"{name}\t{read}\tz\n" for read, name in [("read_id", "filename"), *rows])
    (tmp_path / "d").mkdir()
    for name in ("one", "two"):
        (tmp_path / f"d/{name}.fast5").write_text("must not be opened")
    found = []
    for name, content in (("s.txt", text.encode()), ("s.txt.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(content)
        (tmp_path / "list").write_text(f"{tmp_path / name}\n")
        given = ("-f", tmp_path / "list") if is_listed else ("-s", tmp_path / name)
        assert index("-d", tmp_path / "d", *given, reads) == 0
        found.append(contents(reads))
    assert found[0] == found[1]
    assert sorted(readdb(reads)) == [(read, f"{tmp_path}/d/{name}") for read, name in rows]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("absent.fa", "absent.fa: no such file"),
        ("-d nothing", "no fast5 file was found for any of the 1 reads in r.fa"),
        ("-d pod5", "pod5 holds POD5 files; give it with --pod5"),
        ("-s absent.txt", "absent.txt: cannot be opened (No such file"),
        ("-f absent.txt", "absent.txt: No such file"),
        ("-s r.fa", "r.fa: the header lacks the column read_id"),
        ("--slow5 absent.blow5", "absent.blow5: not found"),
        ("--slow5 damaged", "cut.blow5: has a damaged header"),
        ("--slow5 d", "no file below this folder is named *.blow5"),
        ("--slow5 r.fa", "r.fa: is not a SLOW5, POD5 or fast5 file"),
        ("--slow5 d/a.fast5", "d/a.fast5: is a fast5 file"),
        ("--slow5 damaged/cut.blow5", "cut.blow5: has a damaged header"),
        ("--slow5 damaged/cut.blow5 --skip-slow5-idx", "cut.blow5: has a damaged header"),
        ("--slow5 other.slow5", "other.slow5: holds none of the 1 reads in r.fa"),
        ("--pod5 absent.pod5", "absent.pod5: not found"),
        ("--pod5 d", "no file below this folder is named *.pod5"),
        ("--pod5 none.pod5", "no POD5 file was found for any of the 1 reads"),
        ("--pod5 damaged/cut.blow5", "cut.blow5: is a SLOW5 file; give it with --slow5"),
    ],
)
def test_unusable_input_is_an_error(
    tmp_path: Path, options: str, message: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fasta(tmp_path / "r.fa", ["a"])
    single_fast5(tmp_path / "d/a.fast5", "a")
    for name in ("nothing", "pod5", "damaged"):
        (tmp_path / name).mkdir()
    (tmp_path / "pod5/a.pod5").touch()
    (tmp_path / "damaged/cut.blow5").write_bytes(b"BLOW5\x01")
    slow5_file(tmp_path / "other.slow5", ["b"])
    write_signals(tmp_path / "none.pod5", [])
    reads = [] if options == "absent.fa" else ["r.fa"]
    assert index("-v", 0, *options.split(), *reads) == 1
    told = [line for line in capfd.readouterr().err.splitlines() if "INFO" not in line]
    assert len(told) == 1
    assert message in told[0]
    assert not list(tmp_path.glob("r.fa.*"))


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of so many files that scanning them takes seconds."""
    folder = tmp_path_factory.mktemp("many") / "d"
    original = multi_fast5(folder / "0.fast5", ["a"])
    for i in range(1, 20_000):
        os.link(original, folder / f"{i}.fast5")
    return folder


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
def test_a_killed_scanning_process_is_one_line(many_files: Path, tmp_path: Path) -> None:
    reads = fasta(tmp_path / "r.fa", ["a"])
    command = process_of("index", "-v", "0", "--iop", "2", "-d", many_files, reads)
    process = start_process(command, stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    scanners: list[int] = []
    while process.poll() is None and not scanners:
        time.sleep(0.02)
        for child in children.read_text().split():
            if b"f5py.io.signals.helper_process" in Path(f"/proc/{child}/cmdline").read_bytes():
                scanners.append(int(child))
    os.kill(scanners[0], signal.SIGKILL)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert told.count("\n") == 1
    assert "was ended by SIGKILL; if memory is short, use a smaller --iop\n" in told
    assert not [path.name for path in tmp_path.iterdir() if ".index" in path.name]


def test_a_killed_run_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reads = fasta(tmp_path / "r.fa", ["a"])
    original = multi_fast5(tmp_path / "d/0.fast5", ["a"])
    for i in range(1, 2000):
        os.link(original, tmp_path / f"d/{i}.fast5")
    journal = Path(f"{reads}.index.scanned")
    command = process_of("index", "--resume", "-d", tmp_path / "d", reads)
    process = start_process(command, stderr=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        if journal.exists() and journal.stat().st_size > 10_000:
            break
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert index("--resume", "-d", tmp_path / "d", reads) == 0
    found = re.search(r"(\d+) of 2000 fast5 files have been scanned before", capsys.readouterr().err)
    assert found is not None
    assert 50 < int(found[1]) < 2000
    assert Path(f"{reads}.index.readdb").read_text().startswith("a\t")
    assert not journal.exists()


@pytest.mark.parametrize("delay", [0.15, 0.8])
def test_interrupting_leaves_no_process_behind(many_files: Path, tmp_path: Path, delay: float) -> None:
    reads = fasta(tmp_path / "r.fa", ["a"])
    command = process_of("index", "--iop", "2", "-d", many_files, reads)
    process = start_process(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    assert "indexing" in process.stderr.readline()
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all of them
    with process.stderr as stream:
        told = stream.read()  # ends when the last process that holds it has gone
    assert process.wait(timeout=PATIENCE) == 130
    assert "Traceback" not in told
    assert not [path.name for path in tmp_path.iterdir() if ".index" in path.name]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, threads: int) -> None:
    reads = tmp_path / "r.fa"
    bases = random.Random(1).choices("ACGT", k=20_000)
    reads.write_text("".join(f">r{i}\n{''.join(bases[i:])}\n" for i in range(100)))
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    code = f"{limit}; from f5py.cli import main; main(['index', '-t', '{threads}', {str(reads)!r}])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 1
    (line,) = [line for line in ran.stderr.splitlines() if "compiled code cannot be kept" not in line]
    assert f"{reads}.index: cannot be written (File too large)" in line
    assert [path.name for path in tmp_path.iterdir()] == ["r.fa"]


# --slow5


def slow5_file(path: Path, names: list[str]) -> Path:
    lines = ["#slow5_version\t0.2.0", "#num_read_groups\t1", "@experiment_type\tgenomic_dna"]
    lines.append("#char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*")
    lines.append("#read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal")
    lines += [f"{name}\t0\t8192\t3\t1400\t4000\t2\t7,-8" for name in names]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_slow5_is_named_once_for_all_reads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reads = fasta(tmp_path / "r.fa", [f"r{i}" for i in range(100)])
    signals = slow5_file(tmp_path / "s.slow5", [f"r{i}" for i in range(1, 300)])
    assert index("--slow5", signals, reads) == 0
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith(
        f"[open_slow5::INFO] {signals}.idx: not found; indexing {signals}\n"
        "[readdb] num reads: 100, num reads with path to slow5: 99\n[main]"
    )
    assert readdb(reads) == [("*", str(signals))]
    suffixes = (".index", ".index.fai", ".index.gzi", ".index.readdb")
    files = ["r.fa", *(f"r.fa{suffix}" for suffix in suffixes), "s.slow5", "s.slow5.idx"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    assert index("--slow5", slow5_file(tmp_path / "few.slow5", [f"r{i}" for i in range(98)]), reads) == 0
    assert "WARNING] slow5 files could not be located for 2 reads\n" in capfd.readouterr().err


def test_slow5_replaces_the_paths_of_fast5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reads = fasta(tmp_path / "r.fa", ["a"])
    single_fast5(tmp_path / "d/a.fast5", "a")
    assert index("-d", tmp_path / "d", reads) == 0
    signals = slow5_file(tmp_path / "s.slow5", ["a"])
    capsys.readouterr()
    assert index("-d", tmp_path / "d", "-s", "x", "-f", "y", "--iop", 2, "--resume", "--slow5", signals, reads) == 0
    assert "[index::WARNING] -d, -s, -f, --iop, --resume: no effect with --slow5\n" in capsys.readouterr().err
    assert readdb(reads) == [("*", str(signals))]


def test_the_slow5_index_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reads = fasta(tmp_path / "r.fa", ["a", "b"])
    signals = slow5_file(tmp_path / "s.slow5", ["a"])
    assert index("--slow5", signals, "--skip-slow5-idx", reads) == 0
    assert capsys.readouterr().err.startswith("[readdb] num reads: 2\n[main]")
    assert not Path(f"{signals}.idx").exists()
    assert readdb(reads) == [("*", str(signals))]
    single_fast5(tmp_path / "d/a.fast5", "a")
    assert index("-d", tmp_path / "d", "--skip-slow5-idx", reads) == 0
    assert "WARNING] --skip-slow5-idx has no effect without --slow5\n" in capsys.readouterr().err


@needs_nanopolish
def test_nanopolish_writes_the_same_for_slow5(tmp_path: Path, ecoli: Path) -> None:
    (tmp_path / "s.blow5").symlink_to(ecoli / "formats/reads.blow5")
    ours, theirs = both(tmp_path, ecoli / "reads.fasta", "--slow5", tmp_path / "s.blow5")
    assert ours == theirs
    assert ours["readdb"] == b"*\t%s/s.blow5\n" % str(tmp_path).encode()


# --pod5


def test_pod5_files_and_folders(tmp_path: Path, ecoli: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pod5", reason="needs pod5")
    reads = tmp_path / "reads.fasta"
    reads.write_bytes((ecoli / "reads.fasta").read_bytes() + b">in-no-file\nACGT\n")
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/e/signals.pod5").symlink_to(ecoli / "formats/reads.pod5")
    for given in ("d", "d/e/signals.pod5"):
        assert index("--pod5", tmp_path / given, reads) == 0
        assert "[readdb] num reads: 113, num reads with path to pod5: 112\n" in capsys.readouterr().err
        known = readdb(reads)
        assert known == sorted(known)
        assert len(known) == 113
        assert {path for name, path in known if name != "in-no-file"} == {f"{tmp_path}/d/e/signals.pod5"}
        assert dict(known)["in-no-file"] == ""


def test_pod5_without_any_of_the_reads(tmp_path: Path, ecoli: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pod5", reason="needs pod5")
    reads = fasta(tmp_path / "r.fa", ["a"])
    assert index("--pod5", ecoli / "formats/reads.pod5", reads) == 0
    told = capsys.readouterr().err
    assert "num reads: 113, num reads with path to pod5: 112\n" in told
    assert f"WARNING] none of the 1 reads in {reads} has a signal by its own name" in told


def test_split_reads_are_called_through_an_index_of_pod5(made: ReadSet, made_calls: bytes, tmp_path: Path) -> None:
    """Two reads are parts of a parent, whose name is only in the POD5 file and in the tags of their records."""
    pytest.importorskip("pod5", reason="needs pod5")
    header, records = made.records()
    first, second, *others = made.signals()
    shifted = second.samples + np.int16(second.offset - first.offset)  # both have the calibration of their parent
    parent = replace(first, name=str(uuid.uuid4()), samples=np.concatenate([first.samples, shifted]))
    assert replace(parent, offset=second.offset).calibration() == second.calibration()
    pod5 = write_signals(tmp_path / "signals.pod5", [*others, parent])
    start = 0
    for record, read in zip(records, (first, second), strict=False):
        assert record.query_name == read.name
        for tag, value in (("pi", parent.name), ("sp", start), ("ns", read.samples.size)):
            record.set_tag(tag, value)
        start += read.samples.size
    changed = made.with_records(tmp_path, records, header=header.to_dict())
    reads = tmp_path / "reads.fasta"
    reads.write_bytes(made.reads.read_bytes())
    assert index("--pod5", pod5, reads) == 0
    assert dict(readdb(reads))[parent.name] == str(pod5)
    assert dict(readdb(reads))[first.name] == ""
    for processes in (1, 2):
        out = tmp_path / f"calls{processes}.tsv"
        options = ["-r", reads, "-b", changed.bam, "-g", made.genome, "-t", 2, "--iop", processes, "-o", out]
        assert run_main(*options) == 0
        assert out.read_bytes() == made_calls


@pytest.fixture
def task(made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder in which reads were indexed with relative paths."""
    folder = tmp_path / "task1"
    shutil.copytree(made.signal_path, folder / "fast5")
    shutil.copy(made.reads, folder / "reads.fa")
    monkeypatch.chdir(folder)
    assert run_command("index", "-d", "fast5", "reads.fa", "--iop", "1") == 0
    assert "\tfast5/" in (folder / "reads.fa.index.readdb").read_text()
    return folder


def staged(source: Path, folder: Path, is_relative: bool = True) -> None:
    folder.mkdir(parents=True)
    for path in source.glob("reads.fa*"):
        target = os.path.relpath(path, folder) if is_relative else path
        (folder / path.name).symlink_to(target)


def call(made: ReadSet, reads: Path | str, out: Path) -> int:
    given = ("-r", reads, "-b", made.bam, "-g", made.genome, "-t", "1", "--iop", "1")
    return run_command("call-methylation", *given, "-o", out)


@pytest.mark.parametrize("is_relative", [True, False])
def test_signals_are_found_where_the_index_was_made(
    task: Path, made: ReadSet, made_calls: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_relative: bool
) -> None:
    staged(task, tmp_path / "task2", is_relative)
    staged(tmp_path / "task2", tmp_path / "deep" / "task3", is_relative)  # links to links
    for folder, reads in (("task2", "reads.fa"), ("deep/task3", "reads.fa"), (".", "deep/task3/reads.fa")):
        monkeypatch.chdir(tmp_path / folder)
        out = tmp_path / "calls.tsv"
        assert call(made, reads, out) == 0
        assert out.read_bytes() == made_calls
        out.unlink()


def test_a_signal_folder_that_is_not_there_either(
    task: Path, made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every folder is named once."""
    staged(task, tmp_path / "task2")
    shutil.rmtree(task / "fast5")
    monkeypatch.chdir(tmp_path / "task2")
    capfd.readouterr()
    assert call(made, "reads.fa", tmp_path / "calls.tsv") == 1
    told = capfd.readouterr().err
    error_line(told)
    (warning,) = [line for line in told.splitlines() if "signal files with relative paths" in line]
    assert f"are not below {tmp_path / 'task2'} nor {task}; run f5py where the reads were indexed" in warning
