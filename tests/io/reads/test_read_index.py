from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pysam
import pytest

from f5py.core.names import Names
from f5py.errors import InputFileError
from f5py.io.reads.read_index import ReadIndex

from .made_index import write_sequence_index


@pytest.fixture(scope="module")
def sequences() -> dict[str, str]:
    """Make reads around and far above the size of a block, one without bases."""
    random = np.random.default_rng(5)
    lengths = [1, 0, 16_379, 16_380, 16_381, 200_000, 7, *random.integers(1, 30_000, 60).tolist()]
    return {f"r{i}": "".join(random.choice(list("ACGTacgU"), length)) for i, length in enumerate(lengths)}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, sequences: dict[str, str]) -> Path:
    path = tmp_path_factory.mktemp("reads") / "reads.fa"
    path.write_text("".join(f">{name} text\n{bases}\n" for name, bases in sequences.items()))
    write_sequence_index(str(path))
    return path.parent


@pytest.fixture
def reads(tmp_path: Path, written: Path) -> Path:
    """Copy the reads and their index, which tests damage."""
    for path in written.iterdir():
        shutil.copy2(path, tmp_path)
    return tmp_path / "reads.fa"


def check(index: ReadIndex, sequences: dict[str, str], names: Sequence[str]) -> None:
    bases, offsets = index.sequences(names)
    assert (bases.dtype, offsets.dtype) == (np.uint8, np.int64)
    assert len(offsets) == len(names) + 1
    assert offsets[0] == 0
    assert offsets[-1] == len(bases)
    for i, name in enumerate(names):
        assert bases[offsets[i] : offsets[i + 1]].tobytes().decode() == sequences.get(name, "")


def test_sequences_by_name_in_any_order(reads: Path, sequences: dict[str, str]) -> None:
    with ReadIndex.open(str(reads)) as index:
        check(index, sequences, list(sequences))
        check(index, sequences, [*reversed(sequences), "absent", "r5", "r5", ""])
        check(index, sequences, ["absent"])
        check(index, sequences, [])


def test_lengths_and_membership(reads: Path, sequences: dict[str, str]) -> None:
    with ReadIndex.open(str(reads)) as index:
        rows = index.index.rows_of(Names.of(["r5", "absent", "r1", "r0"]))
        assert index.lengths_of(rows).tolist() == [200_000, 0, 0, 1]  # r1 has no bases
        assert "r5" in index
        assert "absent" not in index
        assert len(index) == len(sequences) - 1


def test_an_index_of_folded_lines_can_be_read(tmp_path: Path, sequences: dict[str, str]) -> None:
    path = tmp_path / "reads.fa"
    with pysam.BGZFile(f"{path}.index", "w") as file:
        for name, bases in sequences.items():
            lines = [bases[at : at + 60] for at in range(0, len(bases), 60)]
            file.write("\r\n".join([f">{name}", *lines, ""]).encode())
    pysam.faidx(f"{path}.index")
    with ReadIndex.open(str(path)) as index:
        check(index, sequences, [*reversed(sequences), "absent"])


def test_an_index_of_empty_reads_only(tmp_path: Path) -> None:
    path = tmp_path / "reads.fa"
    path.write_text(">a\n\n>b\n")
    write_sequence_index(str(path))
    with ReadIndex.open(str(path)) as index:
        check(index, {}, ["a", "b"])


@pytest.mark.parametrize("end", ["", ".fai", ".gzi"])
def test_a_missing_file_is_an_error(reads: Path, end: str) -> None:
    Path(f"{reads}.index{end}").unlink()
    with pytest.raises(InputFileError, match=rf"reads\.fa\.index{end}: not found.*run f5py index"):
        ReadIndex.open(str(reads))


def test_reads_that_are_not_there_are_told_apart_from_those_without_an_index(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"reads\.fa: no such file, nor an index of it"):
        ReadIndex.open(f"{tmp_path}/reads.fa")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("r0\t1\t4\t1\n", 1),
        ("r0\t1\t4\t1\t2\nr1\tx\t4\t1\t2\n", 2),
        ("r0\t1\t4\t1\t2\nr1\t1\t-4\t1\t2\n", 2),
        ("r0\t1\t4\t1\t2\nr1\t1", 2),
        ("r0\t1\t4\t1\t2\textra\n", 1),
        ("no index at all\n", 1),
    ],
)
def test_a_malformed_fai_is_an_error(reads: Path, text: str, line: int) -> None:
    Path(f"{reads}.index.fai").write_text(text)
    with pytest.raises(InputFileError, match=rf"fai: line {line} is not a line of a FASTA index"):
        ReadIndex.open(str(reads))


def test_files_of_different_indices_are_an_error(reads: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.fa"
    other.write_text(">r0\n" + "ACGT" * 500_000 + "\n")
    write_sequence_index(str(other))
    whole = {end: Path(f"{reads}.index{end}").read_bytes() for end in ("", ".fai", ".gzi")}
    for end in ("", ".fai", ".gzi"):
        Path(f"{reads}.index{end}").write_bytes(Path(f"{other}.index{end}").read_bytes())
        with pytest.raises(InputFileError, match="run f5py index again"):
            ReadIndex.open(str(reads))
        Path(f"{reads}.index{end}").write_bytes(whole[end])


def test_the_index_of_other_reads_is_an_error(reads: Path) -> None:
    reads.write_text(">stranger\nACGT\n")
    with pytest.raises(InputFileError, match=r"is not the index of .* it lacks the first read, stranger"):
        ReadIndex.open(str(reads))


def test_reads_newer_than_the_index_are_pointed_out(reads: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ReadIndex.open(str(reads)).close()
    assert capsys.readouterr().err == ""
    os.utime(reads, (time.time() + 60, time.time() + 60))
    ReadIndex.open(str(reads)).close()
    assert "is newer than its index" in capsys.readouterr().err


def test_the_reads_themselves_are_not_needed(reads: Path, sequences: dict[str, str]) -> None:
    reads.unlink()
    with ReadIndex.open(str(reads)) as index:
        check(index, sequences, list(sequences))


@pytest.mark.parametrize("size", [0, 10, 20_000, -1, -28])
def test_a_truncated_index_is_an_error(reads: Path, size: int) -> None:
    path = Path(f"{reads}.index")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputFileError, match=r"reads\.fa\.index"):
        ReadIndex.open(str(reads))


@pytest.mark.parametrize("content", [b"", b"\1", bytes(8) + b"x", b"\1" + bytes(7), b"\2" + bytes(39)])
def test_a_damaged_gzi_is_an_error(reads: Path, content: bytes) -> None:
    Path(f"{reads}.index.gzi").write_bytes(content)
    with pytest.raises(InputFileError, match=r"reads\.fa\.index\.gzi"):
        ReadIndex.open(str(reads))


def test_damage_inside_is_noticed_when_it_is_read(reads: Path) -> None:
    path = Path(f"{reads}.index")
    content = bytearray(path.read_bytes())
    content[2000] ^= 0x55
    path.write_bytes(content)
    with ReadIndex.open(str(reads)) as index:
        with pytest.raises(InputFileError, match="is damaged at byte 0"):
            index.sequences(["r0"])
        index.sequences(["r60"])
