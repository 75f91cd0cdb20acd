"""Values from Python as values of options: paths, open files, tables, lists, NumPy's numbers.

Tables are those of Arrow, as a whole or as streams, and the frames of pandas, Polars and others.
"""

import io
import operator
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import Any, BinaryIO, NoReturn

import numpy as np

from f5py.errors import F5pyError, UsageError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.files.disk import temporary_folder
from f5py.io.files.memory_file import memory_descriptor
from f5py.options import Group, Kind, Option
from f5py.options.declaration import base_count

_FILES = (Kind.FILE, Kind.PATH)
_CHUNK_BYTES = 1 << 16


class GivenFiles(ExitStack):
    """Names of open files and tables for commands; closes its copies of them, not the files."""

    def __init__(self) -> None:
        super().__init__()
        self._feeds: list[_Feed] = []
        #: Keywords by the names of the files that were made for them.
        self._keywords: dict[str, str] = {}

    def input_name(self, keyword: str, file: Any) -> str:
        """Name a file with the bytes of `file`, from its beginning or, of a pipe, as they come."""
        try:
            descriptor = file.fileno()
        except (AttributeError, io.UnsupportedOperation):
            with self._in_memory() as copy:
                descriptor = copy.fileno()
                if hasattr(file, "seekable") and file.seekable():
                    file.seek(0)
                shutil.copyfileobj(file, copy)
        else:
            # the name, if it has one, so that indices beside the file are found
            with suppress(OSError, TypeError):
                if os.path.samestat(os.stat(file.name), os.fstat(descriptor)):
                    return os.fspath(file.name)
        return self._name_of(keyword, descriptor)

    def table_name(self, keyword: str, tables: Iterable[Any]) -> str:
        """Name a file that tables in memory, or tables that come one after the other, can be read from as one."""
        with self._in_memory() as copy:
            write_tables(keyword, tables, copy)
            return self._name_of(keyword, copy.fileno())

    def model_name(self, trained: Any) -> str:
        """Name a file with the model of a training."""
        from f5py.pore_model.text_file import model_text

        path = os.path.join(self.enter_context(temporary_folder("f5py-model-")), "trained.model")
        with open(path, "wb") as file:
            file.writelines(model_text(trained.model, trained.n_events, "methylated", "f5py train"))
        return path

    def output_name(self, keyword: str, file: Any) -> str:
        """Name a pipe into `file`."""
        feed = _Feed(file)
        self._feeds.append(feed)
        self.callback(feed.close)
        self._keywords[feed.name] = keyword
        return feed.name

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Let errors name keywords instead of files that were made for them."""
        try:
            yield
        except F5pyError as problem:
            problem.args = tuple(self._with_keywords(text) for text in problem.args)
            raise

    def _in_memory(self) -> BinaryIO:
        """Open a file in memory, with a descriptor that lasts until the command ends."""
        descriptor = memory_descriptor("f5py input")
        self.callback(os.close, descriptor)
        return open(descriptor, "wb", closefd=False)

    def _name_of(self, keyword: str, descriptor: int) -> str:
        name = f"/proc/self/fd/{descriptor}"
        self._keywords[name] = keyword
        return name

    def _with_keywords(self, text: Any) -> Any:
        for name, keyword in self._keywords.items() if isinstance(text, str) else ():
            text = re.sub(rf"{name}(?!\d)", keyword, text)
        return text

    def finish(self) -> None:
        """Wait until all bytes are in their files. Raises the error of a write."""
        for feed in self._feeds:
            feed.close()
            if feed.problem is not None:
                raise feed.problem


class _Feed:
    """Pipe into an object with a method ``write``."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.problem: BaseException | None = None
        self._reads, writes = os.pipe()
        self._writes: int | None = writes
        self.name = f"/proc/self/fd/{writes}"
        self._thread = threading.Thread(target=self._pass_on, name="f5py-output", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the end. May be called twice."""
        if self._writes is not None:
            os.close(self._writes)
            self._writes = None
        self._thread.join()

    def _pass_on(self) -> None:
        with open(self._reads, "rb", buffering=0) as pipe:  # upon whose end the writer sees a broken pipe
            try:
                while chunk := pipe.read(_CHUNK_BYTES):
                    while chunk:  # an unbuffered file may take a part only
                        taken = self._file.write(chunk)
                        chunk = chunk[taken:] if isinstance(taken, int) else b""
            except BaseException as problem:
                self.problem = problem


def option_value(name: str, option: Option, value: Any, files: GivenFiles) -> Any:
    """Convert a value from Python to that of the command line.

    Raises `UsageError` if it is no value of such an option.
    """
    if value is None and option.repeated:
        return ()
    if value is None:
        if option.default is not None and option.refused is None:
            _fail(name, "None is no value; leave it out for the default")
        return None
    if option.is_table and isinstance(value, Iterator) and not hasattr(value, "read") and not is_table(value):
        name_of_all = files.table_name(name, value)
        return (name_of_all,) if option.repeated else name_of_all
    if option.repeated:
        several = [value] if not isinstance(value, Iterable) or _is_one(option, value) else list(value)
        if not several and option.metavar == "REGION":
            _fail(name, "has no region in it")
        if option.metavar == "REGION":
            return tuple(_region(name, one) for one in several)
        return tuple(_single(name, option, one, files) for one in several)
    return _single(name, option, value, files)


def _is_one(option: Option, value: Any) -> bool:
    if option.metavar == "REGION" and _is_interval(value):
        return True
    return isinstance(value, str | bytes | os.PathLike) or hasattr(value, "read") or is_table(value)


def _is_interval(value: Any) -> bool:
    """Return whether a value is a contig, a start and an end."""
    return isinstance(value, tuple) and len(value) == 3 and not isinstance(value[1], str)


def _single(name: str, option: Option, value: Any, files: GivenFiles) -> Any:
    kind = option.kind
    if option.is_table and is_table(value):
        return files.table_name(name, [value])
    if option.is_model and hasattr(value, "model") and hasattr(value, "n_events"):
        return files.model_name(value)
    is_path = isinstance(value, str | bytes | os.PathLike) or hasattr(value, "read")
    if option.is_list and isinstance(value, Iterable) and not is_path:
        return files.input_name(name, io.BytesIO("\n".join(map(str, value)).encode("utf-8", "surrogateescape")))
    if kind in (Kind.FLAG, Kind.YES_NO):
        if not isinstance(value, bool | np.bool_):
            _fail(name, f"{value!r} is neither True nor False")
        return bool(value)
    if kind is Kind.BASES and isinstance(value, str):
        if (count := base_count(value)) is None:
            _fail(name, f"{value!r} is not a number such as 5000000, 500K or 5M")
        return count
    if kind in (Kind.INTEGER, Kind.BASES):
        return _number(name, value, operator.index, "a whole number")
    if kind is Kind.NUMBER:
        return _number(name, value, float, "a number")
    if kind is Kind.CHOICE:
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        for choice in option.choices:
            if not isinstance(value, bool) and choice == value:
                return choice
        _fail(name, f"{value!r} is not one of {', '.join(map(repr, option.choices))}")
    return _text(name, option, value, files)


def _number(name: str, value: Any, convert: Any, what: str) -> Any:
    if not isinstance(value, bool | np.bool_ | str | bytes):
        with suppress(TypeError, ValueError):
            return convert(value)
    _fail(name, f"{value!r} is not {what}")


def _text(name: str, option: Option, value: Any, files: GivenFiles) -> str:
    """Convert a value to text, to the path of a file, or to the name of an open one."""
    if isinstance(value, str | os.PathLike) or (isinstance(value, bytes) and option.kind in _FILES):
        text = os.fsdecode(value)
        return os.path.expanduser(text) if option.is_file else text
    if option.kind in _FILES:
        if isinstance(value, io.TextIOBase):
            _fail(name, "is open as text; open it in binary mode")
        if option.group is Group.OUTPUT and hasattr(value, "write"):
            return files.output_name(name, value)
        if option.group is not Group.OUTPUT and hasattr(value, "read"):
            return files.input_name(name, value)
        use = "writing" if option.group is Group.OUTPUT else "reading"
        more = ", nor a table" if option.is_table else ""
        _fail(name, f"{_format_value(value)} is neither a path nor a file that is open for {use}{more}")
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, bytes):
        return _join(name, option, value)
    if option.listed and not isinstance(value, bool) and isinstance(value, int | np.integer):
        return str(value)
    _fail(name, f"{_format_value(value)} is no text")


def _join(name: str, option: Option, value: Any) -> str:
    """Join the elements of a sequence to one text, as on the command line."""
    if option.metavar == "REGION":
        several = [value] if _is_interval(value) else value
        return " ".join(_region(name, one) for one in several) or _fail(name, "has no region in it")
    if "SITE:OFFSET" in (option.metavar or "") and len(value) == 2 and isinstance(value[0], str):
        return f"{value[0]}:{_number(name, value[1], operator.index, 'a whole number')}"
    if not option.listed:
        _fail(name, f"{_format_value(value)} is no text")
    return ",".join(
        one if isinstance(one, str) else str(_number(name, one, _plain, "text or a number")) for one in value
    )


def _plain(value: Any) -> int | float:
    return int(value) if isinstance(value, int | np.integer) else float(value)


def _region(name: str, value: Any) -> str:
    """Format a region, a contig, or a contig with a 0-based, half-open interval, as samtools writes it."""
    if isinstance(value, str | os.PathLike):
        return os.path.expanduser(os.fsdecode(value))
    if not (isinstance(value, Sequence) and len(value) == 3 and isinstance(value[0], str)):
        _fail(name, f"{_format_value(value)} is neither a region nor (contig, start, end)")
    start, end = (_number(name, one, operator.index, "a whole number") for one in value[1:])
    if not 0 <= start < end:
        _fail(name, f"{_format_value(value)}: the end must be after the start, which counts from 0")
    return f"{value[0]}:{start + 1}-{end}"


def _format_value(value: Any) -> str:
    """Format a value for messages, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _fail(name: str, why: str) -> NoReturn:
    raise UsageError(f"{name}: {why}")


def is_table(value: Any) -> bool:
    """Return whether a value is a table, or a stream of one, that Arrow can take."""
    return hasattr(value, "__arrow_c_stream__") or _is_pandas(value)


def _is_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "columns")


def write_tables(name: str, tables: Iterable[Any], file: BinaryIO) -> None:
    """Write tables with the same columns as one Parquet file, not compressed, as it is read at once.

    Of tables of calls and of frequencies only the columns that the commands write are kept, in their order. Raises
    `UsageError`, which names the keyword, for a table with other columns or types that Arrow does not know.
    """
    arrow, parquet = import_arrow()
    try:
        streams = (_stream(arrow, name, table) for table in tables)
        first = next(streams, None)
        if first is None:
            raise UsageError(f"{name}: has no table in it")
        names = first.schema.names
        wanted = next((layout for layout in _layouts() if set(layout) <= set(names)), names)
        schema = arrow.schema([(one, _plain_type(arrow, first.schema.field(one).type)) for one in wanted])
        with parquet.ParquetWriter(file, schema, compression="none") as writer:
            for stream in chain([first], streams):
                if missing := [one for one in wanted if one not in stream.schema.names]:
                    raise UsageError(f"{name}: one of the tables has no column {missing[0]}, which the first one has")
                for batch in stream:
                    writer.write_table(_as_schema(arrow, batch, schema))
    except arrow.ArrowException as problem:
        raise UsageError(f"{name}: is no table that Arrow can read: {' '.join(str(problem).split())}") from problem


def _stream(arrow: Any, name: str, table: Any) -> Any:
    """Open a reader of a table's rows in batches; a stream can be read once."""
    if not is_table(table):
        raise UsageError(f"{name}: yields a {type(table).__name__}, which is no table")
    if isinstance(table, arrow.RecordBatchReader):
        return table
    if isinstance(table, arrow.RecordBatch):
        table = arrow.Table.from_batches([table])
    elif _is_pandas(table):  # an index without a name is that of the rows
        has_name = any(one is not None for one in table.index.names)
        table = arrow.Table.from_pandas(table, preserve_index=has_name)
    if isinstance(table, arrow.Table):
        return table.to_reader()
    return arrow.RecordBatchReader.from_stream(table)


def _layouts() -> list[list[str]]:
    """List the columns of tables of calls and frequencies in their order, the longest lists first."""
    # imported here, because every command imports this module, and few are given tables
    from f5py.site_frequencies.frequency import HEADERS_OF_CALLS
    from f5py.site_frequencies.site_table import HEADERS_OF_FREQUENCIES

    of_calls = (header.decode().split("\t") for header in HEADERS_OF_CALLS)
    return sorted(of_calls, key=len)[::-1] + [header.decode().split("\t") for header in HEADERS_OF_FREQUENCIES]


def _plain_type(arrow: Any, kind: Any) -> Any:
    """Convert a column to its type in f5py's Parquet tables: names as a dictionary, other text as is."""
    types = arrow.types
    if types.is_dictionary(kind):
        return arrow.dictionary(arrow.int32(), _plain_type(arrow, kind.value_type))
    is_view = getattr(types, "is_string_view", lambda _: False)
    return arrow.large_string() if is_view(kind) else kind


def _as_schema(arrow: Any, batch: Any, schema: Any) -> Any:
    """Convert a batch to a table of a given schema; dictionaries may differ from one batch to the next."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if not arrow.types.is_dictionary(field.type):
            column = column.cast(field.type)
        elif arrow.types.is_dictionary(column.type):
            values = column.dictionary.cast(field.type.value_type)
            column = arrow.DictionaryArray.from_arrays(column.indices.cast(field.type.index_type), values)
        else:
            column = column.cast(field.type.value_type).dictionary_encode()
        columns.append(column)
    return arrow.Table.from_arrays(columns, schema=schema)
