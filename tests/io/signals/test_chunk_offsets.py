"""Where the pieces of signals are in POD5 files, and the UUIDs that reads are looked up by."""

from __future__ import annotations

import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.io.signals.pod5.reader import keys_of_names, names_of_keys

pytest.importorskip("pod5")

from f5py.io.signals.pod5 import _pod5_file
from f5py.io.signals.pod5._pod5_file import ChunkOffsets, Pod5File, SignalTable
from f5py.io.signals.pod5.chunk_offsets import N_NUMBERS, ChunkOffsetReader
from f5py.io.signals.pod5.reader import Pod5Index, Pod5Reader

from .made_pod5 import large_read, pod5_name, write_pod5
from .made_signals import MadeRead


class TestNames:
    @given(st.lists(st.uuids()))
    def test_there_and_back(self, made):
        names = [str(one) for one in made]
        keys, is_uuid = keys_of_names(names)
        assert is_uuid.all()
        assert [key.tobytes() for key in keys] == [one.bytes for one in made]
        assert names_of_keys(keys.view("S16")) == names

    @given(
        st.lists(
            st.one_of(
                st.uuids().map(lambda one: str(one).upper()),
                st.text("0123456789abcdefABCDEFg-é ", min_size=34, max_size=38),
                st.text(max_size=40),
                st.tuples(st.uuids(), st.integers(0, 35), st.characters()).map(
                    lambda made: str(made[0])[: made[1]] + made[2] + str(made[0])[made[1] + 1 :]
                ),
            )
        )
    )
    def test_other_names(self, names):
        keys, is_uuid = keys_of_names(names)
        for name, key, good in zip(names, keys, is_uuid.tolist(), strict=True):
            try:
                expected = uuid.UUID(name).bytes if len(name) == 36 and name[8:24:5] == "----" else None
            except ValueError:
                expected = None
            if name.count("-") != 4 or not name.isascii() or " " in name or "_" in name:
                expected = None
            assert good == (expected is not None)
            assert key.tobytes() == (expected or bytes(16))


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
    return block.samples[block.offsets[i] : block.offsets[i + 1]].copy().view(np.int64).reshape(-1, N_NUMBERS)


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
    assert np.array_equal(block.calibration(), expected.calibration(), equal_nan=True)
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


def test_no_reads():
    block = ChunkOffsetReader().read([], [])
    assert len(block.offsets) == 1
    assert not block.problems


def test_the_files_of_a_read_are_those_that_are_named(folder):
    """The same UUID is looked for in two files; only one has it."""
    name = pod5_name("read3")
    block = ChunkOffsetReader().read([name, name], [str(folder / "1.pod5"), str(folder / "0.pod5")])
    assert list(block.problems) == [0]
    assert len(_rows(block, 1)) == 2


def test_samples_beyond_all_measure(folder, monkeypatch):
    for module in ("reader", "chunk_offsets"):
        monkeypatch.setattr(f"f5py.io.signals.pod5.{module}.MAX_SAMPLES", 100)
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
    def fails(self):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(Pod5File, "_mapped", property(fails))
    block = ChunkOffsetReader().read([pod5_name("read5")], [str(folder / "0.pod5")])
    assert not block.problems
    assert _rows(block, 0)[1:].tolist() == [[-1] * 3]


class TestPiecePlaces:
    @pytest.fixture
    def places(self, folder):
        file = Pod5File(str(folder / "0.pod5"))
        yield ChunkOffsets(*file._mapped, file._file.signal_batch_row_count)
        file.close()

    def test_each_table_is_looked_at_once(self, places, monkeypatch):
        looked_at = []
        real = SignalTable.of.__func__
        monkeypatch.setattr(SignalTable, "of", classmethod(lambda cls, *a: looked_at.append(1) or real(cls, *a)))
        rows = np.array([3, 150, 4, 230, 3])
        found = places.of(rows)
        assert len(looked_at) == 3
        assert np.array_equal(places.of(rows[::-1]), found[::-1])
        assert len(looked_at) == 3
        assert np.array_equal(found[0], found[4])
        assert (found[:, 1] > found[:, 0]).all()

    def test_what_is_not_known_any_more_is_looked_at_again(self, places, monkeypatch):
        rows = np.arange(0, 231, 7)
        expected = places.of(rows)
        monkeypatch.setattr(_pod5_file, "_MOST_TABLES", 1)
        for part in (rows[:20], rows[10:], rows):
            assert np.array_equal(places.of(part), expected[np.isin(rows, part)])

    def test_rows_that_are_in_no_table(self, places):
        assert places.of(np.array([-1, 10**9, 299])).tolist() == [[-1] * 3] * 3

    def test_a_damaged_table(self, places, monkeypatch):
        def fails(*_):
            raise ValueError("damaged")

        monkeypatch.setattr(SignalTable, "of", fails)
        assert places.of(np.array([0, 5])).tolist() == [[-1] * 3] * 2

    def test_pieces_outside_of_their_table(self, places, monkeypatch):
        real = SignalTable.of.__func__

        def damaged(cls, *given):
            table = real(cls, *given)
            offsets = table.offsets.copy()
            offsets[4] = -1
            offsets[9] = len(table.values) + 1
            table.offsets = offsets
            return table

        monkeypatch.setattr(SignalTable, "of", classmethod(damaged))
        found = places.of(np.arange(12))
        assert np.flatnonzero((found == -1).all(axis=1)).tolist() == [3, 4, 8, 9]


def test_the_index_finds_what_a_mapping_would(folder):
    index = Pod5Index([str(folder / "0.pod5"), str(folder / "1.pod5")])
    names = [pod5_name(f"read{i}") for i in (3, 520, 777)] + ["read3", ""]
    assert index.paths_of(names) == [str(folder / "0.pod5"), str(folder / "1.pod5"), "", "", ""]
    assert index.paths_of([]) == []
