"""Results as tables instead of files: all in one, or one after the other while the command is at work."""

from __future__ import annotations

import io
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from f5py.api.command import Command
from f5py.errors import UsageError, not_loaded
from f5py.io.arrow.arrow import import_arrow, read_rows
from f5py.messages.progress import Listener

#: Kinds of tables that can be returned.
RETURNS = ("arrow", "pandas", "polars")

_POLL_SECONDS = 0.1
_END = object()


class _NotWantedError(BaseException):
    """Nobody takes the tables any more."""


def collected(command: Command, given: Mapping[str, Any], returns: str | None, progress: Listener | None) -> Any:
    """Run a command whose function takes, after the options, a function of a table.

    Parameters
    ----------
    returns : {None, "arrow", "pandas", "polars"}
        What to return: by default what the command returns if an output is named, else a `pyarrow.Table`.

    Raises
    ------
    UsageError
        `returns` is something else.
    MissingDependencyError
        What the rows are to be returned as is not installed.
    """
    if returns is None and has_output(given):
        return command.run(given, progress=progress)
    of_arrow = converter(returns)
    tables: list[Any] = []
    command.run(given, tables.append, progress=progress)
    return of_arrow(import_arrow()[0].concat_tables(tables).unify_dictionaries().combine_chunks())


def parsed(
    command: Command, given: Mapping[str, Any], returns: str | None, progress: Listener | None, columns: dict[str, str]
) -> Any:
    """Run a command that writes a table as text, and return it unless an output is named; see `collected`.

    Parameters
    ----------
    columns : dict
        Names and Arrow types; a number that is missing is ``.``.
    """
    if returns is None and has_output(given):
        return command.run(given, progress=progress)
    if has_output(given):
        raise UsageError("output: the rows are returned instead of written; leave out output, or returns")
    of_arrow = converter(returns)
    text = io.BytesIO()
    command.run({**given, "output": text}, progress=progress)
    arrow, _ = import_arrow()
    header, _, rows = text.getvalue().partition(b"\n")
    names = header.decode().split("\t")
    types = {name: arrow.type_for_alias(kind) for name, kind in columns.items()}
    empty = arrow.schema(types.items()).empty_table()
    tables = read_rows([rows] if rows else [], command.name, names, types, names, null_values=["."])
    return of_arrow(arrow.concat_tables([empty, *tables]).combine_chunks())


def valued(command: Command, given: Mapping[str, Any], progress: Listener | None = None) -> Any:
    """Run a command that returns what it writes as text; without an output that is not written."""
    return command.run(given if has_output(given) else {**given, "output": os.devnull}, progress=progress)


def written(command: Command, given: Mapping[str, Any], what: str, progress: Listener | None = None) -> Any:
    """Run a command whose output is no table; refuse to write `what` to standard output unless that is asked for."""
    command.check_keywords(given)
    if not has_output(given):
        raise UsageError(f"output: name a file for {what}; '-' is standard output")
    return command.run(given, progress=progress)


def has_output(given: Mapping[str, Any]) -> bool:
    """Return whether an output is named."""
    return given.get("output") is not None


def converter(returns: str | None) -> Callable[[Any], Any]:
    """Choose the conversion of a `pyarrow.Table` to what is returned; what cannot work fails beforehand."""
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


def iterated(
    command: Command, given: Mapping[str, Any], returns: str | None, progress: Listener | None
) -> Iterator[Any]:
    """Run a command in a thread and yield its tables as they come; for `returns` see `collected`.

    The command is never more than a table ahead of the caller, so that memory is bounded. It is ended when the iterator
    is closed or no longer referred to. Raises what the command raises, after the tables before.
    """
    command.check_keywords(given)
    return _tables(lambda take: command.run(given, take, progress=progress), converter(returns))


def _tables(run: Callable[[Callable[[Any], None]], object], of_arrow: Callable[[Any], Any]) -> Iterator[Any]:
    box: queue.Queue[Any] = queue.Queue(maxsize=1)
    closed = threading.Event()
    problems: list[BaseException] = []

    def put(item: Any) -> None:
        while not closed.is_set():
            try:
                return box.put(item, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
        raise _NotWantedError

    def work() -> None:
        try:
            try:
                run(put)
            except Exception as problem:
                problems.append(problem)
            put(_END)
        except _NotWantedError:
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
