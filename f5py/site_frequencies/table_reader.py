"""Reading of tab-separated tables by compiled loops, with Python's checks of unusual rows."""

import re
from collections.abc import Callable, Collection
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError
from f5py.io.files.table_output import CSV_GIVEN, is_csv_header
from f5py.jit.instructions import lowest_bit
from f5py.jit.kernel import exact_inner, inner
from f5py.text._bytes_numba import LANES, where_is
from f5py.text._format_numba import MINUS, NEWLINE, PLUS, POINT, TAB

#: Name of a table, or a function from a line number to its place.
Place = str | Callable[[int], str]
#: Bytes read at a time.
CHUNK_SIZE = 4 << 20
#: Largest start, end or group size.
MAX_POSITION = 2**31 - 1

_NATURAL = re.compile(rb"[0-9]{1,19}")
_NEGATIVE = re.compile(rb"-[0-9]+")
_LONGEST_LINE = 1 << 28
#: Results of a loop over rows: end of the text, full table, row that Python must check.
DONE, FULL, UNUSUAL = 0, 1, 2
#: Elements of a loop's state: offset in the text, line, entries, names, entries needed, and a count for its caller.
AT, LINE, N_SITES, N_NAMES, NEEDED, NOTABLE = range(6)
STATE_SIZE = 6
_LONGEST_MOTIF = 16
#: Bytes that may be read after the text.
PADDING = LANES + _LONGEST_MOTIF
MAX_COLUMNS = 12
MAX_COUNT = 2**62
_MAX_DIGITS = 15  # exact in a double
_POWERS_OF_TEN = 10.0 ** np.arange(_MAX_DIGITS + 1)


@inner
def same_text(a, a_start, a_end, b, b_start, b_end):
    """Return whether two pieces of text are equal."""
    if a_end - a_start != b_end - b_start:
        return False
    for i in range(a_end - a_start):  # noqa: SIM110 - any() over a generator is not compiled
        if a[a_start + i] != b[b_start + i]:
            return False
    return True


@inner
def next_row(text, at, block, separators, starts, ends):
    """Fill starts and ends of the columns of the line at `at`; runs of tabs count as one.

    Returns the number of columns, the index of the newline, and `block` and `separators` for the next line: the last
    block of text and its unused separators. They start as ``at - LANES`` and 0. Every line must end with a newline.
    """
    columns = 0
    start = at
    while True:
        while separators == 0:
            block += LANES
            separators = where_is(text, block, TAB) | where_is(text, block, NEWLINE)
        here = block + lowest_bit(separators)
        separators &= separators - np.uint64(1)
        if here > start:
            if columns < MAX_COLUMNS:
                starts[columns] = start
                ends[columns] = here
            columns += 1
        start = here + 1
        if text[here] == NEWLINE:
            return columns, here, block, separators


@inner
def natural(text, start, end, limit):
    """Parse decimal digits as a number from 0 to `limit`; return -1 for anything else."""
    if end - start > 19:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(start, end):
        digit = np.int64(text[i]) - 48
        if digit < 0 or digit > 9 or value > MAX_COUNT // 10:
            return np.int64(-1)
        value = value * 10 + digit
    if value > limit:
        return np.int64(-1)
    return value


@exact_inner
def decimal(text, start, end):
    """Parse a decimal number as the nearest double; also return whether it is one.

    Digits and power of ten are exact in a double, so that their quotient is rounded once.
    """
    at = start
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    digits = np.int64(0)
    n_digits = 0
    decimals = 0
    point = False
    while at < end:
        digit = np.int64(text[at]) - 48
        if 0 <= digit <= 9:
            digits = digits * 10 + digit
            n_digits += 1
            if point:
                decimals += 1
            if n_digits > _MAX_DIGITS:
                return 0.0, False
        elif text[at] == POINT and not point:
            point = True
        else:
            return 0.0, False
        at += 1
    value = np.float64(digits) / _POWERS_OF_TEN[decimals]
    return -value if negative else value, n_digits > 0


class TableReader:
    """Reader of a tab-separated table for a compiled loop, in chunks of whole lines.

    `source` is behind the header; repeated header lines are skipped, so that tables may be joined with ``cat``.
    """

    def __init__(self, source: BinaryIO, header: bytes, name: Place, state: NDArray[np.int64]) -> None:
        self._source = source
        self._header = header
        self._name = name
        self._state = state
        state[LINE] = 2

    def reject(self, why: str) -> NoReturn:
        """Raise `InputFileError` with the current line."""
        raise InputFileError(f"{format_place(self._name, int(self._state[LINE]))}: {why}")

    def columns(self, line: bytes) -> dict[str, bytes]:
        """Split a line into columns by name; reject it if their number is wrong."""
        titles = self._header.decode().split("\t")
        columns = [column for column in line.split(b"\t") if column]
        if len(columns) != len(titles):
            if not line:
                self.reject("empty; is the file damaged?")
            relation = "fewer" if len(columns) < len(titles) else "more"
            self.reject(f"{len(columns)} columns, {relation} than the header's {len(titles)}; is the file damaged?")
        return dict(zip(titles, columns, strict=True))

    def check_natural(self, title: str, value: bytes, limit: int = MAX_POSITION) -> None:
        """Reject a column that is no whole number from 0 to `limit`."""
        if _NEGATIVE.fullmatch(value):
            self.reject(f"{title} is {shown(value)}, which is negative; is the file damaged?")
        if not _NATURAL.fullmatch(value) or int(value) > limit:
            self.reject(f"{title} is {shown(value)}, not a whole number from 0 to {limit}; is the file damaged?")

    def read(
        self,
        loop: Callable[[NDArray[np.uint8], int, float | None], int],
        make_room: Callable[[int], None],
        judge: Callable[[bytes], float],
        chunk_size: int = CHUNK_SIZE,
    ) -> None:
        """Read to the end.

        `loop` processes the whole lines of a text, of some size, from ``state[AT]`` on, and returns `DONE`, `FULL` or
        `UNUSUAL`. `make_room` is called after `FULL` with the size; `judge` with an unusual line, which it rejects, or
        parses the number that the loop gets as its third argument.
        """
        padding = PADDING + 1  # one for a missing last newline
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
                    self.reject(f"longer than {_LONGEST_LINE} bytes; is this a table?")
                buffer += bytes(left)

    def _work_through(self, buffer: bytearray, size: int, loop, make_room, judge) -> None:
        state = self._state
        text = np.frombuffer(buffer, np.uint8)
        odd: float | None = None
        state[AT] = 0
        while True:
            at = int(state[AT])
            status = loop(text, size, odd)
            if status == DONE:
                return
            if at != state[AT]:
                odd = None  # of the row where the loop started
            if status == FULL:
                make_room(size)
                continue
            at = int(state[AT])
            line = bytes(buffer[at : buffer.index(b"\n", at)])
            if line == self._header:
                state[AT] += len(line) + 1
                state[LINE] += 1
            else:
                odd = judge(line)


def format_place(name: Place, line: int) -> str:
    """Format the place of a line, counted from 1, for messages."""
    return f"{name}, line {line}" if isinstance(name, str) else name(line)


def header_complaint(header: bytes, known: Collection[bytes], needed: str, other: str) -> str:
    """Describe the fault of a table's first line: a common one, or else `other`."""
    if not header:
        return f"no header; give {needed}"
    if header.removesuffix(b"\r") in known:
        return "the header ends with a carriage return; convert the line ends with tr -d '\\r'"
    return CSV_GIVEN if is_csv_header(header) else other


def shown(value: bytes) -> str:
    """Format a column for messages."""
    return repr(value[:40].decode(errors="replace"))
