"""Inputs that somebody changes while they are read: however they are read, it is noticed at their end."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pysam
import pytest

from f5py.errors import InputFileError
from f5py.io.arrow.text_input import open_bytes
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bytes.bgzf_blocks import END_BLOCK, bgzf_blocks
from f5py.io.sequences.read_records import sequence_batches

from ..made_data import ReadSet


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(path.read_bytes()[-500:])


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 2 // 3)


def rewritten(path: Path) -> None:
    """With as many bytes."""
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(0, 0))


def replaced(path: Path) -> None:
    path.with_suffix(".new").write_bytes(path.read_bytes()[:-100])
    path.with_suffix(".new").replace(path)


def text_pieces(path: Path) -> Iterator[object]:
    with open_bytes(str(path)) as file:
        while piece := file.read(5000):
            yield piece


def sequences(path: Path) -> Iterator[object]:
    return sequence_batches(str(path), 2000)


def chunks(path: Path) -> Iterator[object]:
    file = AlignmentFile(str(path), None, min_mapq=0, secondary=True)
    try:
        yield from file.chunks(at_most=4)
    finally:
        file.close()


def records(path: Path) -> Iterator[object]:
    file = AlignmentFile(str(path), None, min_mapq=0, secondary=True)
    try:
        yield from file.records()
    finally:
        file.close()


def by_bgzip(content: bytes) -> bytes:
    return b"".join([*bgzf_blocks(content), END_BLOCK])


@pytest.mark.parametrize("change", [grown, cut, rewritten])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, by_bgzip, bz2.compress, lzma.compress])
@pytest.mark.parametrize("read", [text_pieces, sequences])
def test_text(
    read: Callable[[Path], Iterator[object]],
    compress: Callable[[bytes], bytes],
    change: Callable[[Path], None],
    tmp_path: Path,
):
    path = tmp_path / "reads"
    text = "".join(f">read{i}\n{'ACGT' * (i % 400)}\n" for i in range(600)).encode()
    path.write_bytes(compress(text))
    given = read(path)
    next(given)
    change(path)
    with pytest.raises(InputFileError, match=r"changed while it was read|truncated"):
        list(given)


@pytest.mark.parametrize("change", [grown, cut, rewritten, replaced])
@pytest.mark.parametrize("read", [sequences, chunks, records])
@pytest.mark.parametrize("name", ["reads.bam", "reads.sam"])
def test_alignments(
    name: str, read: Callable[[Path], Iterator[object]], change: Callable[[Path], None], made: ReadSet, tmp_path: Path
):
    path = tmp_path / name
    pysam.view("-h", "-o", str(path), str(made.bam), catch_stdout=False)
    given = read(path)
    next(given)
    change(path)
    with pytest.raises(InputFileError, match="changed while it was read"):
        list(given)


def test_what_is_not_changed_is_read(made: ReadSet):
    assert len(list(records(made.bam))) == len(made.names)


def test_text_without_its_last_line_end_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    for content, is_told in ((b"a\tb\n", False), (b"a\tb", True), (b"", False), (b"@r\nA\n+\nI", False)):
        (tmp_path / "table").write_bytes(content)
        assert b"".join(map(bytes, text_pieces(tmp_path / "table"))) == content
        assert ("its last line has no end" in capfd.readouterr().err) == is_told


@pytest.mark.parametrize("compress", [bytes, by_bgzip, bz2.compress, lzma.compress])
def test_zeros_are_no_text(compress: Callable[[bytes], bytes], tmp_path: Path):
    (tmp_path / "table").write_bytes(compress(b"a\tb\n" * 1000 + b"\0"))
    with pytest.raises(InputFileError, match="table: has a byte of zero at place 4000 of its text"):
        list(text_pieces(tmp_path / "table"))
