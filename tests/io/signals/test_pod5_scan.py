"""Names of the reads in POD5 files, listed by another process: the same, and nothing that ends or stops the run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pod5", reason="needs pod5")

from f5py.errors import SignalError
from f5py.io.signals import helper_process, open_signals
from f5py.io.signals.pod5 import reader as pod5_reader
from f5py.io.signals.pod5.reader import Pod5Index, keys_of, list_keys

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


def test_the_same_names_and_words(files, capfd):
    alone = Pod5Index(files)
    words = capfd.readouterr().err
    beside = Pod5Index([])
    assert list(beside) == []
    assert beside.paths_of(list(alone)) == [""] * 4
    beside.fill(list_keys(files))
    assert list(beside.items()) == list(alone.items())
    assert len(beside) == 4
    assert "1.pod5: the file is truncated" in words
    assert capfd.readouterr().err == words


def test_what_is_wrong_with_a_file(files, tmp_path):
    paths = [*files, str(tmp_path / "gone.pod5"), str(tmp_path)]
    for path, found in list_keys(paths).items():
        np.testing.assert_array_equal(found, keys_of(path))


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


def test_files_that_end_or_stop_the_process(monkeypatch, capfd):
    monkeypatch.setattr(pod5_reader, "keys_of", odd_readers.odd_keys)
    monkeypatch.setattr(helper_process, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(helper_process, "CPU_SECONDS", 0.5)  # more than starting takes
    index = Pod5Index([])
    index.fill(list_keys(["a", "abort", "b", "loop", "c"]))
    assert list(index.paths_of(list(index))) == ["a", "b", "c"]
    words = " ".join(capfd.readouterr().err.split())
    assert "2 of 5 POD5 files cannot be read" in words
    assert "abort: the file ends the library that reads it (SIGABRT); it is damaged" in words
    assert "loop: the file keeps the library that reads it in an endless loop; it is damaged" in words


def test_a_process_that_cannot_be_started(monkeypatch, files):
    def fail(*_):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(helper_process, "HelperProcess", fail)
    with pytest.raises(SignalError, match="cannot start the signal reader processes: Res"):
        list_keys(files)
