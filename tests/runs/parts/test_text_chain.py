"""Rows of parts in one file, and how they get out of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from f5py.errors import InputFileError
from f5py.io.files.output import open_output
from f5py.runs.parts import text_chain
from f5py.runs.parts.text_chain import Extent, TextChain, append_rows


@pytest.fixture
def extents(tmp_path: Path) -> list[Extent]:
    """Of three parts, whose rows are letters."""
    chain = TextChain(tmp_path)
    found = []
    for i, letter in enumerate((b"a", b"b", b"c")):
        text = chain.part(has_header=i == 0)
        text.write(b"header\n")
        text.write((letter * 9 + b"\n") * 100 * (i + 1))
        found.append(text.extent())
    chain.close()
    return found


EXPECTED = b"before\n" + b"bbbbbbbbb\n" * 200 + b"aaaaaaaaa\n" * 100 + b"between\n" + b"ccccccccc\n" * 300 + b"after\n"


def written(tmp_path: Path, extents: list[Extent], name: str) -> bytes:
    with open_output(str(tmp_path / name)) as out:
        out.write(b"before\n")
        append_rows(tmp_path, extents[1], out)
        append_rows(tmp_path, extents[0], out)
        out.write(b"between\n")
        append_rows(tmp_path, extents[2], out)
        out.write(b"after\n")
    return (tmp_path / name).read_bytes()


def test_rows_between_other_text(tmp_path: Path, extents: list[Extent], monkeypatch: pytest.MonkeyPatch):
    """Whether the system copies them in one piece, in several, or not."""
    assert written(tmp_path, extents, "whole.txt") == EXPECTED
    monkeypatch.setattr(text_chain, "_COPY_AT_ONCE", 700)
    assert written(tmp_path, extents, "pieces.txt") == EXPECTED
    copy, n_calls = os.copy_file_range, 0

    def fails_at_times(*arguments: Any) -> int:
        nonlocal n_calls
        n_calls += 1
        if n_calls % 3 == 0:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return copy(*arguments)

    monkeypatch.setattr(os, "copy_file_range", fails_at_times)
    assert written(tmp_path, extents, "some.txt") == EXPECTED
    assert n_calls > 3
    monkeypatch.delattr(os, "copy_file_range")
    assert written(tmp_path, extents, "none.txt") == EXPECTED


def test_a_file_that_has_become_shorter(tmp_path: Path, extents: list[Extent]):
    os.truncate(tmp_path / text_chain.CHAINS / extents[2].file, extents[2].end - 1)
    with pytest.raises(InputFileError, match="is shorter than it was"):
        written(tmp_path, extents, "out.txt")


def test_a_full_disk(tmp_path: Path, extents: list[Extent], monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(Exception, match=r"out\.txt: cannot write: No space left on device"):
        written(tmp_path, extents, "out.txt")
