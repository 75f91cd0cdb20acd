"""Read names of POD5 files from a helper process, which may crash on damage and imports slowly."""

from __future__ import annotations

from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError, SignalError
from f5py.io.signals.helper_process import LOOK_EVERY, HelperProcess, answer_each, send


class ReadLister(AbstractContextManager["ReadLister"]):
    """Lists the reads of files in a helper process, which ends with the context."""

    def __init__(self) -> None:
        self._process: HelperProcess | None = None

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    def __call__(self, path: str) -> NDArray[np.void]:
        """Return the UUIDs of a file's reads, as `Pod5File.all_keys`.

        Raises `SignalError` if the file cannot be read, `F5pyError` if pod5 is not installed or the process fails.
        """
        try:
            self._process = process = self._process or HelperProcess(_serve)
        except OSError as problem:
            raise F5pyError(f"cannot start the process that lists POD5 files: {problem.strerror}") from None
        process.begin()
        try:
            send(process.connection, [path])
            while not process.connection.poll(LOOK_EVERY):
                self._look_after(process, path)
            answer: Any = process.connection.recv()
        except (EOFError, ConnectionError):
            number = process.fatal_signal()
            self._end()
            if not number:
                raise F5pyError("the process that lists POD5 files was killed, perhaps for lack of memory") from None
            raise SignalError(f"{path}: the file ends the library that reads it ({number}); it is damaged") from None
        if isinstance(answer, F5pyError):
            raise answer
        return answer

    def _look_after(self, process: HelperProcess, path: str) -> None:
        """Raise if the process is in an endless loop or has waited too long."""
        if process.loops(1):
            self._end()
            raise SignalError(f"{path}: the file keeps the library that reads it in an endless loop; it is damaged")
        if process.waits_too_long(path):
            seconds = process.silence
            self._end()
            raise F5pyError(f"{path}: the process that lists its reads has not answered for {seconds:.0f} seconds")


def _serve(connection: Connection) -> None:
    """List the reads of requested files until the connection closes."""
    from f5py.io.signals.pod5.reader import keys_of

    answer_each(connection, keys_of)
