"""Signal files of reads, as a `.readdb` names them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from f5py.errors import InputFileError
from f5py.io.reads import read_files
from f5py.io.reads.read_files import ReadFiles
from f5py.io.sequences.read_index_output import write_rows

from ...examples import examples

fields = st.binary(max_size=12).map(lambda raw: raw.translate(None, b"\0\t\n").decode("utf-8", "surrogateescape"))
names = fields.filter(bool)


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def of_lines(folder: Path, lines: list[tuple[str, str]], last_end: str = "\n") -> ReadFiles:
    path = folder / "r.fa.index.readdb"
    text = "\n".join(f"{name}\t{file}" for name, file in lines) + (last_end if lines else "")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return ReadFiles.read(str(path))


@settings(max_examples=examples(200), deadline=None)
@example([("*", "x"), ("*", "")], 1, 0, False)
@given(
    st.lists(st.tuples(names, st.one_of(fields, st.sampled_from(["", "a.fast5", "b\tc.pod5"])))),
    st.integers(1, 40),
    st.sampled_from([0, 1000]),
    st.booleans(),
)
def test_they_are_a_mapping_of_the_lines(tmp_path_factory, lines, chunk_bytes, large_bytes, is_sorted):
    lines = sorted(dict(lines).items(), key=lambda line: as_bytes(line[0])) if is_sorted else lines
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_files, "_CHUNK_BYTES", chunk_bytes)
        patch.setattr(read_files, "_LARGE_BYTES", large_bytes)
        found = of_lines(tmp_path_factory.getbasetemp(), lines, "\n" if chunk_bytes % 2 else "")
        expected = dict(lines)  # of a name that occurs again the last line counts
        in_order = list(expected)
        assert list(found) == in_order
        assert list(found.values()) == [expected[name] for name in in_order]
        assert list(found.items()) == [(name, expected[name]) for name in in_order]
        assert len(found) == len(expected)
        asked = [*expected, "\tnone", "", *expected, *fields_around(in_order)]
        assert found.paths_of(asked) == [expected.get(name, "") for name in asked]
        assert [found.get(name) for name in asked] == [expected.get(name) for name in asked]
        of_all = [file for name, file in lines if name == "*" and file]
        assert found.of_all == of_all  # all lines of this name count
        relative = {file for file in [*expected.values(), *of_all] if file and not file.startswith("/")}
        assert len(found.relative) == len(set(found.relative)) == len(relative)
        assert set(found.relative) == relative


def fields_around(names: list[str]) -> list[str]:
    return [name[:-1] for name in names] + [f"{name}a" for name in names]


@pytest.mark.usefixtures("size_of_large_files")
def test_relative_paths_are_taken_from_a_folder(tmp_path: Path) -> None:
    found = of_lines(tmp_path, [("a", "x"), ("b", ""), ("c", "/y")])
    assert found.relative == ["x"]
    assert found.below("/d") == {"a": "/d/x", "b": "", "c": "/y"}


@pytest.mark.usefixtures("size_of_large_files")
def test_only_some_of_many_relative_paths_are_remembered(tmp_path: Path) -> None:
    found = of_lines(tmp_path, [(f"{i:03}", f"{i // 2}.fast5") for i in range(500)])
    assert found.relative == [f"{i}.fast5" for i in range(100)]


@pytest.mark.usefixtures("size_of_large_files")
def test_there_and_back(tmp_path: Path) -> None:
    path = str(tmp_path / "r.fa.index.readdb")
    paths = {"b": "x/y z.fast5", "a": "", "ä": "\udcff.fast5", "c": "a\tb.fast5"}
    write_rows(path, paths)
    assert ReadFiles.read(path) == paths
    assert Path(path).read_bytes().startswith(b"a\t\nb\tx/y z.fast5\nc\ta\tb.fast5\n")


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="readdb: not found; run f5py index with -d"):
        ReadFiles.read(str(tmp_path / "r.fa.index.readdb"))


@pytest.fixture(params=[0, 1000])
def size_of_large_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_files, "_LARGE_BYTES", request.param)


@pytest.mark.usefixtures("size_of_large_files")
@pytest.mark.parametrize("text", ["a\tb\nc\n", "a\tb\n\nc\td\n", "a\tb\n\tc\n", "a\tb\nc"])
def test_a_malformed_line_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.fa.index.readdb"
    path.write_text(text)
    with pytest.raises(InputFileError, match="readdb: line 2 is not a read name, a tab and a path; run f5py index"):
        ReadFiles.read(str(path))
