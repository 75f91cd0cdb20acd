"""The table of all parts, put together while the last of them are still being worked on."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from f5py.io.files import atomic_write
from f5py.options.signal_commands import CallOptions
from f5py.runs.parts import done_part
from f5py.runs.parts.done_part import DonePart, EarlyText, read_part
from f5py.runs.parts.plan import Plan
from f5py.runs.parts.text_chain import Extent

from ...made_data import ReadSet, run_command

N_PARTS = 4


def planned(made: ReadSet, *more: str) -> Plan:
    """Make a plan whose last part is done, and no other."""
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
