"""The table of all parts, put together while the last of them are still being worked on."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from f5py.errors import InputFileError
from f5py.io.files import atomic_write
from f5py.io.files.output import open_output
from f5py.options.signal_commands import CallOptions
from f5py.runs.parts import done_part, text_chain
from f5py.runs.parts.done_part import DonePart, EarlyText, read_part
from f5py.runs.parts.plan import Plan
from f5py.runs.parts.text_chain import ChainedText, Extent, append_rows, new_chain

from ...made_data import ReadSet, run_command

N_PARTS = 4


def planned(made: ReadSet, *more: str) -> Plan:
    given = ("call-methylation", *made.options(), "-o", "calls.tsv", "--plan", "p", "--partitions", str(N_PARTS))
    assert run_command(*given, *more) == 0
    assert run_command("run-part", "p", str(N_PARTS - 1)) == 0
    return Plan.load("p")


def options_of(plan: Plan, **other: Any) -> CallOptions:
    return replace(plan.run_options(), **other)


def extents_of(plan: Plan) -> list[Extent]:
    return [DonePart(plan, number, read_part(plan, number)).record.table for number in range(len(plan))]


def expected(made: ReadSet) -> bytes:
    assert run_command("call-methylation", *made.options(), "-o", "one.tsv") == 0
    return Path("one.tsv").read_bytes()


def test_parts_are_taken_in_order_whenever_they_are_done(made: ReadSet, here: Path):
    plan = planned(made)
    before = set(here.iterdir())
    with EarlyText(plan, options_of(plan)) as early:
        early.append_finished()
        for number in (1, 0, 2):
            assert run_command("run-part", "p", str(number)) == 0
            early.append_finished()
            early.append_finished()
        extents = extents_of(plan)
        assert not early.give_name(extents[:-1], "calls.tsv")
        assert set(here.iterdir()) == before
        assert early.give_name(extents, "calls.tsv")
    assert set(here.iterdir()) == {*before, here / "calls.tsv"}
    assert Path("calls.tsv").read_bytes() == expected(made)
    assert Path("calls.tsv").stat().st_nlink == 1


def test_damage_is_left_to_the_end(made: ReadSet, here: Path):
    """A part whose rows are not what was written, or a disk that is full."""
    plan = planned(made)
    assert run_command("run-part", "p") == 0
    extents = extents_of(plan)
    table = here / "p" / "tables" / extents[1].file
    content = bytearray(table.read_bytes())
    content[extents[1].begin] ^= 1
    table.write_bytes(content)
    with EarlyText(plan, options_of(plan)) as early:
        early.append_finished()
        early.append_finished()
        assert not early.give_name(extents, "calls.tsv")
    assert not Path("calls.tsv").exists()


def test_file_systems_without_such_files(made: ReadSet, here: Path, monkeypatch: pytest.MonkeyPatch):
    def refused(*arguments: Any, **names: Any) -> int:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    plan = planned(made)
    assert run_command("run-part", "p") == 0
    monkeypatch.setattr(atomic_write.os, "open", refused)
    assert atomic_write.nameless_file("calls.tsv") is None
    monkeypatch.undo()
    monkeypatch.setattr(done_part, "nameless_file", lambda output: None)
    with EarlyText(plan, options_of(plan)) as early:
        early.append_finished()
        assert not early.give_name(extents_of(plan), "calls.tsv")
    monkeypatch.undo()
    monkeypatch.setattr(os, "link", refused)
    with EarlyText(plan, options_of(plan)) as early:
        early.append_finished()
        assert not early.give_name(extents_of(plan), "calls.tsv")
    assert not Path("calls.tsv").exists()


@pytest.fixture
def extents(tmp_path: Path) -> list[Extent]:
    """Of three parts, whose rows are letters."""
    chain = new_chain(tmp_path)
    found = []
    for i, letter in enumerate((b"a", b"b", b"c")):
        text = ChainedText(chain, has_header=i == 0)
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
