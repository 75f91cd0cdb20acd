"""The table of text of all parts, where it needs no joining."""

from __future__ import annotations

from f5py.runs.parts.done_part import DonePart
from f5py.runs.parts.text_chain import give_name


def has_name(parts: list[DonePart], output: str) -> bool:
    """Let the table of all parts have its name, if it is in one piece."""
    folder = parts[0].plan.folder
    if any(part.plan.folder != folder for part in parts):
        return False
    for part in parts:
        part.check_table()
    return give_name(folder, [part.record.table for part in parts], output)
