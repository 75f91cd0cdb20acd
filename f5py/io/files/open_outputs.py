"""Open outputs of a pipeline of threads."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType

from f5py.io.files.atomic_write import finish_pending
from f5py.threads.pipeline import writer_has_ended

#: Seconds to wait for a writer that was asked to stop.
_STOP_SECONDS = 0.4
#: Outputs in use by a thread until the process ends; garbage collection would close them.
_left_open: list[ExitStack] = []


class Outputs(ExitStack):
    """Open outputs of a pipeline, used by its writer.

    If the block raises, the writer may still be inside of an output, as after an interrupt it is not joined for long.
    Closing the output would wait, too, or damage the file or the process. So the writer is asked to stop, and if it
    does not, nothing is closed and atomic files are unlinked; the process should end soon.

    Attributes
    ----------
    stopping : threading.Event
        Tells the writer to stop before its next piece.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stopping = threading.Event()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if kind is not None:
            has_ended = False
            self.stopping.set()
            try:
                has_ended = writer_has_ended(_STOP_SECONDS)
            finally:  # also after another interrupt
                if not has_ended:
                    finish_pending()
                    _left_open.append(self.pop_all())
        return bool(super().__exit__(kind, problem, traceback))
