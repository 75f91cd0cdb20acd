"""Files that appear when they are complete."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from f5py.errors import OutputFileError
from f5py.io.files.complete_file import complete_text_output


@pytest.mark.parametrize("name", ["out.tsv", "out.tsv.gz", "out.bgz"])
def test_text_is_compressed_if_the_name_says_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    seen: list[bytes] = []
    with complete_text_output(str(path), 3, lambda unfinished: seen.append(Path(unfinished).read_bytes())) as out:
        out.write(b"text\n" * 100_000)
        assert not path.exists()
    content = path.read_bytes()
    packed = path.suffix != ".tsv"
    assert (gzip.decompress(content) if packed else content) == b"text\n" * 100_000
    assert seen == ([content] if packed else [])
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["out.tsv", "out.tsv.gz"])
def test_an_error_leaves_the_earlier_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"earlier")

    def fail() -> None:
        with complete_text_output(str(path), 2) as out:
            out.write(b"text\n" * 1_000_000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [(name, b"earlier")]


def test_a_complete_file_that_is_refused_gets_no_name(tmp_path: Path) -> None:
    def refuse(_: str) -> None:
        raise OutputFileError("refused")

    path = str(tmp_path / "x.gz")
    with pytest.raises(OutputFileError, match="refused"), complete_text_output(path, 2, refuse) as out:
        out.write(b"text")
    assert list(tmp_path.iterdir()) == []
