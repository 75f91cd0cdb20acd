"""Files that get their names later."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from f5py.errors import OutputFileError
from f5py.io.files.atomic_write import AtomicFile
from f5py.io.files.complete_file import complete_text_output
from f5py.io.files.output import open_output


def put(path: Path, content: bytes) -> AtomicFile:
    atomic = AtomicFile(str(path))
    atomic.file.write(content)
    return atomic


def test_the_name_comes_last(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o640)
    atomic = put(path, b"new")
    assert path.read_bytes() == b"old"
    atomic.commit()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["x"]


def test_a_refused_mode_does_not_cost_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on file systems with access lists of their own."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o600)
    atomic = put(path, b"new")
    monkeypatch.setattr(os, "chmod", refuse)
    atomic.commit()
    assert path.read_bytes() == b"new"


def test_what_a_killed_run_has_left_is_taken_up(tmp_path: Path) -> None:
    (tmp_path / ".unfinished-x").write_bytes(b"something that is longer")
    put(tmp_path / "x", b"new").commit()
    assert (tmp_path / "x").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


def test_one_run_at_a_time(tmp_path: Path) -> None:
    first = put(tmp_path / "x", b"first")
    with pytest.raises(OutputFileError, match="x: another run is writing to it; give another name"):
        AtomicFile(str(tmp_path / "x"))
    first.commit()
    second = put(tmp_path / "x", b"second")
    first.discard()  # of the one before, whose name is the second's now
    second.commit()
    assert (tmp_path / "x").read_bytes() == b"second"


@pytest.mark.parametrize("kind", ["link", "hard link", "folder"])
def test_what_is_not_ours_is_not_written(tmp_path: Path, kind: str) -> None:
    victim, planted = tmp_path / "victim", tmp_path / ".unfinished-x"
    victim.write_bytes(b"precious")
    if kind == "link":
        planted.symlink_to(victim)
    elif kind == "hard link":
        planted.hardlink_to(victim)
    else:
        planted.mkdir()
    put(tmp_path / "x", b"new").commit()
    assert (tmp_path / "x").read_bytes() == b"new"
    assert victim.read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == sorted([".unfinished-x", "victim", "x"])


def test_a_link_to_the_file_stays(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "x").symlink_to(tmp_path / "there" / "y")
    put(tmp_path / "x", b"new").commit()
    assert (tmp_path / "x").is_symlink()
    assert (tmp_path / "there" / "y").read_bytes() == b"new"


def test_a_very_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    put(path, b"new").commit()
    assert path.read_bytes() == b"new"


def test_discarded(tmp_path: Path) -> None:
    put(tmp_path / "x", b"new").discard()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["out.tsv", "out.tsv.gz", "out.bgz"])
def test_text_is_compressed_if_the_name_says_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    seen: list[bytes] = []
    with complete_text_output(str(path), 3, lambda unfinished: seen.append(Path(unfinished).read_bytes())) as out:
        out.write(b"text\n" * 100_000)
        assert not path.exists()
    content = path.read_bytes()
    packed = path.suffix != ".tsv"
    assert (gzip.decompress(content) if packed else content) == b"text\n" * 100_000
    assert seen == ([content] if packed else [])
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["out.tsv", "out.tsv.gz"])
def test_an_error_leaves_the_earlier_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"earlier")

    def fail() -> None:
        with complete_text_output(str(path), 2) as out:
            out.write(b"text\n" * 1_000_000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [(name, b"earlier")]


def test_a_complete_file_that_is_refused_gets_no_name(tmp_path: Path) -> None:
    def refuse(_: str) -> None:
        raise OutputFileError("refused")

    path = str(tmp_path / "x.gz")
    with pytest.raises(OutputFileError, match="refused"), complete_text_output(path, 2, refuse) as out:
        out.write(b"text")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("opened", [open_output, complete_text_output])
def test_what_a_pipe_gets_is_compressed_once(tmp_path: Path, opened: Callable[[str, int], Any]) -> None:
    path = tmp_path / "pipe.gz"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with opened(str(path), 2) as out:
        out.write(b"a\tb\n")
    assert gzip.decompress(os.read(reader, 1 << 16)) == b"a\tb\n"
    os.close(reader)
