"""Calls of the functions of ``import f5py``: keywords become the options object of a command."""

from __future__ import annotations

import inspect
import io
import os
import queue
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from f5py.api.documentation import docstring, is_result, signature
from f5py.errors import UsageError, not_loaded
from f5py.messages import console
from f5py.options import Kind, Option, Options, declarations
from f5py.options.declaration import REQUIRED, paths_read

if TYPE_CHECKING:
    from f5py.api.values import GivenFiles

P = ParamSpec("P")
Result = TypeVar("Result")
#: Kinds of tables that can be returned.
RETURNS = ("arrow", "pandas", "polars")

_POLL_SECONDS = 0.1
_END = object()
#: Options classes by the names of the functions.
FUNCTIONS: dict[str, type[Options]] = {}


class Call:
    """Call of a command, `run`, with options by field and ``progress``. An `output` of None counts as not given."""

    def __init__(self, kind: type[Options], run: Callable[..., Any], given: Mapping[str, object], **more: Any) -> None:
        self._kind, self._run = kind, run
        self._given: dict[str, Any] = {**given, **more}
        self._progress = self._given.pop("progress", None)
        if self._given.get("output") is None:
            self._given.pop("output", None)

    @property
    def is_written(self) -> bool:
        """Whether an output is named."""
        return "output" in self._given

    def value(self, *more: Any, **changed: Any) -> Any:
        """Run the command, with `more` arguments and with options `changed`; return its result. Raises `F5pyError`."""
        from f5py.api.values import GivenFiles
        from f5py.io.files.inputs_in_use import inputs_in_use
        from f5py.messages.progress import on_progress

        given = self._given | changed
        if given.get("engine") == "dask" and given.get("scheduler") is None:
            from f5py.runs.clusters.dask_cluster import begin_workers

            begin_workers(self._run.__module__)  # first of all: they need longest to start
        with GivenFiles() as files, files.named_in_errors(), on_progress(self._progress), ExitStack() as inputs:
            options = options_from(self._kind, given, files)
            inputs.enter_context(inputs_in_use(paths_read(options)))
            try:
                result = self._run(options, *more)
            except BrokenPipeError:
                files.finish()  # which raises what has broken the pipe, if that was one of ours
                raise
            files.finish()
        return result

    def written(self, what: str) -> Any:
        """Run a command without a table; raise `UsageError` that names `what` if no output is named."""
        if not self.is_written:
            raise UsageError(f"output: name a file for {what}; '-' is standard output")
        return self.value()

    def unwritten(self) -> Any:
        """Run a command that returns its text or its model; without an output nothing is written."""
        return self.value() if self.is_written else self.value(output=os.devnull)

    def table(self, returns: str | None) -> Any:
        """Run a command that returns the table that it writes, as `unwritten` does; see `rows`."""
        of_arrow = (lambda table: table) if returns is None else converter(returns)
        return of_arrow(self.unwritten())

    def rows(self, returns: str | None) -> Any:
        """Run a command that takes a function of a table, and return its tables as one.

        Without `returns` this is the command's own result if an output is named, else a `pyarrow.Table`. Raises
        `UsageError` for other values of `returns`, `MissingDependencyError` without its library.
        """
        from f5py.io.arrow.arrow import import_arrow

        if returns is None and self.is_written:
            return self.value()
        of_arrow = converter(returns)
        tables: list[Any] = []
        self.value(tables.append)
        return of_arrow(import_arrow()[0].concat_tables(tables).unify_dictionaries().combine_chunks())

    def parsed(self, returns: str | None, columns: Mapping[str, str]) -> Any:
        """Run a command that writes a table as text, and return it unless an output is named; see `rows`.

        `columns` has Arrow types by name; a missing number is ``.`` in the text.
        """
        if self.is_written and returns is None:
            return self.value()
        if self.is_written:
            raise UsageError("output: the rows are returned instead of written; leave out output, or returns")
        of_arrow = converter(returns)
        text = io.BytesIO()
        self.value(output=text)
        return of_arrow(parse(text.getvalue(), columns))

    def batches(self, returns: str | None) -> Iterator[Any]:
        """Run a command in a thread and yield its tables as they come; see `rows`.

        The command is never more than a table ahead of the caller, so that memory is bounded. It is ended when the
        iterator is closed or no longer referred to. Raises errors of the command after the tables before.
        """
        return iterate(self.value, converter(returns))


def function(kind: type[Options], has_progress: bool = True) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Document a function with the options that a class has, and check the keywords of its calls."""

    def decorate(implementation: Callable[P, Result]) -> Callable[P, Result]:
        parameters = inspect.signature(implementation).parameters
        own = [name for name in ("returns", "step") if name in parameters] + ["progress"] * has_progress

        @wraps(implementation)
        def called(*values: Any, **given: Any) -> Any:
            # of wrong calls the frames in here say nothing
            try:
                by_field = _by_field(implementation.__name__, kind, own, values, given)
            except TypeError as problem:
                raise problem.with_traceback(None) from None
            try:
                return cast("Callable[..., Any]", implementation)(**by_field)
            except UsageError as problem:
                raise problem.with_traceback(None) from None

        FUNCTIONS[implementation.__name__] = kind
        called.__doc__ = docstring(implementation.__doc__ or "", kind, own)
        called.__signature__ = signature(kind, own)  # type: ignore[attr-defined]
        return cast("Callable[P, Result]", called)

    return decorate


def _by_field(
    name: str, kind: type[Options], own: list[str], values: tuple[Any, ...], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by field: also those by position, and by other long names of options.

    Raises TypeError for keywords that are no options, for required ones that are missing, and for options that are
    given twice.
    """
    declared, known = declarations(kind), [field.name for field in fields(kind)]  # type: ignore[arg-type]
    by_spelling = {
        spelling[2:].replace("-", "_"): field
        for field, option in declared.items()
        for spelling in option.spellings
        if spelling.startswith("--")
    } | {field: field for field in (*known, *own)}
    positional = [field for field, option in declared.items() if option.is_argument]
    if len(values) > len(positional):
        raise TypeError(f"{name}() takes {len(positional)} positional arguments but {len(values)} were given")
    found: dict[str, Any] = dict(zip(positional, values, strict=False))
    for keyword, value in given.items():
        field = by_spelling.get(keyword)
        if field is None:
            near = get_close_matches(keyword, known, n=1)
            raise TypeError(f"{name}() has no option {keyword!r}{f'; did you mean {near[0]}?' if near else ''}")
        if field in found and field in positional:
            raise TypeError(f"{name}() got multiple values for argument {field!r}")
        if field in found:
            raise TypeError(f"{name}() got multiple values for option {field!r}, one of them as {keyword!r}")
        found[field] = value
    missing = [
        field
        for field, option in declared.items()
        if option.default is REQUIRED
        and field not in found
        and not is_result(field, option)
        and all(found.get(other) is None for other in option.unless)
    ]
    if missing:
        raise TypeError(f"{name}() needs {' and '.join(missing)}")
    return found


def options_from(kind: type[Options], given: Mapping[str, Any], files: GivenFiles) -> Any:
    """Make an options object; values of a profile stand in for options that are not given."""
    from f5py.api.values import option_value

    declared = declarations(kind)
    values = {
        name: option_value(name, declared[name], value, files) if name in declared else value
        for name, value in given.items()
    }
    command = next((field.default for field in fields(kind) if field.name == "command_line"), None)  # type: ignore[arg-type]
    if command is not None and "command_line" not in values:
        values["command_line"] = _command_line(str(command), declared, values)
    if (profile := values.pop("profile", None)) is not None:
        values = _with_profile(profile, declared, values)
    return kind(**values)


def _command_line(command: str, declared: Mapping[str, Option], values: Mapping[str, Any]) -> str:
    """Write the command line that does the same."""
    words, positional = command.split(), []
    for name, option in declared.items():
        value = values.get(name, option.default)
        if value == option.default:
            continue
        if option.is_argument:
            positional += list(value) if option.repeated else [value]
            continue
        spelling = option.names[-1]
        if option.kind is Kind.FLAG:
            words.append(spelling)
        elif option.kind is Kind.YES_NO:
            words.append(f"{spelling}={'yes' if value else 'no'}")
        else:
            for one in value if option.repeated else [value]:
                words += [spelling, str(one)]
    return shlex.join([*words, *positional])


def _with_profile(name: str, declared: Mapping[str, Option], values: dict[str, Any]) -> dict[str, Any]:
    from f5py.options.cores import usable_cores
    from f5py.options.profiles import PROFILES, load_profile

    profile = load_profile(name).values()
    if name in PROFILES:  # those of kinds of machines, of which this one may be a small part
        profile["threads"] = min(profile["threads"], usable_cores())
    if "gpu" in values:
        profile.pop("disable_cuda", None)
    values = {option: value for option, value in profile.items() if option in declared} | values
    shown = {option: one.default for option, one in declared.items()} | profile | values
    console.note(
        "set_opt_profile",
        f"max-lf: {shown['cuda_max_lf']:.1f}, avg-epk: {shown['cuda_avg_epk']:.1f}, "
        f"max-epk: {shown['cuda_max_epk']:.1f}, K: {shown['batchsize'] or 'auto'}, "
        f"B: {shown['max_bases'] / 1e6:.1f}M, t: {shown['threads']}, "
        f"ultra-thresh: {shown['ultra_thresh'] / 1e3:.1f}k, iop: {shown['iop'] or 'auto'}",
    )
    return values


class _ClosedIteratorError(BaseException):
    """The iterator was closed."""


def parse(text: bytes, columns: Mapping[str, str]) -> Any:
    """Return the rows of a text table with its header as a `pyarrow.Table` of these types by name."""
    from f5py.io.arrow.arrow import import_arrow, read_rows

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
    from f5py.io.arrow.arrow import import_arrow

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
