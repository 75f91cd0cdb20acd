"""The same search for signal files in every format."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from f5py.errors import SignalError
from f5py.io.signals.fast5.fast5_scan import list_fast5
from f5py.io.signals.pod5.reader import pod5_files
from f5py.io.signals.search import list_formats

SEARCHES = [(list_fast5, ".fast5"), (pod5_files, ".pod5"), (lambda path: list(list_formats(path).values()), ".pod5")]


@pytest.mark.parametrize(("search", "ending"), SEARCHES)
def test_links_are_followed_but_not_in_a_circle(tmp_path: Path, search, ending: str):
    (tmp_path / "d").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / f"other/1{ending}").touch()
    (tmp_path / "d/circle").symlink_to(tmp_path / "d")
    (tmp_path / "d/away").symlink_to(tmp_path / "other")
    (tmp_path / f"d/lost{ending}").symlink_to(tmp_path / "nowhere")
    assert search(f"{tmp_path}/d") == [f"{tmp_path}/d/away/1{ending}"]


@pytest.mark.parametrize(("search", "ending"), SEARCHES)
def test_what_macos_leaves_is_no_signal(tmp_path: Path, search, ending: str):
    (tmp_path / f"._1{ending}").write_bytes(b"\0\5\26\7")
    (tmp_path / f"1{ending}").touch()
    assert search(str(tmp_path)) == [f"{tmp_path}/1{ending}"]


@pytest.mark.parametrize(("search", "ending"), SEARCHES)
def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path, search, ending: str, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / f"1{ending}").touch()
    scandir = os.scandir

    def refuse(path: str):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SignalError, match=r"closed: cannot be searched for signals \(Permission denied\)"):
        search(str(tmp_path))
