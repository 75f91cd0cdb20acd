"""Forwarding of a non-seekable BGZF stream to a library, with a check of its end block."""

import os
import threading
from contextlib import suppress

from f5py.io.bytes.bgzf_blocks import BLOCK_MAGIC, END_BLOCK

_CHUNK_BYTES = 1 << 18


class WatchedPipe:
    """Forward a non-seekable stream and check for the BGZF end block.

    Libraries do not notice a writer's death between two blocks. `beginning` has been read from the stream before; ``-``
    is standard input. The library reads the pipe `descriptor`. After the end, `problem` is the reason for an incomplete
    stream. Raises `OSError` if it cannot be opened.
    """

    def __init__(self, path: str, beginning: bytes = b"") -> None:
        self.problem: OSError | None = None
        source = os.dup(0) if path == "-" else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.descriptor, sink = os.pipe()
        threading.Thread(target=self._pass_on, args=(source, sink, beginning), name="f5py-pipe", daemon=True).start()

    def close_descriptor(self) -> None:
        """Close `descriptor` once the library has duplicated it."""
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
        except OSError as problem:
            self.problem = problem
        finally:
            for descriptor in (sink, source):
                with suppress(OSError):
                    os.close(descriptor)
