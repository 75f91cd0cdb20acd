"""Concatenation of text tables into one stream."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from f5py.io.arrow.text_input import check_read_once, display_name, open_bytes
from f5py.io.bytes.byte_pieces import BytePieces


class JoinedTables(BytePieces):
    """Stream over tables, plain or compressed, opened one after the other; ``-`` is standard input.

    Raises `UsageError` if standard input is named twice; reading raises as `f5py.io.arrow.text_input.open_bytes`.
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
        """Return the table and its 1-based line of a 1-based line of the stream."""
        at = bisect_right(self._first_line, line) - 1
        return f"{display_name(self._paths[at])}, line {line - self._first_line[at] + 1}"

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
    """Open tables as one stream; also yield a function that maps its line numbers to tables and lines."""
    if len(paths) == 1:
        with open_bytes(paths[0], advance, beginning) as source:
            yield source, lambda line: f"{display_name(paths[0])}, line {line}"
        return
    with JoinedTables(paths, advance, beginning) as joined, io.BufferedReader(joined, 1 << 20) as source:
        yield source, joined.place
