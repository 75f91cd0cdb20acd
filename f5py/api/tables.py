"""Results as Arrow tables: all in one, or one after the other while the command is at work."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from f5py.api.command import Command
from f5py.errors import MissingDependencyError, UsageError
from f5py.messages.progress import Listener

_POLL_SECONDS = 0.1
_END = object()


class _NotWantedError(BaseException):
    """Nobody takes the tables any more."""


def collected(command: Command, given: Mapping[str, Any], returns: str | None, progress: Listener | None) -> Any:
    """Run a command that can hand on tables; return what it returns, or all rows.

    Parameters
    ----------
    command : Command
        Its function takes, after the options, a function of a table.
    given : mapping
        Values by keyword.
    returns : {None, "arrow", "pandas"}
        What to return: what the command returns, a `pyarrow.Table`, or a `pandas.DataFrame`.
    progress : function or None

    Raises
    ------
    UsageError
        `returns` is something else.
    MissingDependencyError
        pyarrow or pandas is not installed.
    """
    if returns is None:
        return command.run(given, progress=progress)
    if returns not in ("arrow", "pandas"):
        raise UsageError(f"returns: {returns!r} is not one of None, 'arrow', 'pandas'")
    if returns == "pandas":
        try:
            import pandas  # noqa: F401 - only to fail before the work starts
        except ImportError as problem:
            raise MissingDependencyError('returns="pandas" needs pandas: pip install pandas') from problem
    from f5py.io.arrow.arrow import import_arrow

    arrow, _ = import_arrow()
    tables: list[Any] = []
    command.run(given, tables.append, progress=progress)
    table = arrow.concat_tables(tables).unify_dictionaries().combine_chunks()
    return table.to_pandas() if returns == "pandas" else table


def iterated(command: Command, given: Mapping[str, Any], progress: Listener | None) -> Iterator[Any]:
    """Run a command in a thread and yield its tables as they come.

    The command is never more than a table ahead of the caller, so that memory is bounded. It is ended when the
    iterator is closed or no longer referred to.

    Raises
    ------
    F5pyError
        What the command raises, after the tables before.
    """
    command.check_keywords(given)
    return _tables(lambda take: command.run(given, take, progress=progress))


def _tables(run: Callable[[Callable[[Any], None]], object]) -> Iterator[Any]:
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
            yield table
        if problems:
            raise problems[0]
    finally:
        closed.set()
        thread.join()
