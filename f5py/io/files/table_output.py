"""Table outputs: tab-separated or CSV."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from f5py.io.files.complete_file import complete_text_output
from f5py.io.files.output import TextOutput, open_output
from f5py.options.output_names import is_csv_name

_COMMAS = bytes.maketrans(b"\t", b",")
#: Complaint about a CSV table in place of a tab-separated one.
CSV_GIVEN = "has commas between its columns; give the table as .tsv or Parquet"


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


def convert_to_csv(rows: bytes) -> bytes:
    """Convert tab-separated rows to CSV."""
    if _has_sign(rows):
        rows = b"\n".join(_quoted(row) if _has_sign(row) else row for row in rows.split(b"\n"))
    return rows.translate(_COMMAS)


def _has_sign(text: bytes) -> bool:
    """Return whether a field needs quotes."""
    return b"," in text or b'"' in text or b"\r" in text


def _quoted(row: bytes) -> bytes:
    fields = row.split(b"\t")
    return b"\t".join(b'"%b"' % one.replace(b'"', b'""') if _has_sign(one) else one for one in fields)


def is_csv_header(line: bytes) -> bool:
    """Return whether the first line of a table is comma-separated."""
    return b"," in line and b"\t" not in line


@contextmanager
def open_table(
    path: str,
    n_threads: int = 1,
    is_csv: bool | None = None,
    opened: Callable[[str, int], AbstractContextManager[TextOutput]] = open_output,
) -> Iterator[TextOutput]:
    """Open a table by `opened` for tab-separated rows. The name selects CSV by default."""
    with opened(path, n_threads) as out:
        if not (is_csv_name(path) if is_csv is None else is_csv):
            yield out
            return
        table = CsvOutput(out)
        yield table
        table.finish()


#: Open a table that replaces `path` when it is complete; see `open_table`.
complete_table = partial(open_table, opened=complete_text_output)
