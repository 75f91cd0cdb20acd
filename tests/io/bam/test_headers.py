"""Headers from their text, whole and damaged."""

from __future__ import annotations

import pytest

from f5py.errors import InputFileError
from f5py.io.bam.headers import parse_header
from f5py.text.encoding import undecoded


def test_lines_come_back():
    text = "@HD\tVN:1.6\n@SQ\tSN:one\tLN:3000\n@RG\tID:a\tSM:b\n@CO\tfree text\n"
    assert str(parse_header(text)) == text


def test_what_is_not_utf8_stays_as_it_is():
    header = parse_header("@HD\tVN:1.6\n@CO\tfree \udcff text\n")
    assert undecoded(header.__str__) == b"@HD\tVN:1.6\n@CO\tfree \xff text\n"


@pytest.mark.parametrize("line", ["@SQ\tSN:one", "@SQ\tXN:one\tLN:3", "@SQ\tSN:one\tLN:many"])
def test_damaged_lines_are_told_in_one_line(line: str):
    with pytest.raises(
        InputFileError, match=r"^the header of the alignments is damaged \(.*make the alignments again$"
    ):
        parse_header(f"@HD\tVN:1.6\n{line}\n")
