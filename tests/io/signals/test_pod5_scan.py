"""Names of the reads in POD5 files, listed by another process: the same, and nothing that ends or stops the run."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pod5", reason="needs pod5")

from f5py.errors import F5pyError, MissingDependencyError, SignalError
from f5py.io.signals import open_signals
from f5py.io.signals.pod5 import pod5_scan
from f5py.io.signals.pod5.pod5_scan import ReadLister
from f5py.io.signals.pod5.reader import Pod5Index, keys_of

from . import odd_readers
from .made_pod5 import write_pod5
from .made_signals import make_reads


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three files, the second of which is damaged."""
    reads = make_reads(6)
    for i in range(3):
        write_pod5(tmp_path / f"{i}.pod5", reads[2 * i : 2 * i + 2])
    damaged = tmp_path / "1.pod5"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    return [str(tmp_path / f"{i}.pod5") for i in range(3)]


@pytest.fixture
def odd(monkeypatch):
    """Have a file's name say what happens to the process that lists it."""
    monkeypatch.setattr(pod5_scan, "_serve", odd_readers.odd_keys)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(odd_readers.odd_keys, "__module__", "odd_readers")
    monkeypatch.setattr(pod5_scan, "LOOK_EVERY", 0.1)


def test_the_same_names_and_words(files, capfd):
    alone = Pod5Index(files)
    words = capfd.readouterr().err
    beside = Pod5Index([])
    assert list(beside) == []
    assert beside.paths_of(list(alone)) == [""] * 4
    with ReadLister() as beside_this:
        beside.fill(files, beside_this)
    assert list(beside.items()) == list(alone.items())
    assert len(beside) == 4
    assert "1.pod5: the file is truncated" in words
    assert capfd.readouterr().err == words


def test_what_is_wrong_with_a_file(files, tmp_path):
    with ReadLister() as beside:
        np.testing.assert_array_equal(beside(files[0]), keys_of(files[0]))
        for path in (files[1], str(tmp_path / "gone.pod5"), str(tmp_path)):
            with pytest.raises(SignalError) as here:
                keys_of(path)
            with pytest.raises(SignalError) as there:
                beside(path)
            assert str(there.value) == str(here.value)
        np.testing.assert_array_equal(beside(files[2]), keys_of(files[2]))


def test_a_run_that_cannot_begin_leaves_no_process(files):
    with pytest.raises(SignalError, match="is truncated"):
        open_signals(None, pod5=[files[1]], n_processes=2)


def test_the_library_is_not_imported_where_the_run_is_opened(files):
    import subprocess

    program = (
        "import sys\n"
        "from f5py.io.signals import open_signals\n"
        "source = open_signals(None, pod5=[sys.argv[1]], n_processes=1)\n"
        "print(len(source.fetch(source.first_names(9)).offsets), {'pod5', 'pandas', 'pyarrow'} & set(sys.modules))\n"
        "source.close()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, files[0]], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("3 set()\n", "")


def test_a_missing_package(monkeypatch, files):
    monkeypatch.setattr(pod5_scan, "_serve", odd_readers.keys_without_pod5)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(odd_readers.keys_without_pod5, "__module__", "odd_readers")
    with ReadLister() as beside, pytest.raises(MissingDependencyError, match="install it"):
        beside(files[0])


@pytest.mark.usefixtures("odd")
def test_files_that_end_or_stop_the_process(monkeypatch, capfd):
    monkeypatch.setattr(pod5_scan.HelperProcess, "loops", lambda self, n: self.silence > 1)
    index = Pod5Index([])
    with ReadLister() as beside:
        index.fill(["a", "abort", "b", "loop", "c"], beside)
    assert list(index.paths_of(list(index))) == ["a", "b", "c"]
    words = " ".join(capfd.readouterr().err.split())
    assert "2 of 5 POD5 files cannot be read" in words
    assert "abort: the file ends the library that reads it (SIGABRT); it is damaged" in words
    assert "loop: the file keeps the library that reads it in an endless loop; it is damaged" in words


@pytest.mark.usefixtures("odd")
def test_a_process_that_is_killed_ends_the_run():
    with ReadLister() as beside:
        beside("a")
        os.kill(beside._process.pid, signal.SIGKILL)
        with pytest.raises(F5pyError, match="was killed, perhaps for lack of memory"):
            beside("b")


@pytest.mark.usefixtures("odd")
def test_a_process_that_never_answers(monkeypatch):
    monkeypatch.setattr(pod5_scan.HelperProcess, "loops", lambda self, n: False)
    monkeypatch.setattr(pod5_scan.HelperProcess, "waits_too_long", lambda self, path: self.silence > 0.5)
    began = time.monotonic()
    with ReadLister() as beside, pytest.raises(F5pyError, match="loop: the process that lists its reads has not answ"):
        beside("loop")
    assert time.monotonic() - began >= 0.5


def test_a_process_that_cannot_be_started(monkeypatch):
    def fail(*_):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(pod5_scan, "HelperProcess", fail)
    with ReadLister() as beside, pytest.raises(F5pyError, match="cannot start the process that lists POD5 files: Res"):
        beside("a")
