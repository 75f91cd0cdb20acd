"""Protocol of sinks, the outputs of a run, each of which is opened, written and completed by itself.

A recipe (`f5py.runs.recipe`) names the sinks of a command. In a run in parts every part opens sinks of its own, whose
files are kept in the part's folder; at the end those of the whole run take the parts one after the other.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol

from f5py.core.batch import ReadBatch
from f5py.errors import blamed_on
from f5py.io.files.output import TextOutput


class OfPart(NamedTuple):
    """Files of the outputs of a part."""

    folder: Path
    text: TextOutput  # takes the header and the rows of its table of text


class DonePart(Protocol):
    """The outputs of a part that is done."""

    def open(self, name: str) -> BinaryIO:
        """Open one of its files, which is what was written."""
        ...

    def append_rows(self, out: Any) -> None:
        """Write the rows of its table of text."""
        ...


class Sink:
    """One output of a run.

    Subclasses open their files in `_open`, and let `files` close them: without an exception that completes the output,
    with one it is given up.

    Parameters
    ----------
    path : str
        The output of the whole run, ``-`` for standard output.

    Attributes
    ----------
    part_name : str or None
        Name of the file that a part keeps; None for rows of text, which all parts write into one file.
    may_be_named : bool
        The text of all parts, if it is in one file, can become the output without being copied.
    takes_empty : bool
        Batches without a read are written, too.
    files : ExitStack
        The open files.
    """

    part_name: ClassVar[str | None] = None
    may_be_named: bool = False
    takes_empty: ClassVar[bool] = False

    def __init__(self, path: str) -> None:
        self.path = path
        self.files = ExitStack()

    def open(self, part: OfPart | None = None) -> None:
        """Open the output, or what keeps it for a part."""
        if part is not None and self.part_name is not None:
            self.path = str(part.folder / self.part_name)
        self._open(part)

    def _open(self, part: OfPart | None) -> None:
        raise NotImplementedError

    def write(self, batch: ReadBatch) -> None:
        """Write a batch."""
        raise NotImplementedError

    def append(self, part: DonePart) -> None:
        """Write what a part has kept."""
        raise NotImplementedError

    def finish(self) -> None:
        """Complete the output."""
        self.files.close()

    def abandon(self, *problem: Any) -> None:
        """Give up what is not complete, because of an exception: its type, itself and its traceback."""
        self.files.__exit__(*problem)


class Sinks:
    """The open sinks of a run or of a part.

    Raises `OutputFileError` if one cannot be opened; those before it are given up.

    Parameters
    ----------
    sinks : iterable of Sink
        Opened one after the other.
    """

    def __init__(self, sinks: Iterable[Sink], part: OfPart | None = None) -> None:
        self._sinks: list[Sink] = []
        with ExitStack() as opened:
            for sink in sinks:
                opened.push(sink.abandon)
                sink.open(part)
                self._sinks.append(sink)
            self._opened = opened.pop_all()

    def write(self, batch: ReadBatch) -> None:
        """Write a batch to all."""
        for sink in self._sinks:
            if len(batch) or sink.takes_empty:
                with blamed_on(sink.path):
                    sink.write(batch)

    def append(self, part: DonePart) -> None:
        """Write what a part has kept to all."""
        for sink in self._sinks:
            with blamed_on(sink.path):
                sink.append(part)

    def finish(self) -> None:
        """Complete all outputs; one that fails takes no other with it.

        Raises the first error of a sink, after the others have been completed.
        """
        problems: list[Exception] = []
        for sink in self._sinks:
            try:
                sink.finish()
            except Exception as problem:
                problems.append(problem)
        if problems:
            raise problems[0]

    def abandon(self, *problem: Any) -> None:
        """Give up what is not complete; see `Sink.abandon`."""
        self._opened.__exit__(*problem)


def append_text(file: BinaryIO, out: TextOutput) -> None:
    """Write the rows of a table of text without its header."""
    file.readline()
    shutil.copyfileobj(file, out)
