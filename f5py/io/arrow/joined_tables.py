"""Several tables of text as one stream of bytes, as ``cat`` would make it."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from f5py.io.arrow.text_input import check_read_once, open_bytes, shown_name
from f5py.io.bytes.byte_pieces import BytePieces


class JoinedTables(BytePieces):
    """Tables, plain or gzip, one after the other; each is opened when it is needed.

    Parameters
    ----------
    paths : sequence of str
        ``-`` is standard input, which can be there once.
    advance : function
        See `f5py.io.arrow.text_input.open_bytes`.
    beginning : bytes, optional
        What has been read of standard input already.

    Raises
    ------
    UsageError
        Standard input is named twice.
    InputFileError
        While it is read: a file cannot be opened or is damaged.
    """

    def __init__(
        self, paths: Sequence[str], advance: Callable[[int], object] = lambda size: None, beginning: bytes = b""
    ) -> None:
        check_read_once(paths)
        self._beginning = beginning
        self._advance = advance
        self._paths = list(paths)
        self._first_line = [1]
        self._files = ExitStack()
        super().__init__(self._read())

    def place(self, line: int) -> str:
        """Name the table, and the line of it counted from 1, that a line of the stream comes from."""
        at = bisect_right(self._first_line, line) - 1
        return f"{shown_name(self._paths[at])}, line {line - self._first_line[at] + 1}"

    def close(self) -> None:
        self._files.close()
        super().close()

    def _read(self) -> Iterator[bytes]:
        n_lines = 0
        for at, path in enumerate(self._paths):
            if at:
                self._first_line.append(n_lines + 1)
            with ExitStack() as self._files:
                file: BinaryIO = self._files.enter_context(
                    open_bytes(path, self._advance, self._beginning if path == "-" else b"")
                )
                piece = last = b""
                while piece := file.read1(1 << 20):  # type: ignore[attr-defined]
                    if at + 1 < len(self._paths):
                        n_lines += piece.count(b"\n")
                    last = piece
                    yield piece
                if last and not last.endswith(b"\n") and at + 1 < len(self._paths):
                    n_lines += 1
                    yield b"\n"


@contextmanager
def open_tables(
    paths: Sequence[str], advance: Callable[[int], object] = lambda size: None, beginning: bytes = b""
) -> Iterator[tuple[BinaryIO, Callable[[int], str]]]:
    """Open tables as one; yield the stream, and what says which line of which table a line of it is."""
    if len(paths) == 1:
        with open_bytes(paths[0], advance, beginning) as source:
            yield source, lambda line: f"{shown_name(paths[0])}, line {line}"
        return
    with JoinedTables(paths, advance, beginning) as joined, io.BufferedReader(joined, 1 << 20) as source:
        yield source, joined.place
