"""Folder of compiled code: private, named by the sources, and not chosen by the working folder."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import f5py

KERNEL = "_name_table_numba.fill_table"
PROGRAM = """
import numpy as np
from f5py.core._name_table_numba import fill_table
table = np.full(8, -1, np.int64)
fill_table(np.frombuffer(bytearray(b"abc"), np.uint8), np.arange(3), np.arange(1, 4), table)
print(sorted(table.tolist()))
"""
RESULT = "[-1, -1, -1, -1, -1, 0, 1, 2]\n"


class Planted:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.mark,)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment of a user with an empty cache and a folder for temporary files of its own."""
    for name in ("cache", "tmp", "work"):
        (tmp_path / name).mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return kept | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp")}


def run(environment: dict[str, str], folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    command = command or ("-c", PROGRAM)
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )


def index_in(folder: Path) -> Path:
    (index,) = folder.rglob(f"{KERNEL}-*.nbi")
    return index


def test_the_working_folder_chooses_no_cache(environment: dict[str, str], tmp_path: Path):
    pytest.importorskip("yaml")
    work, mark = tmp_path / "work", tmp_path / "mark"
    assert run(environment, work).stdout == RESULT
    index = index_in(tmp_path / "cache")
    planted = work / "kept" / index.parent.name / index.name
    planted.parent.mkdir(parents=True)
    planted.write_bytes(pickle.dumps(Planted(mark)))
    (work / "locators.py").write_text(f"open({str(mark)!r}, 'w')")
    lines = "cache_dir: kept", "cache_locator_classes: locators.Some", "disable_jit: 1", f"chrome_trace: {mark}"
    (work / ".numba_config.yaml").write_text("\n".join(lines))
    paths = [str(work), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    done = run(environment | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}, work)
    assert (done.stdout, done.stderr) == (RESULT, "")
    assert not mark.exists()
    assert list((tmp_path / "cache").rglob(index.name)) == [index]


def test_the_module_imports_nothing_from_the_working_folder(environment: dict[str, str], tmp_path: Path):
    (tmp_path / "work" / "click.py").write_text("raise SystemExit('code of the working folder')")
    assert run(environment, tmp_path / "work", "-m", "f5py", "--version").stdout.startswith("f5py ")


@pytest.mark.parametrize("kind", ["open to others", "of another user", "link"])
def test_a_folder_that_others_control_is_not_read(environment: dict[str, str], tmp_path: Path, kind: str):
    if kind == "of another user" and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    place, mark = tmp_path / "named", tmp_path / "mark"
    environment["NUMBA_CACHE_DIR"] = str(place)
    assert run(environment, tmp_path).stderr == ""
    index = index_in(place)
    folder = index.parents[1]
    assert folder.stat().st_mode & 0o777 == 0o700
    index.write_bytes(pickle.dumps(Planted(mark)))
    if kind == "open to others":
        folder.chmod(0o777)
    elif kind == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        os.chown(folder, 12345, -1)
    done = run(environment, tmp_path)
    assert done.stdout == RESULT
    assert f"{folder}: others may write to it" in done.stderr
    assert not mark.exists()
    assert index_in(tmp_path / "tmp")


def test_folders_that_no_run_has_used_for_long_are_removed(environment: dict[str, str], tmp_path: Path):
    code = tmp_path / "cache" / "f5py" / "code"
    for name in ("f5py-0.0.1-old", "f5py-0.0.1-new", "other"):
        (code / name).mkdir(parents=True)
    for name in ("f5py-0.0.1-old", "other"):
        os.utime(code / name, (0, 0))
    run(environment, tmp_path)
    assert {path.name for path in code.iterdir()} == {"f5py-0.0.1-new", "other", index_in(code).parents[1].name}


def test_changed_sources_have_a_folder_of_their_own(environment: dict[str, str], tmp_path: Path):
    package = tmp_path / "lib" / "f5py"
    shutil.copytree(Path(f5py.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "data"))
    environment["PYTHONPATH"] = str(package.parent)
    program = "from f5py.jit.code_cache import code_folder; print(code_folder())"
    before = run(environment, tmp_path, "-c", program).stdout
    assert run(environment, tmp_path, "-c", program).stdout == before
    with (package / "core" / "offsets.py").open("a") as file:
        file.write("\n")
    assert run(environment, tmp_path, "-c", program).stdout != before


def test_code_of_an_image_that_cannot_be_written_is_copied(environment: dict[str, str], tmp_path: Path):
    """As in a container whose image was made by root, for a user without rights in it."""
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "of_root")
    assert run(environment, tmp_path).stderr == ""
    refuse = (
        "import tempfile\n"
        "make = tempfile.TemporaryFile\n"
        "def refuse(dir):\n"
        "    if 'of_root' in dir:\n"
        "        raise PermissionError(13, 'Permission denied', dir)\n"
        "    return make(dir=dir)\n"
        "tempfile.TemporaryFile = refuse\n"
    )
    done = run(environment, tmp_path, "-c", f"{refuse}{PROGRAM}print(dict(fill_table.stats.cache_hits) != {{}})")
    assert (done.stdout, done.stderr) == (f"{RESULT}True\n", "")
    assert index_in(tmp_path / "tmp")
