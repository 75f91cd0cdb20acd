"""Table outputs: tab-separated or CSV."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from f5py.io.files.complete_file import complete_text_output
from f5py.io.files.output import TextOutput, open_output
from f5py.jit.kernel import exact_kernel
from f5py.options.output_names import is_csv_name

_TAB, _LINE_FEED, _RETURN, _QUOTE, _COMMA = 9, 10, 13, 34, 44


@exact_kernel
def quote_fields(rows, out):
    """Convert tab-separated rows to CSV; return the number of bytes.

    Parameters
    ----------
    out : uint8
        Filled; large enough for two quotes around each field and every quote doubled.
    """
    n = rows.shape[0]
    size = 0
    begin = 0
    while begin <= n:
        end = begin
        is_quoted = False
        while end < n and rows[end] != _TAB and rows[end] != _LINE_FEED:
            is_quoted |= rows[end] == _COMMA or rows[end] == _QUOTE or rows[end] == _RETURN
            end += 1
        if is_quoted:
            out[size] = _QUOTE
            size += 1
        for i in range(begin, end):
            if rows[i] == _QUOTE:
                out[size] = _QUOTE
                size += 1
            out[size] = rows[i]
            size += 1
        if is_quoted:
            out[size] = _QUOTE
            size += 1
        if end < n:
            out[size] = _COMMA if rows[end] == _TAB else _LINE_FEED
            size += 1
        begin = end + 1
    return size


_COMMAS = bytes.maketrans(b"\t", b",")
#: Complaint about a CSV table in place of a tab-separated one.
CSV_GIVEN = "has commas between its columns; give the table as .tsv or Parquet"
#: Characters of CSV fields that need quotes.
_NEED_QUOTES = (b",", b'"', b"\r")


class CsvOutput:
    """A `TextOutput` that converts tab-separated rows to CSV (RFC 4180), with line feeds."""

    def __init__(self, out: TextOutput) -> None:
        self._out = out
        self._begun: list[bytes] = []  # pieces of an incomplete row

    def write(self, text: Any, /) -> None:
        """Append text, which may end within a row."""
        given = bytes(text)
        end = given.rfind(b"\n") + 1
        if end:
            rows = b"".join((*self._begun, given[:end]))
            self._begun = []
            self._out.write(convert_to_csv(rows))
        if end < len(given):
            self._begun.append(given[end:])

    def flush(self) -> None:
        self._out.flush()

    def finish(self) -> None:
        """Write a last row without a line end."""
        if self._begun:
            self._out.write(convert_to_csv(b"".join(self._begun)))
            self._begun = []


def convert_to_csv(rows: bytes) -> bytes | memoryview:
    """Convert tab-separated rows to CSV."""
    if not any(sign in rows for sign in _NEED_QUOTES):
        return rows.translate(_COMMAS)

    n_fields = rows.count(b"\t") + rows.count(b"\n") + 1
    out = np.empty(len(rows) + rows.count(b'"') + 2 * n_fields, np.uint8)
    return out[: quote_fields(np.frombuffer(rows, np.uint8), out)].data


def is_csv_header(line: bytes) -> bool:
    """Return whether the first line of a table is comma-separated."""
    return b"," in line and b"\t" not in line


@contextmanager
def open_table(path: str, n_threads: int = 1, is_csv: bool | None = None) -> Iterator[TextOutput]:
    """Open a table by `open_output` for tab-separated rows. The name selects CSV by default."""
    with (
        open_output(path, n_threads) as out,
        _wrap_table(out, path, is_csv) as table,
    ):
        yield table


@contextmanager
def complete_table(path: str, n_threads: int, is_csv: bool | None = None) -> Iterator[TextOutput]:
    """Open a table with `f5py.io.files.complete_file.complete_text_output`; see `open_table`."""
    with (
        complete_text_output(path, n_threads) as out,
        _wrap_table(out, path, is_csv) as table,
    ):
        yield table


@contextmanager
def _wrap_table(out: TextOutput, path: str, is_csv: bool | None) -> Iterator[TextOutput]:
    if not (is_csv_name(path) if is_csv is None else is_csv):
        yield out
        return
    table = CsvOutput(out)
    yield table
    table.finish()
