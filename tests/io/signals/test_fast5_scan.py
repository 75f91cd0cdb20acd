from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from f5py.errors import F5pyError, InputFileError, OutputFileError
from f5py.io.signals import helper_process
from f5py.io.signals.fast5 import fast5_scan
from f5py.io.signals.fast5.fast5_scan import read_names, scan_fast5
from f5py.io.signals.scan_journal import ScanJournal
from f5py.io.signals.search import list_kind
from f5py.io.signals.sequencing_summary import read_summary_list, reads_by_file

from ...index_files import multi_fast5, single_fast5
from . import odd_readers

#: What writers have stored as `file_version`; a number in a multi-read file, too.
VERSIONS = [None, "0.6", "2.0", "2", "two", "", np.bytes_("2.2"), np.float64(0.6), np.float64(1.0), 2, np.zeros(0)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_layout_says_how_many_reads_there_are(tmp_path: Path, version: object) -> None:
    assert read_names(str(single_fast5(tmp_path / "a.fast5", "r1", version))) == ["r1"]
    path = multi_fast5(tmp_path / "b.fast5", ["b", "a"], version)
    with h5py.File(path, "a") as file:
        file.create_group("other")
    assert sorted(read_names(str(path))) == ["a", "b"]


def test_read_id_may_have_any_kind_of_text(tmp_path: Path) -> None:
    assert read_names(str(single_fast5(tmp_path / "a.fast5", "", read_id="r1"))) == ["r1"]


def test_unusable_files_are_reported_in_place(tmp_path: Path) -> None:
    good = single_fast5(tmp_path / "good.fast5", "r1")
    (tmp_path / "text.fast5").write_text("not HDF5")
    (tmp_path / "empty.fast5").touch()
    (tmp_path / "cut.fast5").write_bytes(good.read_bytes()[:700])
    multi_fast5(tmp_path / "none.fast5", [])
    single_fast5(tmp_path / "group.fast5", "r1")
    with h5py.File(tmp_path / "group.fast5", "a") as file:
        del file["Raw"]
    names = ["text", "good", "empty", "cut", "none", "group"]
    found = scan_fast5([str(tmp_path / f"{name}.fast5") for name in names], 1)
    assert found[1] == ["r1"]
    for name, one in zip(names, found, strict=True):
        if name != "good":
            assert isinstance(one, str)
            assert one.startswith(str(tmp_path / f"{name}.fast5: skipped"))
            assert "\n" not in one


def test_what_is_known_is_not_scanned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(single_fast5(tmp_path / f"{i}.fast5", f"r{i}")) for i in range(5)]
    paths.insert(2, str(multi_fast5(tmp_path / "m.fast5", ["x", "\u00e4\u2028\\"])))
    (tmp_path / "bad.fast5").write_text("?")
    paths.append(str(tmp_path / "bad.fast5"))
    expected = scan_fast5(paths, 1)
    path = str(tmp_path / "journal")
    done: list[int] = []
    with ScanJournal(path) as journal:
        assert scan_fast5(paths[:3], 2, journal=journal) == expected[:3]
    with ScanJournal(path) as journal:
        assert scan_fast5(paths, 1, done.append, journal) == expected
    assert sum(done) == len(paths)
    monkeypatch.setattr(fast5_scan, "NameReader", odd_readers.KilledReader)
    with ScanJournal(path) as journal:
        assert scan_fast5(paths, 1, journal=journal) == expected
        assert scan_fast5([*paths[4:], *paths[:4]], 1, journal=journal) == [*expected[4:], *expected[:4]]
        assert journal.found("gone.fast5") is None
    os.utime(paths[3], ns=(0, 0))  # has changed
    with ScanJournal(path) as journal, pytest.raises(F5pyError, match="was ended by SIGKILL"):
        scan_fast5(paths, 1, journal=journal)
    with ScanJournal(path) as journal:
        journal.remove()
    assert not Path(path).exists()


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000, b"[]", b"5", b"{}", b'["NAME", SIZE, TIME, ["other"]]', b'["NAME", SIZE, TIME, 5]',
        b'{"path": "NAME", "size": SIZE, "time": TIME, "found": {"r0": 1}}',
        b'{"path": "NAME", "size": SIZE, "time": TIME, "found": [5]}',
        b'{"path": ["NAME"], "size": SIZE, "time": TIME, "found": ["other"]}',
        b'{"path": "NAME", "size": 1e400, "time": TIME, "found": ["other"]}',
        b'{"path": "NAME", "size": SIZE, "time": TIME, "found": ["other"], "more": 1}', b"\xff\0\x1b", b"",
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_checksum", [False, True])
def test_a_journal_with_lines_that_are_not_ours(tmp_path: Path, line: bytes, has_checksum: bool) -> None:
    """Of other types, of an earlier version or of anybody: the file is scanned again."""
    path = single_fast5(tmp_path / "0.fast5", "r0")
    state = path.stat()
    for name, value in (("NAME", path), ("SIZE", state.st_size), ("TIME", state.st_mtime_ns)):
        line = line.replace(name.encode(), str(value).encode())
    if has_checksum:
        line = b"%08x " % zlib.crc32(line) + line
    (tmp_path / "journal").write_bytes(line + b"\n")
    with ScanJournal(str(tmp_path / "journal")) as journal:
        assert scan_fast5([str(path)], 1, journal=journal) == [["r0"]]


def test_no_flipped_bit_of_a_journal_changes_what_is_found(tmp_path: Path) -> None:
    paths = [str(single_fast5(tmp_path / f"{i}.fast5", f"r{i}")) for i in range(2)]
    path = tmp_path / "journal"
    with ScanJournal(str(path)) as journal:
        scan_fast5(paths, 1, journal=journal)
    text = path.read_bytes()
    for at in range(len(text)):
        path.write_bytes(text[:at] + bytes([text[at] ^ 1 << at % 8]) + text[at + 1 :])
        with ScanJournal(str(path)) as journal:
            known = [journal.found(name) for name in paths]
            assert all(found in (None, [f"r{i}"]) for i, found in enumerate(known))
            assert any(found is None for found in known)


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_journal_that_was_cut(tmp_path: Path, cut: int) -> None:
    paths = [str(single_fast5(tmp_path / f"{i}.fast5", f"r{i}")) for i in range(3)]
    path = tmp_path / "journal"
    with ScanJournal(str(path)) as journal:
        scan_fast5(paths, 1, journal=journal)
    text = path.read_bytes()
    path.write_bytes(text[:-cut])
    for _ in range(2):
        with ScanJournal(str(path)) as journal:
            known = [journal.found(name) for name in paths]
            assert known == [["r0"], ["r1"], ["r2"] if cut == 1 else None]
    with ScanJournal(str(path)) as journal:
        assert scan_fast5(paths, 1, journal=journal) == [["r0"], ["r1"], ["r2"]]
    with ScanJournal(str(path)) as journal:
        assert [journal.found(name) for name in paths] == [["r0"], ["r1"], ["r2"]]


def test_a_journal_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputFileError, match="journal: cannot be written"):
        ScanJournal(str(tmp_path / "none/journal"))


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a file's name say what happens to the process that scans it."""
    monkeypatch.setattr(fast5_scan, "NameReader", odd_readers.OddNames)


@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize("processes", [1, 3])
def test_a_file_that_ends_or_stops_the_library_is_skipped(monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    monkeypatch.setattr(helper_process, "CPU_SECONDS", 0.5)  # more than starting takes
    monkeypatch.setattr(helper_process, "LOOK_EVERY", 0.1)
    done: list[int] = []
    paths = [f"{name}.fast5" for name in ("a", "abort-1", "b", "loop-1", "abort-2", "c")]
    found = scan_fast5(paths, processes, done.append)
    assert sum(done) == 6
    assert [one for one in found if isinstance(one, list)] == [["a"], ["b"], ["c"]]
    assert found[1] == "abort-1.fast5: skipped, it is damaged and ends the library that reads it (SIGABRT)"
    assert found[3] == "loop-1.fast5: skipped, it is damaged and keeps the library that reads it in an endless loop"
    assert str(found[4]).startswith("abort-2.fast5: skipped")


def test_files_are_listed_in_order_with_paths_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.fast5", "a/2.fast5", "a/1.fast5", "c.txt", "x.fast5dir/y/plain", "B.fast5.tmp"):
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / name).touch()
    monkeypatch.chdir(tmp_path)
    below = ["B.fast5.tmp", "a/1.fast5", "a/2.fast5", "b.fast5", "x.fast5dir/y/plain"]
    assert list_kind("d", "fast5") == [f"d/{name}" for name in below]
    assert list_kind("./d/", "fast5") == [f"./d//{name}" for name in below]


def summary(path: Path, rows: list[tuple[str, str]], end: str = "\n") -> str:
    lines = ["filename\tread_id\tchannel", *(f"{name}\t{read}\t5" for name, read in rows)]
    path.write_bytes((end.join(lines) + end).encode())
    return str(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_reads_are_gathered_by_file(tmp_path: Path, end: str) -> None:
    one = summary(tmp_path / "1", [("a.fast5", "r1"), ("b.fast5", "r2")], end)
    two = summary(tmp_path / "2", [("a.fast5", "r3")], end)
    assert reads_by_file([one, two]) == {"a.fast5": ["r1", "r3"], "b.fast5": ["r2"]}
    assert reads_by_file([]) == {}


def test_a_compressed_summary(tmp_path: Path) -> None:
    plain = summary(tmp_path / "s.txt", [("a.fast5", "r1"), ("b.fast5", "r2")])
    packed = tmp_path / "s.txt.gz"
    packed.write_bytes(gzip.compress(Path(plain).read_bytes()))
    assert reads_by_file([str(packed)]) == reads_by_file([plain]) == {"a.fast5": ["r1"], "b.fast5": ["r2"]}


def test_the_last_file_column_counts(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("filename_fast5\tread_id\tfilename\nx\tr\ty\n\n")
    assert reads_by_file([str(tmp_path / "s")]) == {"y": ["r"]}
    (tmp_path / "s").write_text("filename\tfilename_fast5\tread_id\nx\ty\tr")
    assert reads_by_file([str(tmp_path / "s")]) == {"y": ["r"]}


@pytest.mark.parametrize("header", ["", "filename\tchannel", "read_id\tfile", "filename read_id"])
def test_a_missing_column_is_an_error(tmp_path: Path, header: str) -> None:
    (tmp_path / "s").write_text(header + "\na\tb\n")
    with pytest.raises(InputFileError, match=r"s: the header lacks"):
        reads_by_file([str(tmp_path / "s")])


def test_a_short_line_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("filename\tread_id\na\tb\nc\n")
    with pytest.raises(InputFileError, match="line 3 has too few columns"):
        reads_by_file([str(tmp_path / "s")])


def test_files_with_more_reads_than_the_usual_number_are_not_believed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(f"{i}.fast5", f"r{i}.{j}") for i in range(21) for j in range(2)]
    rows += [("more.fast5", f"m{j}") for j in range(3)] + [("less.fast5", "l")]
    found = reads_by_file([summary(tmp_path / "s", rows)])
    assert set(found) == {f"{i}.fast5" for i in range(21)} | {"less.fast5"}
    assert "more than 2 reads for 1 files, such as more.fast5" in capsys.readouterr().err


def test_with_few_files_the_limit_is_4000(tmp_path: Path) -> None:
    rows = [(f"{i}.fast5", f"r{i}.{j}") for i in range(20) for j in range(2)]
    rows += [("full.fast5", f"f{j}") for j in range(4000)] + [("over.fast5", f"o{j}") for j in range(4001)]
    found = reads_by_file([summary(tmp_path / "s", rows)])
    assert len(found["full.fast5"]) == 4000
    assert "over.fast5" not in found


def test_of_equally_common_numbers_the_smaller_is_the_limit(tmp_path: Path) -> None:
    rows = [(f"one{i}", f"r{i}") for i in range(21)]
    rows += [(f"two{i}", f"s{i}.{j}") for i in range(21) for j in range(2)]
    assert set(reads_by_file([summary(tmp_path / "s", rows)])) == {f"one{i}" for i in range(21)}


def test_list_of_summaries(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("a.txt\n\n dir/b.txt \r\n")
    assert read_summary_list(str(tmp_path / "list")) == ["a.txt", "dir/b.txt"]
