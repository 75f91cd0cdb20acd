"""Where the pieces of signals are in POD5 files, and the UUIDs that reads are looked up by."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.io.signals.pod5.uuids import keys_of_names

pytest.importorskip("pod5")

from f5py.io.signals.pod5 import _pod5_file
from f5py.io.signals.pod5._pod5_file import Pod5File
from f5py.io.signals.pod5.reader import ChunkOffsetReader, Pod5Index, Pod5Reader

from .made_pod5 import large_read, pod5_name, write_pod5
from .made_signals import MadeRead, assert_same_block


def _made(n: int, first: int = 0) -> list[MadeRead]:
    random = np.random.default_rng(first)
    sizes = random.integers(1, 400, n)
    return [
        MadeRead(f"read{first + i}", random.integers(0, 900, size).astype(np.int16)) for i, size in enumerate(sizes)
    ]


@pytest.fixture
def folder(tmp_path):
    write_pod5(tmp_path / "0.pod5", [*_made(230), large_read()])
    write_pod5(tmp_path / "1.pod5", _made(40, 500))
    write_pod5(tmp_path / "plain.pod5", _made(3, 900), compressed=False)
    (tmp_path / "bad.pod5").write_text("no signals")
    return tmp_path


def _rows(block, i: int) -> np.ndarray:
    return block.samples[block.offsets[i] : block.offsets[i + 1]].copy().view(np.int64).reshape(-1, 3)


def test_pieces_and_problems(folder):
    """Reads of several files and tables in any order, more than once, and those of which there is nothing."""
    index = Pod5Index([str(folder / f"{name}.pod5") for name in ("0", "1", "plain")])
    reads = [*_made(230), large_read(), *_made(40, 500), *_made(3, 900)]
    random = np.random.default_rng(1)
    chosen = [reads[i] for i in random.integers(0, len(reads), 400)]
    names = [pod5_name(read.name) for read in chosen]
    paths = index.paths_of(names)
    names += [names[0].upper(), pod5_name("elsewhere"), "read7", pod5_name("unknown"), names[1], "none"]
    paths += [paths[0], str(folder / "1.pod5"), str(folder / "1.pod5"), "", str(folder / "bad.pod5"), ""]
    places, library = ChunkOffsetReader(), Pod5Reader()
    block, expected = places.read(names, paths), library.read(names, paths)
    assert block.problems == expected.problems
    assert sorted(block.problems) == [401, 402, 403, 404, 405]
    assert "not in this file" in block.problems[401]
    assert np.array_equal(block.calibration, expected.calibration, equal_nan=True)
    n_pieces = []
    for i, path in enumerate(paths):
        rows = _rows(block, i)
        if i in block.problems:
            assert len(rows) == 0
            continue
        samples = expected.samples[expected.offsets[i] : expected.offsets[i + 1]]
        assert rows[0].tolist() == [len(samples), 0, 0]
        n_pieces.append(len(rows) - 1)
        if "plain" in path:
            assert (rows[1:] == -1).all()
            continue
        data = (folder / path).read_bytes()
        pieces = [_expanded(data[begin:end], n) for begin, end, n in rows[1:].tolist()]
        assert np.array_equal(np.concatenate(pieces), samples)
    assert max(n_pieces) > 1
    places.close()
    library.close()


def _expanded(stored: bytes, n: int) -> np.ndarray:
    from lib_pod5 import decompress_signal

    samples = np.empty(n, np.int16)
    decompress_signal(np.frombuffer(stored, np.uint8), samples)
    return samples


def test_samples_beyond_all_measure(folder, monkeypatch):
    monkeypatch.setattr(_pod5_file, "MAX_SAMPLES", 100)
    names = [pod5_name(read.name) for read in _made(20)]
    paths = [str(folder / "0.pod5")] * len(names)
    block, expected = ChunkOffsetReader().read(names, paths), Pod5Reader().read(names, paths)
    assert block.problems == expected.problems
    assert 0 < len(block.problems) < len(names)


def test_a_file_that_finds_other_reads_than_were_asked_for(folder, monkeypatch):
    """A damaged table can lead the library to them; those are nobody's."""
    name, other = pod5_name("read5"), pod5_name("read6")
    real = Pod5File.find
    monkeypatch.setattr(Pod5File, "find", lambda self, keys: real(self, keys_of_names([other])[0]))
    path = str(folder / "0.pod5")
    block = ChunkOffsetReader().read([name], [path])
    assert "not in this file" in block.problems[0]
    assert not ChunkOffsetReader().read([name, other], [path, path]).problems.keys() - {0}


def test_a_file_that_cannot_be_mapped(folder, monkeypatch):
    """As on some file systems."""

    def fails(*_):
        raise OSError(19, "No such device")

    name, path = pod5_name("large"), str(folder / "0.pod5")
    expected, rows = Pod5Reader().read([name], [path]), ChunkOffsetReader().read([name], [path]).samples
    monkeypatch.setattr(np, "memmap", fails)
    assert_same_block(Pod5Reader().read([name], [path]), expected)
    assert np.array_equal(ChunkOffsetReader().read([name], [path]).samples, rows)
