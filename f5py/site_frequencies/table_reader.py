"""Rows of tab-separated tables for compiled loops, and what is wrong with those that these cannot read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError
from f5py.io.files.table_output import CSV_GIVEN, is_csv_header

#: The name of a table, or a function that says where a line of it stands.
Place = str | Callable[[int], str]
#: Bytes of text that are read at a time.
CHUNK_SIZE = 4 << 20
#: The largest start, end or group size that a table may have.
MAX_POSITION = 2**31 - 1

_NATURAL = re.compile(rb"[0-9]{1,19}")
_NEGATIVE = re.compile(rb"-[0-9]+")
_LONGEST_LINE = 1 << 28


class TableReader:
    """The rows of a tab-separated table, given to a compiled loop in chunks of whole lines.

    Parameters
    ----------
    source : binary file
        Open after the header.
    header : bytes
        Lines that repeat it are passed over, so that tables may be joined with ``cat``.
    name : str or callable
        The table's name for messages, or what says where a line stands, see `place_of`.
    state : int64
        The loop's state.
    """

    def __init__(self, source: BinaryIO, header: bytes, name: Place, state: NDArray[np.int64]) -> None:
        from f5py.site_frequencies import _site_table_numba as jit

        self._jit = jit
        self._source = source
        self._header = header
        self._name = name
        self._state = state
        state[jit.LINE] = 2

    def refuse(self, why: str) -> NoReturn:
        """Raise with the number of the present line."""
        raise InputFileError(f"{place_of(self._name, int(self._state[self._jit.LINE]))}: {why}")

    def columns(self, line: bytes) -> dict[str, bytes]:
        """Columns of a line by their names in the header; raises unless there are as many."""
        titles = self._header.decode().split("\t")
        columns = [column for column in line.split(b"\t") if column]
        if len(columns) != len(titles):
            if not line:
                self.refuse("empty; is the file damaged?")
            relation = "fewer" if len(columns) < len(titles) else "more"
            self.refuse(f"{len(columns)} columns, {relation} than the header's {len(titles)}; is the file damaged?")
        return dict(zip(titles, columns, strict=True))

    def check_natural(self, title: str, value: bytes, limit: int = MAX_POSITION) -> None:
        """Raise unless a column is a whole number from 0 to `limit`."""
        if _NEGATIVE.fullmatch(value):
            self.refuse(f"{title} is {shown(value)}, which is negative; is the file damaged?")
        if not _NATURAL.fullmatch(value) or int(value) > limit:
            self.refuse(f"{title} is {shown(value)}, not a whole number from 0 to {limit}; is the file damaged?")

    def read(
        self,
        loop: Callable[[NDArray[np.uint8], int, float | None], int],
        make_room: Callable[[int], None],
        judge: Callable[[bytes], float],
        chunk_size: int = CHUNK_SIZE,
    ) -> None:
        """Read to the end.

        Parameters
        ----------
        loop : function of the text, the size of its whole lines and an odd number or None
            Works through the lines from ``state[AT]`` on; returns `DONE`, `FULL` or `UNUSUAL`. The number is what
            `judge` made of the first of these lines.
        make_room : function of the size of the text
            Called when the loop returns `FULL`.
        judge : function of a line
            Called when the loop finds a line `UNUSUAL`: raises, or returns the number that the loop could not read.
        chunk_size : int
            Bytes that are read at a time; the result does not depend on it.
        """
        padding = self._jit.PADDING + 1  # the first for a last newline
        buffer = bytearray(chunk_size + padding)
        left = 0  # bytes of an incomplete line at the start of the buffer
        while True:
            with memoryview(buffer) as view:
                n_read = self._source.readinto(view[left:-padding])  # type: ignore[attr-defined]
            used = left + n_read
            if n_read == 0 and used > 0:
                buffer[used] = ord("\n")
                used += 1
            whole = buffer.rfind(b"\n", 0, used) + 1
            self._work_through(buffer, whole, loop, make_room, judge)
            left = used - whole
            buffer[:left] = buffer[whole:used]
            if n_read == 0:
                return
            if left == len(buffer) - padding:
                if left > _LONGEST_LINE:
                    self.refuse(f"longer than {_LONGEST_LINE} bytes; is this a table?")
                buffer += bytes(left)

    def _work_through(self, buffer: bytearray, size: int, loop, make_room, judge) -> None:
        jit, state = self._jit, self._state
        text = np.frombuffer(buffer, np.uint8)
        odd: float | None = None
        state[jit.AT] = 0
        while True:
            at = int(state[jit.AT])
            status = loop(text, size, odd)
            if status == jit.DONE:
                return
            if at != state[jit.AT]:
                odd = None  # it was of the row at which the loop started
            if status == jit.FULL:
                make_room(size)
                continue
            at = int(state[jit.AT])
            line = bytes(buffer[at : buffer.index(b"\n", at)])
            if line == self._header:
                state[jit.AT] += len(line) + 1
                state[jit.LINE] += 1
            else:
                odd = judge(line)


def place_of(name: Place, line: int) -> str:
    """Say where a line stands, for messages; counted from 1."""
    return f"{name}, line {line}" if isinstance(name, str) else name(line)


def header_complaint(header: bytes, known: Collection[bytes], needed: str, other: str) -> str:
    """Say what is wrong with the first line of a table: `other`, unless it is one of some common things."""
    if not header:
        return f"no header; give {needed}"
    if header.removesuffix(b"\r") in known:
        return "the header ends with a carriage return; convert the line ends with tr -d '\\r'"
    return CSV_GIVEN if is_csv_header(header) else other


def shown(value: bytes) -> str:
    """Format a column for messages."""
    return repr(value[:40].decode(errors="replace"))
