"""Signals of POD5 files whose pieces are read in this process: as the library reads them, or left to it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

signal_tools = pytest.importorskip("pod5.signal_tools", reason="needs pod5")
zstandard = pytest.importorskip("zstandard")

from f5py.core._stored_samples_numba import copy_samples  # noqa: E402
from f5py.core.batch import StoredSamples  # noqa: E402
from f5py.errors import MissingDependencyError  # noqa: E402
from f5py.io.signals import open_signals  # noqa: E402
from f5py.io.signals.pod5 import direct_source  # noqa: E402
from f5py.io.signals.pod5._vbz_numba import ChunkBuffers, read_pieces  # noqa: E402
from f5py.io.signals.pod5.direct_source import DirectPod5Source, _are_sound  # noqa: E402
from f5py.io.signals.slow5 import _slow5_functions  # noqa: E402
from f5py.io.signals.slow5._slow5_functions import ZSTD, functions  # noqa: E402

from ...examples import examples  # noqa: E402
from .made_pod5 import large_read, pod5_name, pod5_source, write_pod5  # noqa: E402
from .made_signals import MadeRead, assert_expands_anywhere, assert_same_block  # noqa: E402


def _reads() -> list[MadeRead]:
    """Make reads of all lengths up to three vectors, of steps of one byte and of two, and one of several pieces."""
    random = np.random.default_rng(11)
    short = [MadeRead(f"short{n}", random.integers(-40 * n, 40 * n, n).astype(np.int16)) for n in range(1, 26)]
    ends = MadeRead("ends", np.tile([-32768, 32767, 0], 50).astype(np.int16))
    calm = MadeRead("calm", random.integers(400, 460, 5000).astype(np.int16))
    return [*short, ends, calm, large_read()]


@pytest.fixture
def files(tmp_path) -> Path:
    reads = _reads()
    for i in range(2):
        write_pod5(tmp_path / f"{i}.pod5", reads[i::2])
    return tmp_path


def _names(reads) -> list[str]:
    return [pod5_name(read.name) for read in reads]


def _is_same_as_of_library(folder: Path, source: DirectPod5Source, names: list[str]) -> None:
    library = pod5_source(folder)
    assert_same_block(source.fetch(names), library.fetch(names))
    library.close()


def test_all_is_read_here(files):
    source = open_signals(None, pod5=[str(files)], n_processes=None, n_threads=2)
    names = _names(_reads())
    _is_same_as_of_library(files, source, [*names[::-1], "not a UUID", *names[3:6]])
    assert source._others is None
    source.close()


def test_samples_that_stay_packed(files, tmp_path, pool):
    """They can be expanded anywhere, also those of several pieces; reads that the library has read are not packed."""
    source = open_signals(None, pod5=[str(files)], n_threads=2)
    names = _names(_reads())[::-1]
    expected = source.fetch(names)
    assert expected.packed is None
    assert isinstance(source, DirectPod5Source)
    source.use_pool(pool, leaves_packed=True)
    block = source.fetch(names)
    assert block.packed is not None
    stored = block.packed
    assert stored.is_packed.all()
    assert np.diff(stored.pieces).max() > 1
    assert_expands_anywhere(block, expected, np.random.default_rng(3).permutation(len(names)))

    write_pod5(tmp_path / "plain.pod5", [MadeRead("plain", np.arange(3000, dtype=np.int16))], compressed=False)
    source.close()
    source = open_signals(None, pod5=[str(tmp_path)])
    assert isinstance(source, DirectPod5Source)
    source.use_pool(pool, leaves_packed=True)
    names.insert(2, pod5_name("plain"))
    _is_same_as_of_library(tmp_path, source, names)
    source.close()


def test_few_files_are_open_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(direct_source, "MAX_OPEN_FILES", 2)
    reads = _reads()
    for i, read in enumerate(reads[:7]):
        write_pod5(tmp_path / f"{i}.pod5", [read])
    source = open_signals(None, pod5=[str(tmp_path)])
    _is_same_as_of_library(tmp_path, source, _names(reads[:7]))
    assert source._others is None
    source.close()


def test_what_is_not_compressed_is_left_to_the_library(files):
    more = [MadeRead("plain", np.arange(3000, dtype=np.int16)), MadeRead("none", np.empty(0, np.int16))]
    write_pod5(files / "2.pod5", more, compressed=False)
    source = open_signals(None, pod5=[str(files)])
    _is_same_as_of_library(files, source, _names([*_reads(), *more, *_reads()[:2]]))
    assert source._others is not None
    _is_same_as_of_library(files, source, _names(more))
    source.close()


def test_damage_is_told_as_the_library_tells_it(files, pool):
    name = pod5_name("calm")
    path = next(path for path in files.glob("*.pod5") if name in pod5_source(path)._paths)
    data = bytearray(path.read_bytes())
    packed = signal_tools.vbz_compress_signal(_reads()[-2].samples)
    at = data.find(bytes(packed))
    assert at > 0
    data[at + 20 : at + len(packed) - 20] = bytes(len(packed) - 40)
    path.write_bytes(data)
    source = open_signals(None, pod5=[str(files)])
    names = _names(_reads())
    _is_same_as_of_library(files, source, [name, *names, name])
    block = source.fetch(names)
    assert list(block.problems) == [len(names) - 2]
    assert "has damaged signal data" in block.problems[len(names) - 2]
    assert isinstance(source, DirectPod5Source)
    source.use_pool(pool, leaves_packed=True)
    _is_same_as_of_library(files, source, [name, *names, name])
    source.close()


def test_a_file_that_is_gone_when_it_is_to_be_read(files):
    source = open_signals(None, pod5=[str(files)])
    names = _names(_reads())
    before = source.fetch(names)
    os.remove(files / "0.pod5")
    block = source.fetch(names)
    gone = [i for i in range(len(names)) if i % 2 == 0]
    assert list(block.problems) == gone
    assert "0.pod5: read" in block.problems[0]
    assert "cannot be opened" in block.problems[0]
    for i in range(1, len(names), 2):
        assert np.array_equal(
            block.samples[block.offsets[i] : block.offsets[i + 1]],
            before.samples[before.offsets[i] : before.offsets[i + 1]],
        )
    source.close()


def test_without_the_library_for_zstd(files, monkeypatch):
    def missing(path: str, press: int) -> None:
        raise MissingDependencyError("no zstd")

    monkeypatch.setattr(_slow5_functions, "functions", missing)
    source = open_signals(None, pod5=[str(files)])
    assert not isinstance(source, DirectPod5Source)
    _is_same_as_of_library(files, source, _names(_reads()))
    source.close()


@pytest.mark.parametrize(
    "piece", [(0, 10, 101), (0, 10, 99), (-1, 10, 100), (10, 5, 100), (0, 2000, 100), (0, 10, -100), (0, 0, 0)]
)
def test_places_that_cannot_be(piece):
    pieces = np.array([(0, 50, 60), piece, (50, 90, 40)])
    owners = np.array([0, 1, 0])
    assert _are_sound(pieces, owners, np.array([100, 100])).tolist() == [True, False]


class TestPieces:
    """What compiled code makes of the bytes of a piece."""

    @staticmethod
    def _read(path: Path, stored: bytes, n: int, begin: int = 3, missing: int = 0):
        path.write_bytes(b"abc" + stored)
        most = (9 * n // 4 + 2) // 2
        values, codes, places = np.full(most + 8, 7, np.int16), np.full(1, -1, np.int32), np.zeros(1, np.int64)
        got = ChunkBuffers(np.array([4]), values[: most + 4], places, np.zeros(1, np.bool_), codes)
        with path.open("rb") as file:
            read_pieces(
                np.zeros(1, np.int64),
                np.zeros(1, np.int64),
                np.array([[begin, begin + len(stored) + missing, n]]),
                np.array([file.fileno()]),
                functions("", ZSTD),
                got,
            )
        assert (values[:4] == 7).all()
        assert (values[most + 4 :] == 7).all()
        assert got.is_packed[0] == (codes[0] == 0)
        out = np.full(n + 8, 7, np.int16)
        if codes[0] == 0:
            assert places[0] == 8
            stored_samples = StoredSamples(values, np.array([0, 1]), places, np.array([n]), got.is_packed)
            copy_samples(np.zeros(1, np.int64), np.zeros(1, np.int64), stored_samples, np.array([4]), out)
        assert (out[:4] == 7).all()
        assert (out[4 + n :] == 7).all()
        return codes[0], out[4 : 4 + n]

    @settings(max_examples=examples(200))
    @given(st_numpy.arrays(np.int16, st.integers(1, 300), elements=st.integers(-32768, 32767)), st.integers(1, 500))
    def test_any_samples(self, samples, divisor):
        folder = Path(os.environ.get("TMPDIR", "/tmp"))
        path = folder / f"pieces-{os.getpid()}"
        try:
            samples = (samples // divisor).astype(np.int16)
            code, found = self._read(path, bytes(signal_tools.vbz_compress_signal(samples)), len(samples))
            assert code == 0
            assert np.array_equal(found, samples)
        finally:
            path.unlink()

    @settings(max_examples=examples(200))
    @given(st.integers(1, 60), st.binary(max_size=200))
    def test_any_contents(self, n, contents):
        path = Path(os.environ.get("TMPDIR", "/tmp")) / f"pieces-{os.getpid()}"
        try:
            control, data = contents[: (n + 7) // 8], contents[(n + 7) // 8 :]
            code, _ = self._read(path, zstandard.compress(contents), n)
            bits = int.from_bytes(control, "little")
            fits = len(control) == (n + 7) // 8 and bits >> n == 0 and len(data) == n + bits.bit_count()
            assert (code == 0) == fits
        finally:
            path.unlink()

    @pytest.mark.parametrize("n", [99, 101, 0, 1 << 20])
    def test_another_number_of_samples(self, tmp_path, n):
        stored = bytes(signal_tools.vbz_compress_signal(np.arange(100, dtype=np.int16)))
        assert self._read(tmp_path / "piece", stored, n)[0] != 0

    def test_places_beyond_the_file(self, tmp_path):
        stored = bytes(signal_tools.vbz_compress_signal(np.arange(100, dtype=np.int16)))
        assert self._read(tmp_path / "piece", stored, 100)[0] == 0
        assert self._read(tmp_path / "piece", stored, 100, missing=1)[0] != 0
        assert self._read(tmp_path / "piece", stored, 100, begin=1 << 40)[0] != 0

    def test_what_is_not_zstd(self, tmp_path):
        assert self._read(tmp_path / "piece", b"", 100)[0] != 0
        assert self._read(tmp_path / "piece", bytes(40), 100)[0] != 0
        stored = bytes(signal_tools.vbz_compress_signal(np.arange(100, dtype=np.int16)))
        assert self._read(tmp_path / "piece", stored[:-4], 100)[0] != 0
