"""Inputs on servers that are slow, cut, forbid or never answer: the results, or one line within the time limits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from f5py.io.remote.urls import _ATTEMPTS, SILENT_SECONDS

from ..io.remote.hostile_server import WAYS, HostileServer
from ..made_data import ReadSet, error_line, process_of, run_main, start_process, write_signals
from ..patience import PATIENCE

SIGNALS = (("--slow5", "s3://run/signals.blow5"), ("--pod5", "s3://run/signals.pod5"))


@pytest.fixture(scope="module")
def folder(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the inputs, and beside it the calls of each format of signals, from the disk."""
    folder = tmp_path_factory.mktemp("served") / "run"
    folder.mkdir()
    for path in (made.bam, Path(f"{made.bam}.bai"), made.genome):
        shutil.copy(path, folder)
    for option, url in SIGNALS:
        signals = write_signals(folder.parent / url.removeprefix("s3://"), made.signals())
        calls = folder.parent / f"{option}.tsv"
        assert run_main("-b", made.bam, "-g", made.genome, option, signals, "-t", 2, "-o", calls) == 0
        Path(f"{signals}.idx").unlink(missing_ok=True)
    return folder


@pytest.fixture
def server(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileServer]:
    s3fs = pytest.importorskip("s3fs")
    monkeypatch.chdir(tmp_path)
    with HostileServer(folder) as one:
        for name, value in {
            "AWS_ENDPOINT_URL": one.url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_DEFAULT_REGION": "us-east-1", "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        yield one
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def patience(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a moment for a server that will not answer, and longer for others on a busy machine."""
    from f5py.io.remote import urls

    monkeypatch.setattr(urls, "SILENT_SECONDS", 0.3 if "silent" in way else 10)


def far(made: ReadSet, *signals: str) -> list[str]:
    return ["-b", f"s3://run/{made.bam.name}", "-g", f"s3://run/{made.genome.name}", *signals, "-t", "2"]


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("signals", SIGNALS, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_results_or_one_line(server: HostileServer, made: ReadSet, way: str, signals: tuple[str, str], capfd):
    server.way = way
    began = time.monotonic()
    status = run_main(*far(made, *signals), "-o", "found.tsv")
    seconds = time.monotonic() - began
    told = capfd.readouterr().err
    if way in ("sound", "slow"):
        assert status == 0, told
        assert Path("found.tsv").read_bytes() == (server.folder.parent / f"{signals[0]}.tsv").read_bytes()
    else:
        assert status == 1
        assert error_line(told).count("s3://run/") == 1
        assert "Traceback" not in told
        assert not Path("found.tsv").exists()
    assert seconds < PATIENCE


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("sound", "slow", "lies")])
def test_a_server_that_changes_in_mid_run(server: HostileServer, made: ReadSet, way: str, capfd, monkeypatch):
    """What has been fetched until then is computed; the rest ends the run with a line."""
    from f5py.io.remote.ranged_file import RangedFiles

    sound = RangedFiles.fetch
    n_fetched = 0

    def fetch(self, *arguments, **more):
        nonlocal n_fetched
        n_fetched += 1
        if n_fetched == 3:  # of the first reads' signals
            server.way = way
        return sound(self, *arguments, **more)

    monkeypatch.setattr(RangedFiles, "fetch", fetch)
    status = run_main(*far(made, "--pod5", "s3://run/signals.pod5"), "-K", "2", "-o", "found.tsv")
    told = capfd.readouterr().err
    assert n_fetched >= 3
    assert status == 1
    assert "s3://run/" in error_line(told)
    assert not Path("found.tsv").exists()


def test_a_server_that_never_answers_is_not_waited_for_without_end(server: HostileServer, made: ReadSet):
    """A run of its own with the limits that users have, but for one that they may set: a minute would be waited for."""
    assert SILENT_SECONDS * _ATTEMPTS <= 60
    patience = json.dumps({"config_kwargs": {"read_timeout": 1}})
    with ExitStack() as ends:
        runs = {}
        for way in ("silent", "silent content", "fails"):
            other = ends.enter_context(HostileServer(server.folder, way))
            inputs = far(made, "--slow5", "s3://run/signals.blow5")
            runs[way] = ends.enter_context(
                start_process(
                    process_of("call-methylation", *inputs, "-o", f"{way}.tsv"), stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True,
                    env=os.environ | {"AWS_ENDPOINT_URL": other.url, "FSSPEC_S3": patience},
                )
            )  # fmt: skip
        for way, run in runs.items():
            _, told = run.communicate(timeout=PATIENCE + 100)
            assert run.returncode == 1, way
            assert "cannot be read" in error_line(told)
