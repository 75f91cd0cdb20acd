"""Results as tables instead of files: all in one, or one after the other while the command runs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from f5py.errors import UsageError, not_loaded
from f5py.io.arrow.arrow import import_arrow, read_rows

#: Kinds of tables that can be returned.
RETURNS = ("arrow", "pandas", "polars")

_POLL_SECONDS = 0.1
_END = object()


class _ClosedIteratorError(BaseException):
    """The iterator was closed."""


def parse(text: bytes, columns: Mapping[str, str]) -> Any:
    """Return the rows of a text table with its header as a `pyarrow.Table` of these types by name."""
    arrow, _ = import_arrow()
    header, _, rows = text.partition(b"\n")
    names = header.decode().split("\t")
    types = {name: arrow.type_for_alias(kind) for name, kind in columns.items()}
    empty = arrow.schema(types.items()).empty_table()
    tables = read_rows([rows] if rows else [], "a table", names, types, names, null_values=["."])
    return arrow.concat_tables([empty, *tables]).combine_chunks()


def converter(returns: str | None) -> Callable[[Any], Any]:
    """Return the conversion of a `pyarrow.Table`. Raises `F5pyError` for an unknown or missing library."""
    if returns not in (None, *RETURNS):
        raise UsageError(f"returns: {returns!r} is not one of None, {', '.join(map(repr, RETURNS))}")
    import_arrow("tables that are returned")
    if returns in (None, "arrow"):
        return lambda table: table
    try:
        library = import_module(returns or "")
    except ImportError as problem:
        raise not_loaded(problem, f'returns="{returns}" needs', str(returns), f"pip install {returns}") from problem
    return library.from_arrow if returns == "polars" else lambda table: table.to_pandas()


def iterate(run: Callable[[Callable[[Any], None]], object], of_arrow: Callable[[Any], Any]) -> Iterator[Any]:
    """Run a command in a thread, never more than one table ahead, and yield its tables converted."""
    box: queue.Queue[Any] = queue.Queue(maxsize=1)
    closed = threading.Event()
    problems: list[BaseException] = []

    def put(item: Any) -> None:
        while not closed.is_set():
            try:
                return box.put(item, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
        raise _ClosedIteratorError

    def work() -> None:
        try:
            try:
                run(put)
            except Exception as problem:
                problems.append(problem)
            put(_END)
        except _ClosedIteratorError:
            return

    thread = threading.Thread(target=work, name="f5py-command", daemon=True)
    thread.start()
    try:
        while (table := box.get()) is not _END:
            yield of_arrow(table)
        for problem in problems:
            if isinstance(problem, UsageError):
                raise problem.with_traceback(None) from None
            raise problem
    finally:
        closed.set()
        thread.join()
