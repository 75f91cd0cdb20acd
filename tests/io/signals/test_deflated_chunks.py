"""Chunks that are inflated without HDF5: the same samples and the same words about damage, and no other chunks."""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
import pytest

from f5py.io.signals.fast5._deflated_chunks import DeflatedChunks
from f5py.io.signals.fast5._fast5_h5py import Fast5File
from f5py.io.signals.source import Unreadable

from .made_signals import GZIP, VBZ, MadeRead, make_reads, write_multi, write_single

SHUFFLED = {"shuffle": True, **GZIP}
SAMPLES = np.random.default_rng(7).integers(-3000, 3000, 5000).astype(np.int16)


def directly(path: Path, name: str = "r") -> np.ndarray | None:
    """Read what a multi-read file has of a read without HDF5."""
    with h5py.File(path) as file:
        signal = file[f"read_{name}/Raw/Signal"]
        return DeflatedChunks().read(signal.id, signal.shape[0], 1 << 20)


@contextmanager
def without_hdf5():
    """Have nothing read by HDF5's filters."""
    with mock.patch.object(Fast5File, "_values", side_effect=AssertionError("read by HDF5")):
        yield


@pytest.mark.parametrize("storage", [GZIP, SHUFFLED, {"compression": "gzip", "compression_opts": 9}])
@pytest.mark.parametrize("chunks", [True, (1,), (7,), (2500,), (4999,), (5000,)])
@pytest.mark.parametrize("n", [1, 7, 5000])
def test_the_same_samples(tmp_path, storage, chunks, n):
    if isinstance(chunks, tuple):
        chunks = (min(chunks[0], n),)
    write_multi(tmp_path / "a.fast5", [MadeRead("r", SAMPLES[:n])], chunks=chunks, **storage)
    found = directly(tmp_path / "a.fast5")
    assert found is not None
    assert found.dtype == np.int16
    np.testing.assert_array_equal(found, SAMPLES[:n])


@pytest.mark.parametrize("storage", [GZIP, SHUFFLED])
def test_a_chunk_longer_than_the_signal(tmp_path, storage):
    path = tmp_path / "a.fast5"
    write_multi(path, [MadeRead("r", SAMPLES)], chunks=(8192,), maxshape=(None,), **storage)
    np.testing.assert_array_equal(directly(path), SAMPLES)


@pytest.mark.parametrize("write", [write_multi, lambda path, reads, **storage: write_single(path, reads[0], **storage)])
@pytest.mark.parametrize("storage", [GZIP, SHUFFLED])
def test_files_are_read_so(tmp_path, write, storage):
    reads = make_reads(3)
    paths = write(tmp_path / "a.fast5", reads, **storage)
    file = Fast5File(str(tmp_path / "a.fast5"))
    with without_hdf5():
        for read in reads[: len(paths)]:
            samples, calibration = file.read(read.name)
            np.testing.assert_array_equal(samples, read.samples)
            assert calibration[:4] == list(read.calibration().values())
    file.close()


@pytest.mark.parametrize(
    "storage",
    [
        {},
        {"chunks": (100,)},
        {"fletcher32": True, **GZIP},
        {"fletcher32": True, **SHUFFLED},
        {"scaleoffset": 0, **GZIP},
        {"compression": "lzf"},
        {"shuffle": True, "chunks": (100,)},
        VBZ,
    ],
)
def test_all_else_is_left_to_hdf5(tmp_path, storage):
    if storage is VBZ:
        pytest.importorskip("vbz_h5py_plugin", reason="needs vbz-h5py-plugin")
    path = tmp_path / "a.fast5"
    write_multi(path, [MadeRead("r", SAMPLES)], **storage)
    assert directly(path) is None
    file = Fast5File(str(path))
    np.testing.assert_array_equal(file.read("r")[0], SAMPLES)
    file.close()


@pytest.mark.parametrize("kind", [">i2", "<u2", "<i4", "<i8", "i1"])
def test_other_numbers_are_left_to_hdf5(tmp_path, kind):
    samples = np.arange(100).astype(kind)
    write_multi(tmp_path / "a.fast5", [MadeRead("r", samples)], **GZIP)
    file = Fast5File(str(tmp_path / "a.fast5"))
    with mock.patch.object(DeflatedChunks, "read", side_effect=AssertionError("not read by HDF5")):
        assert file.read("r")[0].tolist() == list(range(100))
    file.close()


def test_a_file_of_both_kinds(tmp_path):
    """One signal that HDF5 must read sends all later ones to it, and changes no sample."""
    path = tmp_path / "a.fast5"
    reads = make_reads(4)
    write_multi(path, reads[:2], **GZIP)
    with h5py.File(path, "a") as file:
        for read, storage in zip(reads[2:], ({}, GZIP), strict=True):
            group = file.create_group(f"read_{read.name}")
            group.create_dataset("Raw/Signal", data=read.samples, **storage)
            group.create_group("channel_id").attrs.update(read.calibration())
    for order in (reads, reads[::-1], reads[2:] + reads[:2]):
        opened = Fast5File(str(path))
        for read in order:
            np.testing.assert_array_equal(opened.read(read.name)[0], read.samples)
        opened.close()


def test_a_filter_that_was_left_out(tmp_path):
    """HDF5 notes for each chunk which filters it did not apply."""
    path = tmp_path / "a.fast5"
    write_multi(path, [MadeRead("r", SAMPLES[:100])], chunks=(100,), **GZIP)
    with h5py.File(path, "r+") as file:
        file["read_r/Raw/Signal"].id.write_direct_chunk((0,), SAMPLES[:100].tobytes(), filter_mask=1)
    assert directly(path) is None
    file = Fast5File(str(path))
    np.testing.assert_array_equal(file.read("r")[0], SAMPLES[:100])
    file.close()


def test_chunks_that_were_never_written(tmp_path):
    path = tmp_path / "a.fast5"
    write_multi(path, [MadeRead("r", SAMPLES[:100])], chunks=(100,), maxshape=(None,), fillvalue=-5, **GZIP)
    with h5py.File(path, "r+") as file:
        file["read_r/Raw/Signal"].resize((250,))
    assert directly(path) is None
    file = Fast5File(str(path))
    assert file.read("r")[0].tolist() == [*SAMPLES[:100].tolist(), *[-5] * 150]
    file.close()


def test_a_chunk_of_impossible_length_is_left_to_hdf5(tmp_path):
    path = tmp_path / "a.fast5"
    write_multi(path, [MadeRead("r", SAMPLES[:10])], chunks=(1 << 19,), maxshape=(None,), **GZIP)
    with h5py.File(path) as file:
        signal = file["read_r/Raw/Signal"].id
        assert DeflatedChunks().read(signal, 10, 1 << 19) is None
        np.testing.assert_array_equal(DeflatedChunks().read(signal, 10, 1 << 20), SAMPLES[:10])


def outcome(path: Path) -> list[int] | str:
    """Return the samples of the read, or what is said of it."""
    try:
        file = Fast5File(str(path))
        try:
            return file.read("r")[0].tolist()
        finally:
            file.close()
    except Unreadable as problem:
        return str(problem)


@pytest.mark.parametrize("storage", [GZIP, SHUFFLED])
def test_damage_is_told_as_hdf5_tells_it(tmp_path, storage):
    """Every byte of a chunk, changed in two ways: the same samples or the same words."""
    path = tmp_path / "a.fast5"
    write_multi(path, [MadeRead("r", SAMPLES[:40])], chunks=(40,), **storage)
    with h5py.File(path) as file:
        chunk = file["read_r/Raw/Signal"].id.get_chunk_info(0)
    whole = path.read_bytes()
    n_told = 0
    for at in range(chunk.byte_offset, chunk.byte_offset + chunk.size):
        for flip in (0xFF, 1 << at % 8):
            damaged = bytearray(whole)
            damaged[at] ^= flip
            path.write_bytes(damaged)
            found = outcome(path)
            with mock.patch.object(DeflatedChunks, "read", return_value=None):
                assert found == outcome(path)
            n_told += isinstance(found, str)
    assert n_told > chunk.size


@pytest.mark.parametrize("storage", [GZIP, SHUFFLED])
@pytest.mark.parametrize("length", [0, 1, 79])
def test_a_chunk_that_is_too_short(tmp_path, length, storage):
    write_with_chunk(tmp_path / "a.fast5", bytes(length), storage)
    assert outcome(tmp_path / "a.fast5") == "has damaged signal data (a chunk is too short)"


@pytest.mark.parametrize("storage", [GZIP, SHUFFLED])
@pytest.mark.parametrize("length", [81, 1000])
def test_a_chunk_that_is_too_long_is_left_to_hdf5(tmp_path, length, storage):
    write_with_chunk(tmp_path / "a.fast5", bytes(length), storage)
    assert directly(tmp_path / "a.fast5") is None


def write_with_chunk(path: Path, text: bytes, storage: dict) -> None:
    """Write a read whose only chunk should have 80 bytes."""
    write_multi(path, [MadeRead("r", SAMPLES[:40])], chunks=(40,), **storage)
    with h5py.File(path, "r+") as file:
        file["read_r/Raw/Signal"].id.write_direct_chunk((0,), zlib.compress(text))
