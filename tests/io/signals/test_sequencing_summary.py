from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from f5py.errors import InputFileError
from f5py.io.signals.sequencing_summary import read_summary_list, reads_by_file


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
