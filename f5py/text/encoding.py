"""Encoding of text that need not be valid UTF-8."""

from collections.abc import Callable


def encoded(text: str) -> bytes:
    """Encode text that was decoded with ``surrogateescape``; invalid bytes are preserved."""
    return text.encode("utf-8", "surrogateescape")


def undecoded(decoded: Callable[[], str]) -> bytes:
    """Return the bytes of text that a library's method decodes, such as ``to_string`` of a pysam record."""
    try:
        return decoded().encode()
    except UnicodeDecodeError as problem:
        return bytes(problem.object)


class PartialTextError(Exception):
    """Formatting failed after the whole lines of `text`; `problem` is to be raised once these are written."""

    def __init__(self, text: bytes | memoryview, problem: Exception) -> None:
        super().__init__(str(problem))
        self.text = text
        self.problem = problem
