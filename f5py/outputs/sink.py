"""Sinks: the outputs of a run.

A recipe (`f5py.runs.recipe`) names the sinks of a command. In a run in parts every part opens sinks of its own, which
store files in the part's folder; at the end those of the whole run append the parts in order.
"""

import shutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol

from f5py.core.batch import ReadBatch
from f5py.errors import blamed_on
from f5py.io.arrow.parquet_table import ParquetTable
from f5py.io.arrow.table import RowTarget
from f5py.io.files.atomic_write import named_together
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import TextOutput
from f5py.io.files.table_output import open_table


class PartFiles(NamedTuple):
    """Files of a part's outputs."""

    folder: Path
    text: TextOutput  # takes the header and the rows of its table of text


class FinishedPart(Protocol):
    """Outputs of a finished part."""

    def open(self, name: str) -> BinaryIO:
        """Open one of its files."""
        ...

    def append_rows(self, out: Any) -> None:
        """Write the rows of its text table."""
        ...


class Sink:
    """One output of a run; `path` is that of the whole run, ``-`` for standard output.

    Subclasses open their files in `_open` and register them in `files`: closing without an exception completes the
    output, with one it discards it. `part_name` is the name of a part's file, None for rows of text, which all parts
    write into one file. If it `can_be_renamed`, that file can become the output without being copied. One that
    `accepts_empty` gets batches without a read, too.
    """

    part_name: ClassVar[str | None] = None
    can_be_renamed: bool = False
    accepts_empty: ClassVar[bool] = False

    def __init__(self, path: str) -> None:
        self.path = path
        self.files = ExitStack()

    def open(self, part: PartFiles | None = None) -> None:
        """Open the output, or the files of a part."""
        if part is not None and self.part_name is not None:
            self.path = str(part.folder / self.part_name)
        self._open(part)

    def _open(self, part: PartFiles | None) -> None:
        raise NotImplementedError

    def write(self, batch: ReadBatch) -> None:
        raise NotImplementedError

    def append(self, part: FinishedPart) -> None:
        """Append a finished part."""
        raise NotImplementedError

    def finish(self) -> None:
        """Complete the output."""
        self.files.close()

    def abandon(self, *problem: Any) -> None:
        """Discard incomplete files because of an exception, given as to `__exit__`."""
        self.files.__exit__(*problem)


class Sinks:
    """Open sinks of a run or of a part.

    Raises `OutputFileError` if one cannot be opened; those before it are abandoned.
    """

    def __init__(self, sinks: Iterable[Sink], part: PartFiles | None = None) -> None:
        self._sinks: list[Sink] = []
        with ExitStack() as opened:
            for sink in sinks:
                opened.push(sink.abandon)
                sink.open(part)
                self._sinks.append(sink)
            self._opened = opened.pop_all()

    def write(self, batch: ReadBatch) -> None:
        for sink in self._sinks:
            if len(batch) or sink.accepts_empty:
                with blamed_on(sink.path):
                    sink.write(batch)

    def append(self, part: FinishedPart) -> None:
        """Append a finished part to all."""
        for sink in self._sinks:
            with blamed_on(sink.path):
                sink.append(part)

    def finish(self) -> None:
        """Complete all outputs; if one fails, no file gets its name."""
        with named_together():
            for sink in self._sinks:
                sink.finish()

    def abandon(self, *problem: Any) -> None:
        """Discard incomplete files; see `Sink.abandon`."""
        self._opened.__exit__(*problem)


class TextSink(Sink):
    """Text table with a `header`, and the lines that `format` makes of a batch."""

    header: ClassVar[bytes]

    def __init__(self, path: str, n_threads: int) -> None:
        super().__init__(path)
        self._n_threads = n_threads

    def _open(self, part: PartFiles | None) -> None:
        self._out = self.files.enter_context(open_table(self.path, 1 if part else self._n_threads))
        self._out.write(self.header)

    def format(self, batch: ReadBatch) -> bytes:
        raise NotImplementedError

    def write(self, batch: ReadBatch) -> None:
        self._out.write(self.format(batch))
        self._out.flush()

    def append(self, part: FinishedPart) -> None:
        assert self.part_name is not None
        with part.open(self.part_name) as file:
            file.readline()
            shutil.copyfileobj(file, self._out)


class ArrowTable(AbstractContextManager["ArrowTable"]):
    """Tables of columns for a Parquet file or a function; `_output` is made by `arrow_sink`."""

    _output: Any

    def __exit__(self, *problem: Any) -> None:
        self._output.__exit__(*problem)

    def write(self, batch: ReadBatch) -> None:
        raise NotImplementedError

    def append(self, file: BinaryIO) -> None:
        """Write the rows of another such Parquet file."""
        with ParquetTable(file) as table:
            self._output.append(table)


class ArrowSink(Sink):
    """Parquet file, or Arrow tables for a function, but not of parts; `open_table` makes the converter."""

    part_name = "table.parquet"

    def __init__(self, target: str | Callable[[Any], None], open_table: Callable[[RowTarget], ArrowTable]) -> None:
        super().__init__(target if isinstance(target, str) else "")
        self._target = target
        self._open_table = open_table

    def _open(self, part: PartFiles | None) -> None:
        is_file = isinstance(self._target, str)
        out: Any = self.files.enter_context(complete_output(self.path)) if is_file else self._target
        self._table = self.files.enter_context(self._open_table(out))

    def write(self, batch: ReadBatch) -> None:
        self._table.write(batch)

    def append(self, part: FinishedPart) -> None:
        with part.open(self.part_name) as file:
            self._table.append(file)
