"""Text between the files that are read and the files that are written."""

from __future__ import annotations

from collections.abc import Callable


def encoded(text: str) -> bytes:
    """UTF-8 of names and paths; bytes of an input that were not UTF-8 come out as they went in.

    Parameters
    ----------
    text : str
        Decoded with the error handler ``surrogateescape``.
    """
    return text.encode("utf-8", "surrogateescape")


def undecoded(decoded: Callable[[], str]) -> bytes:
    """Return the bytes of text that a library decodes when asked for it; free text of a SAM file need not be UTF-8.

    Parameters
    ----------
    decoded : callable
        Such as the method ``to_string`` of a pysam record.
    """
    try:
        return decoded().encode()
    except UnicodeDecodeError as problem:
        return bytes(problem.object)


class PartialTextError(Exception):
    """Text could be made only up to some place.

    Parameters
    ----------
    text : bytes-like
        Whole lines of what is before that place.
    problem : Exception
        What is to be raised when these have been written.
    """

    def __init__(self, text: bytes | memoryview, problem: Exception) -> None:
        super().__init__(str(problem))
        self.text = text
        self.problem = problem
