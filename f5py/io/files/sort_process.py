"""samtools' sort: in this process, or in one of its own that is fed while the records are made.

pysam holds the interpreter's lock while it sorts, and samtools reads with one thread what it sorts. A process beside
this one reads while this one computes, and leaves it free while it sorts.
"""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection

from f5py.io.files.samtools import run_samtools
from f5py.io.signals.helper_process import HelperProcess, signal_name

_PIPE_BYTES = 1 << 20
_READY = b"ready"
#: How long the end of a process that has closed its connection is waited for.
_END_SECONDS = 10.0
#: A terminal or a batch system may send these to all processes of a run; the first one ends this one then.
_NOT_FOR_THE_SORT = (signal.SIGTERM, signal.SIGHUP)


class SortFailedError(Exception):
    """The records could not be sorted; the text says why."""


class SortEndedError(SortFailedError):
    """The process that sorts has come to its end before."""


def sort(folder: str, *arguments: str) -> None:
    """Run samtools' sort with these arguments in this process.

    Parameters
    ----------
    folder : str
        For temporary files, if the system's one refuses them.

    Raises
    ------
    SortFailedError
        With what samtools says.
    """
    import pysam

    loudness = pysam.set_verbosity(0)  # it misses the marker that compressed files end with
    try:
        run_samtools(pysam.sort, *arguments, target=os.path.join(folder, "sorted"))
    except pysam.SamtoolsError as problem:
        raise SortFailedError(" ".join(str(problem).split())) from None
    finally:
        pysam.set_verbosity(loudness)


class SortProcess:
    """A process that sorts what is written to it; it ends with the thread that starts it.

    Parameters
    ----------
    folder : str
        See `sort`.
    *arguments : str
        Of samtools' sort, but for the input.
    descriptors : tuple of int
        Of open files that the arguments name, as in /dev/fd.

    Raises
    ------
    OSError
        It cannot be started.
    """

    def __init__(self, folder: str, *arguments: str, descriptors: tuple[int, ...]) -> None:
        with ExitStack() as started:
            reader, writer = os.pipe()
            started.callback(os.close, reader)
            self._pipe = started.enter_context(open(writer, "wb"))
            with suppress(OSError):  # a user may have so many large ones only
                fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            self._process = HelperProcess(
                _sort_what_comes, folder, *arguments, f"/dev/fd/{reader}", descriptors=(reader, *descriptors)
            )
            os.close(reader)
            started.pop_all()

    @property
    def is_ready(self) -> bool:
        """Whether it has come up, so that writing does not wait for that."""
        return self._process.connection.poll()

    def write(self, records: memoryview | bytes) -> None:
        """Hand records on.

        Raises
        ------
        SortFailedError
            The process has failed.
        """
        try:
            self._pipe.write(records)
        except BrokenPipeError:
            self.finish()
            raise SortEndedError("the process that sorts has not read all") from None

    def end_input(self) -> None:
        """Let it sort: there is no more."""
        with suppress(BrokenPipeError):  # `finish` tells why
            self._pipe.close()

    def finish(self) -> None:
        """Wait until all is sorted and written.

        Raises
        ------
        SortFailedError
            The process has failed.
        """
        answer = _READY
        try:
            while answer == _READY:
                answer = self._process.connection.recv_bytes()
        except (EOFError, ConnectionError):
            self._process.wait(_END_SECONDS)
            status = self._process.status
            if status == -signal.SIGKILL:
                raise SortEndedError("the process that sorts was killed, as happens when memory runs short") from None
            end = f"was ended by {signal_name(-status)}" if status and status < 0 else f"ended with status {status}"
            raise SortEndedError(f"the process that sorts {end}") from None
        if answer:
            raise SortFailedError(answer.decode())

    def kill(self) -> None:
        """End it at once, so that nobody waits for it; from any thread."""
        self._process.kill()

    def close(self) -> None:
        """End it, if it has not ended, and wait for that."""
        self._process.close()
        self.end_input()


def _sort_what_comes(connection: Connection, folder: str, *arguments: str) -> None:
    """Run the process."""
    for number in _NOT_FOR_THE_SORT:
        signal.signal(number, signal.SIG_IGN)
    import pysam  # noqa: F401 - takes a while

    connection.send_bytes(_READY)
    try:
        sort(folder, *arguments)
    except (SortFailedError, OSError) as problem:
        connection.send_bytes(str(problem).encode("utf-8", "replace"))
    else:
        connection.send_bytes(b"")
