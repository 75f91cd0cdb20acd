"""Folders of files that can be made again."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from f5py.jit.cache_folder import cache_folder


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Play a user without a home, and make a folder for temporary files."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_the_environment_and_the_home_are_obeyed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == f"{tmp_path}/.cache"
    monkeypatch.setenv("XDG_CACHE_HOME", "/else/where")
    assert cache_folder() == "/else/where"


def test_without_a_home_it_is_private_and_stays_the_same(no_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cache_folder()
    assert found == os.environ["XDG_CACHE_HOME"] == f"{no_home}/f5py-cache-{os.geteuid()}"
    assert stat.S_IMODE(os.stat(found).st_mode) == 0o700
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == found


@pytest.mark.parametrize("kind", ["refused", "file"])
def test_a_home_that_cannot_be_written_is_none(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    if kind == "refused":
        monkeypatch.setattr(os, "access", lambda path, mode: path != str(home))
    else:
        (home / ".cache").touch()
    assert cache_folder() == os.environ["XDG_CACHE_HOME"] == f"{temporary}/f5py-cache-{os.geteuid()}"


@pytest.mark.parametrize("kind", ["open to others", "link", "file"])
def test_a_folder_that_another_may_have_made_is_not_used(no_home: Path, kind: str) -> None:
    planted = no_home / f"f5py-cache-{os.geteuid()}"
    if kind == "open to others":
        planted.mkdir(mode=0o777)
        planted.chmod(0o777)
    elif kind == "link":
        (no_home / "elsewhere").mkdir(mode=0o700)
        planted.symlink_to(no_home / "elsewhere")
    else:
        planted.touch(mode=0o600)
    found = cache_folder()
    assert found != str(planted)
    assert stat.S_IMODE(os.stat(found).st_mode) == 0o700


def test_numba_makes_no_folder_of_that_name(tmp_path: Path) -> None:
    """A user that the system does not know, and no HOME: Python then takes ~ as it is."""
    unset = "HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    program = (
        "import os.path, tempfile\n"
        "os.path.expanduser = lambda path: path\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "import f5py.jit.kernel, os\n"
        "print(os.environ['XDG_CACHE_HOME'])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    assert done.stdout.strip() == f"{tmp_path}/f5py-cache-{os.geteuid()}"
    assert not (tmp_path / "~").exists()
