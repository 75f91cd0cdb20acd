"""Files that are fetched as they are read: the bytes of the original, and no more of them than are needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from f5py.errors import InputFileError
from f5py.io.remote.ranged_file import RangedFile, RangedFiles

fsspec = pytest.importorskip("fsspec")
SIZE = 5_000_003


class Counting:
    """A file system in memory that counts what is asked of it."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files
        self.n_bytes = 0
        self.n_calls = 0

    def cat_ranges(self, names: list[str], begins: list[int], ends: list[int]) -> list[bytes]:
        self.n_calls += 1
        pieces = [self._files[name][begin:end] for name, begin, end in zip(names, begins, ends, strict=True)]
        self.n_bytes += sum(map(len, pieces))
        return pieces


@pytest.fixture
def content() -> bytes:
    return np.random.default_rng(1).bytes(SIZE)


def opened(files: RangedFiles, folder: Path, name: str = "a", size: int = SIZE) -> RangedFile:
    return files.add(f"far://{name}", name, size, str(folder / name))


def test_what_is_needed_is_there(content: bytes, tmp_path: Path):
    system = Counting({"a": content})
    files = RangedFiles(system, 1 << 30)
    file = opened(files, tmp_path)
    generator = np.random.default_rng(2)
    for _ in range(50):
        begins = generator.integers(0, SIZE, generator.integers(1, 20))
        ends = begins + generator.integers(1, 50_000, len(begins))
        file.fetch_ranges(begins, ends)
        there = Path(file.path).read_bytes()
        assert len(there) == SIZE
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            assert there[begin:end] == content[begin:end]
    before = system.n_bytes
    file.fetch_ranges(0, SIZE)
    assert Path(file.path).read_bytes() == content
    file.fetch_ranges([0, 77], [SIZE, SIZE])
    assert system.n_bytes <= 2 * SIZE  # what lies between two wanted pieces may come again
    assert system.n_bytes >= before
    files.close()


def test_little_is_fetched(content: bytes, tmp_path: Path):
    system = Counting({"a": content, "b": content})
    files = RangedFiles(system, 1 << 30)
    a, b = opened(files, tmp_path), opened(files, tmp_path, "b")
    at = np.array([10, 2_000_000, 4_000_000])
    files.fetch([(a, at, at + 100), (b, at, at + 100)])
    assert system.n_calls == 1
    assert system.n_bytes <= 6 * 2 * (1 << 14)
    files.fetch([(a, at, at + 100)])
    assert system.n_calls == 1
    files.close()


def test_what_passes_goes_and_what_stays_does_not(content: bytes, tmp_path: Path):
    system = Counting({"a": content})
    files = RangedFiles(system, 1 << 20)
    file = opened(files, tmp_path)
    file.fetch_ranges(0, 100_000, stay=True)
    n_before = 0
    for begin in range(100_000, SIZE - 500_000, 300_000):
        file.fetch_ranges(begin, begin + 400_000)
        there = Path(file.path).read_bytes()
        assert there[begin : begin + 400_000] == content[begin : begin + 400_000]
        assert there[:100_000] == content[:100_000]
        assert os.stat(file.path).st_blocks * 512 < (1 << 20) + 800_000
        n_before += 1
    assert n_before > 10
    file.fetch_ranges(150_000, 160_000)  # it has gone, and comes again
    assert Path(file.path).read_bytes()[150_000:160_000] == content[150_000:160_000]
    files.close()


def test_reading_from_front_to_back(content: bytes, tmp_path: Path):
    system = Counting({"a": content})
    files = RangedFiles(system, 1 << 20)
    file = opened(files, tmp_path)
    pieces = [file.read(at, 65_536) for at in range(0, SIZE, 65_536)]
    assert b"".join(pieces) == content
    assert system.n_bytes < 1.5 * SIZE
    assert system.n_calls < 20
    files.close()


@pytest.mark.parametrize("found", [b"short", OSError("the line is dead")])
def test_what_cannot_be_fetched(tmp_path: Path, found: Any):
    class Broken:
        def cat_ranges(self, names: list[str], begins: list[int], ends: list[int]) -> list[Any]:
            return [found] * len(names)

    files = RangedFiles(Broken(), 1 << 20)
    file = opened(files, tmp_path)
    with pytest.raises(InputFileError, match=r"^far://a: (has become shorter|cannot be read \(the line is dead\))"):
        file.fetch_ranges(0, 10)
    files.close()


def test_thousands_of_files_may_be_there(content: bytes, tmp_path: Path):
    """A folder of POD5 may have more files than a process may have open."""
    before = len(os.listdir("/proc/self/fd"))
    files = RangedFiles(Counting({str(i): content for i in range(100)}), 1 << 20)
    all_files = [opened(files, tmp_path, str(i)) for i in range(100)]
    files.fetch([(file, np.array([0]), np.array([100])) for file in all_files])
    assert len(os.listdir("/proc/self/fd")) < before + 10  # others of this process may be closed meanwhile
    assert all_files[77].read(0, 100) == content[:100]
    files.close()
