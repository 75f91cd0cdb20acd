"""Outputs of parts one after the other: the bytes of one run over everything."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, Protocol

from f5py.io.files.output import open_output
from f5py.outputs.part_rows import GROUPS, LAST
from f5py.runs.parts.done_part import ARROW, DonePart
from f5py.runs.parts.text_chain import give_name, header_of


class ArrowTable(Protocol):
    """A Parquet table that takes the rows of parts."""

    def append(self, first: BinaryIO, groups: BinaryIO | None = None, last: BinaryIO | None = None) -> None:
        """Write rows: see `f5py.outputs.part_rows.append_rows`."""
        ...


def join_texts(parts: Iterable[DonePart], name: str, output: str, n_threads: int) -> None:
    """Write the tables that parts have under a name one after the other, with the first line of the first.

    The file is compressed if its name asks for that.

    Raises
    ------
    InputFileError
        One cannot be read.
    OutputFileError
    """
    with open_output(output, n_threads) as out:
        for number, part in enumerate(parts):
            with part.open(name) as file:
                if number:
                    file.readline()
                shutil.copyfileobj(file, out)


def append_arrow(part: DonePart, table: ArrowTable) -> None:
    """Write the rows of a part that were kept for a Parquet table."""
    with part.open(ARROW) as first:
        if not part.has(ARROW + GROUPS):
            table.append(first)
            return
        with part.open(ARROW + GROUPS) as groups, part.open(ARROW + LAST) as last:
            table.append(first, groups, last)


def has_name(parts: list[DonePart], output: str) -> bool:
    """Let the table of all parts have its name, if it is in one piece."""
    folder = parts[0].plan.folder
    if any(part.plan.folder != folder for part in parts):
        return False
    for part in parts:
        part.check_table()
    return give_name(folder, [part.record.table for part in parts], output)


def join_tables(
    parts: list[DonePart], output: str, n_threads: int, advance: Callable[[int], object] = lambda n: None
) -> None:
    """Make a table of text from those of parts, without copying it if it is in one piece.

    Parameters
    ----------
    parts : list of DonePart
        In order, at least one.
    output : str
        Compressed if its name asks for that.
    n_threads : int
        That compress.
    advance : callable of one int
        Called with 1 after each part.

    Raises
    ------
    InputFileError
        A part cannot be read.
    OutputFileError
    """
    if has_name(parts, output):
        advance(len(parts))
        return
    with open_output(output, n_threads) as out:
        out.write(header_of(parts[0].plan.folder, parts[0].record.table))
        for part in parts:
            part.append_rows(out)
            advance(1)


class WholeLines:
    """Hands text on in whole lines, for an output that takes these only.

    Parameters
    ----------
    out : Any
        With a method ``write``.
    """

    def __init__(self, out: Any) -> None:
        self._out = out
        self._rest = b""

    def write(self, text: bytes) -> None:
        """Take text."""
        end = text.rfind(b"\n") + 1
        if end:
            self._out.write(self._rest + text[:end])
            self._rest = text[end:]
        else:
            self._rest += text

    def flush(self) -> None:
        """Nothing."""
