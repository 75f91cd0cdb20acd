"""A pipe that is passed on to a library, and how it ended."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from f5py.io.bytes.bgzf_blocks import BLOCK_MAGIC, END_BLOCK

_CHUNK_BYTES = 1 << 18


class WatchedPipe:
    """Passes on what can be read once, and sees whether a BGZF stream, such as BAM, has its end mark.

    A library that reads a pipe cannot tell a stream whose writer has died between two blocks from a complete one.
    Raises `OSError` if it cannot be opened.

    Parameters
    ----------
    path : str
        A pipe; ``-`` is standard input.
    beginning : bytes, optional
        What has been read of it already.

    Attributes
    ----------
    descriptor : int
        Where the library can read the same bytes.
    problem : OSError or None
        Once its end has been read: why it is not whole.
    """

    def __init__(self, path: str, beginning: bytes = b"") -> None:
        self.problem: OSError | None = None
        source = os.dup(0) if path == "-" else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.descriptor, sink = os.pipe()
        threading.Thread(target=self._pass_on, args=(source, sink, beginning), name="f5py-pipe", daemon=True).start()

    def close_descriptor(self) -> None:
        """Close `descriptor`, when the library has one of its own."""
        os.close(self.descriptor)

    def _pass_on(self, source: int, sink: int, chunk: bytes) -> None:
        beginning = end = b""
        try:
            while chunk := chunk or os.read(source, _CHUNK_BYTES):
                beginning = (beginning + chunk[: len(BLOCK_MAGIC)])[: len(BLOCK_MAGIC)]
                end = (end + chunk[-len(END_BLOCK) :])[-len(END_BLOCK) :]
                view = memoryview(chunk)
                while view:
                    view = view[os.write(sink, view) :]
                chunk = b""
            if beginning == BLOCK_MAGIC and end != END_BLOCK:
                self.problem = OSError("it has no end mark")
        except OSError as problem:  # it cannot be read; or nobody reads any more, and nobody will ask
            self.problem = problem
        finally:
            for descriptor in (sink, source):
                with suppress(OSError):
                    os.close(descriptor)
