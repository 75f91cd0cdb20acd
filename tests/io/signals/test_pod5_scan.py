"""Names of the reads in POD5 files, listed by another process: the same, and nothing that ends or stops the run."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("pod5", reason="needs pod5")

from f5py.errors import SignalError
from f5py.io.signals import helper_process, open_signals
from f5py.io.signals.pod5.reader import Pod5Index
from f5py.io.signals.processes import ProcessSource

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
    assert "1.pod5: the file is truncated" in words
    with closing(open_signals(None, pod5=files)) as source:
        assert sorted(source.first_names(9)) == sorted(alone)
        assert not source.fetch(list(alone)).problems
    assert capfd.readouterr().err == words


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
    monkeypatch.setattr(helper_process, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(helper_process, "CPU_SECONDS", 0.5)  # more than starting takes
    index = Pod5Index([])
    with closing(ProcessSource(1, index, odd_readers.OddLister)) as source:
        paths = ["a", "abort", "b", "loop", "c"]
        index.fill(dict(zip(paths, source.list_reads(paths), strict=True)))
    assert list(index.paths_of(list(index))) == ["a", "b", "c"]
    words = " ".join(capfd.readouterr().err.split())
    assert "2 of 5 POD5 files cannot be read" in words
    assert "abort: the file ends the library that reads it (SIGABRT); it is damaged" in words
    assert "loop: the file keeps the library that reads it in an endless loop; it is damaged" in words
