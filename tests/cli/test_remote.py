"""Inputs on S3: the results of those on the disk."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pysam
import pytest

from ..made_data import ReadSet, error_line, refused, run_command, run_main, write_signals

N_FILES = 4


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server with the protocol of S3 and return its address."""
    s3fs, moto = pytest.importorskip("s3fs"), pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    one = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    one.start()
    host, port = one.get_host_and_port()
    s3fs.S3FileSystem.clear_instance_cache()
    yield f"http://{host}:{port}"
    s3fs.S3FileSystem.clear_instance_cache()
    one.stop()


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder; `put` makes its files those of a bucket. Copies of files are kept in ``cache`` beside it."""
    import s3fs

    for name, value in {
        "AWS_ENDPOINT_URL": server, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1", "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    _forget_what_is_there()
    s3fs.S3FileSystem().mkdir("run")
    folder = tmp_path / "run"
    folder.mkdir()
    yield folder
    s3fs.S3FileSystem().rm("run", recursive=True)
    runs = tmp_path / "cache" / "f5py" / "remote" / "runs"
    assert not runs.exists() or os.listdir(runs) == []


def _forget_what_is_there() -> None:
    """Let file systems list their folders anew, as those of another process would; to make them takes longer."""
    import s3fs

    for system in s3fs.S3FileSystem._cache.values():
        system.invalidate_cache()


def put(folder: Path) -> None:
    import s3fs

    system = s3fs.S3FileSystem()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            system.put_file(str(path), f"run/{path.relative_to(folder)}")


@pytest.fixture(scope="module")
def inputs(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the inputs, the signals in all formats, and beside it the calls from the disk."""
    folder = tmp_path_factory.mktemp("inputs") / "run"
    (folder / "pod5").mkdir(parents=True)
    for path in (made.bam, Path(f"{made.bam}.bai"), made.genome, made.reads):
        shutil.copy(path, folder)
    for i in range(N_FILES):
        write_signals(folder / "pod5" / f"{i}.pod5", made.signals(made.names[i::N_FILES]))
    shutil.copytree(made.folder / "fast5", folder / "fast5")
    blow5 = write_signals(folder / "signals.blow5", made.signals())
    calls = folder.with_name("disk.tsv")
    assert run_main("-b", made.bam, "-g", made.genome, "--slow5", blow5, "-t", 2, "-o", calls) == 0
    assert Path(f"{blow5}.idx").exists()
    return folder


@pytest.fixture
def calls(inputs: Path, bucket: Path) -> bytes:
    """Put the inputs into the bucket; return the calls from the disk."""
    shutil.copytree(inputs, bucket, dirs_exist_ok=True)
    put(bucket)
    return inputs.with_name("disk.tsv").read_bytes()


def far(*signals: str) -> list[str]:
    return ["-b", "s3://run/reads.bam", "-g", "s3://run/ref.fa", "-t", "2", "-o", "far.tsv", *signals]


@pytest.mark.parametrize(
    "signals",
    [
        ["--slow5", "s3://run/signals.blow5"],
        ["--pod5", "s3://run/pod5"],
        ["--pod5", "s3://run/pod5/", "--iop", "2", "-K", "3"],
        ["--fast5", "s3://run/fast5"],
        ["--slow5", "s3://run/signals.blow5", "-r", "s3://run/reads.fasta", "-w", "simulated:1-100000"],
    ],
)
def test_calls_are_those_of_files_on_the_disk(calls: bytes, made: ReadSet, signals: list[str]):
    if "-w" in signals:
        signals[-1] = f"{made.records()[0].references[0]}:1-100,000"
    assert run_main(*far(*signals)) == 0
    assert Path("far.tsv").read_bytes() == calls


def test_an_index_of_signals_that_is_missing(calls: bytes, bucket: Path, capfd: pytest.CaptureFixture[str]):
    import s3fs

    s3fs.S3FileSystem().rm_file("run/signals.blow5.idx")
    assert run_main(*far("--slow5", "s3://run/signals.blow5")) == 0
    assert Path("far.tsv").read_bytes() == calls
    messages = capfd.readouterr().err
    assert "s3://run/signals.blow5.idx: not found" in messages
    assert str(Path.cwd()) not in messages


def test_parts(calls: bytes, capfd: pytest.CaptureFixture[str]):
    options = [*far("--pod5", "s3://run/pod5"), "--plan", "plan"]
    assert run_main(*options, "--partitions", "3") == 0
    assert run_command("run-part", "plan", "1") == 0
    assert run_main(*options) == 0
    assert Path("far.tsv").read_bytes() == calls


def test_an_input_of_a_plan_that_has_changed(calls: bytes, made: ReadSet, capfd: pytest.CaptureFixture[str]):
    import s3fs

    options = [*far("--slow5", "s3://run/signals.blow5"), "--plan", "plan"]
    assert run_main(*options, "--partitions", "3") == 0
    s3fs.S3FileSystem().pipe_file("run/ref.fa", made.genome.read_bytes().replace(b"A", b"C"))
    _forget_what_is_there()
    line = refused(capfd, "run-part", "plan")
    assert "s3://run/ref.fa: has changed since the plan was made: other content; make a new plan" in line


def test_a_summary_names_urls(calls: bytes, capfd: pytest.CaptureFixture[str]):
    assert run_command("eventalign", *far("--pod5", "s3://run/pod5"), "--summary", "sum.tsv") == 0
    places = [line.split("\t")[2] for line in Path("sum.tsv").read_text().splitlines()[1:]]
    assert set(places) == {f"s3://run/pod5/{i}.pod5" for i in range(N_FILES)}


def test_cram_with_a_reference_on_s3(calls: bytes, made: ReadSet):
    assert run_main(*far("--pod5", "s3://run/pod5"), "--modbam", "calls.cram") == 0
    with pysam.AlignmentFile("calls.cram", reference_filename=str(made.genome)) as records:
        assert [record.query_name for record in records] == made.names


def test_a_report_names_urls(calls: bytes):
    assert run_main(*far("--pod5", "s3://run/pod5"), "--report", "report.json") == 0
    report = json.loads(Path("report.json").read_text())
    inputs = {one["path"]: one for one in report["run"]["inputs"]}
    assert set(inputs) == {"s3://run/reads.bam", "s3://run/ref.fa", "s3://run/pod5"}
    assert inputs["s3://run/ref.fa"]["bytes"] == Path("run/ref.fa").stat().st_size
    assert str(Path.cwd()) not in json.dumps(inputs)


@pytest.mark.parametrize(
    ("signals", "words"),
    [
        (["--slow5", "s3://run/none.blow5"], "s3://run/none.blow5: no such file"),
        (["--pod5", "s3://run/none"], "s3://run/none: there is no file, and none below it is named *.pod5"),
        (["--slow5", "s3://run/pod5/0.pod5"], "s3://run/pod5/0.pod5: is a POD5 file; give it with --pod5"),
        (["--pod5", "s3://run/short.pod5"], "s3://run/short.pod5: the file is truncated"),
        (["--slow5", "nowhere://run/a.blow5"], "nowhere://run/a.blow5: cannot be read"),
        (["--slow5", "s3://run/signals.blow5", "--modbam", "s3://run/m.bam"], "results are written to files of this"),
    ],
)
def test_what_cannot_be_used(
    calls: bytes, bucket: Path, capfd: pytest.CaptureFixture[str], signals: list[str], words: str
):
    import s3fs

    whole = (bucket / "pod5" / "0.pod5").read_bytes()
    s3fs.S3FileSystem().pipe_file("run/short.pod5", whole[:-100])
    capfd.readouterr()
    assert run_main(*far(*signals)) in (1, 2)
    assert words in error_line(capfd.readouterr().err)
    assert not Path("far.tsv").exists()


def test_copies_are_kept_within_a_limit(calls: bytes, bucket: Path, monkeypatch: pytest.MonkeyPatch):
    kept = Path("cache/f5py/remote/copies")
    size = sum(path.stat().st_size for path in (bucket / "fast5").iterdir())
    monkeypatch.setenv("F5PY_REMOTE_CACHE", str(size + 50_000))
    assert run_main(*far("--fast5", "s3://run/fast5")) == 0
    once = {path.name: path.stat().st_mtime_ns for path in kept.iterdir()}
    assert run_main(*far("--fast5", "s3://run/fast5")) == 0
    assert {path.name for path in kept.iterdir()} == set(once)  # nothing came again
    assert run_main(*far("--slow5", "s3://run/signals.blow5")) == 0
    assert Path("far.tsv").read_bytes() == calls
    assert sum(path.stat().st_size for path in kept.iterdir()) <= size + 50_000


def test_a_limit_that_is_too_small(calls: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    monkeypatch.setenv("F5PY_REMOTE_CACHE", "4K")
    assert "4,096 may be kept; set F5PY_REMOTE_CACHE to more" in refused(
        capfd, "call-methylation", *far("--fast5", "s3://run/fast5")
    )
    monkeypatch.setenv("F5PY_REMOTE_CACHE", "much")
    assert "F5PY_REMOTE_CACHE=much: give a number of bytes such as 20G" in refused(
        capfd, "call-methylation", *far("--fast5", "s3://run/fast5"), status=2
    )


def test_folders_of_runs_that_were_killed_go(calls: bytes):
    left = Path("cache/f5py/remote/runs/0123456789abcdef")
    left.mkdir(parents=True)
    (left / "lock").touch()
    (left / "data").write_bytes(b"data")
    assert run_main(*far("--slow5", "s3://run/signals.blow5")) == 0
    assert not left.exists()
