"""The functions of ``import f5py``: made of the rows of the catalogue, each when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from f5py.api.catalogue import COMMANDS
from f5py.api.command import Command, Function, Listener
from f5py.errors import UsageError

#: Commands and functions by the names of the functions.
ROWS = {function.name: (command, function) for command in COMMANDS.values() for function in command.functions}


class Ways(NamedTuple):
    """The ways to the result of a call; a function of the catalogue names one of these methods."""

    command: Command
    function: Function
    given: dict[str, Any]  # values of options by keyword
    returns: str | None  # what a table is returned as
    progress: Listener | None

    def value(self) -> Any:
        """Return what the command returns."""
        return self.command.run(self.given, progress=self.progress)

    def rows(self) -> Any:
        """Return the rows that the command hands on, unless they are written."""
        from f5py.api.tables import collected

        if self.returns is None and self._has_no_rows():
            return self.value()
        return collected(self.command, self.given, self.returns, self.progress)

    def text(self) -> Any:
        """Return the rows that the command writes as text, unless they are written."""
        from f5py.api.tables import parsed, written

        if self._has_no_rows():
            return written(self.command, self.given, self.function.what, self.progress)
        return parsed(self.command, self.given, self.returns, self.progress, dict(self.function.columns))

    def batches(self) -> Iterator[Any]:
        """Return an iterator over tables of rows."""
        from f5py.api.tables import iterated

        return iterated(self.command, self.given, self.returns, self.progress)

    def unwritten(self) -> Any:
        """Return what the command returns, which is written only if an output is named."""
        from f5py.api.tables import converter, valued

        if not self.function.rows:
            return valued(self.command, self.given, self.progress)
        of_arrow = converter(self.returns)
        return of_arrow(valued(self.command, self.given, self.progress))

    def file(self) -> Any:
        """Return what the command returns; its output must be named, unless nothing is written."""
        from f5py.api.tables import written

        if self.function.written_from and not self.given.get(self.function.written_from):
            return self.value()
        return written(self.command, self.given, self.function.what, self.progress)

    def picture(self) -> Any:
        """Return a picture, unless it is written."""
        from f5py.api.tables import has_output

        if has_output(self.given):
            self.value()
            return None
        return self.command._replace(function="picture").run({**self.given, "output": ""}, progress=self.progress)

    def _has_no_rows(self) -> bool:
        return any(
            str(self.given.get(name)) in values if values else bool(self.given.get(name))
            for name, values in self.function.without_rows.items()
        )


def made(command: Command, function: Function) -> Callable[..., Any]:
    """Make a function of ``import f5py``."""
    from f5py.api.documentation import docstring, signature

    def called(*values: Any, **given: Any) -> Any:
        # of wrong calls the frames in here say nothing
        try:
            ways = _ways(command, function, values, given)
        except TypeError as problem:
            raise problem.with_traceback(None) from None
        try:
            return getattr(ways, function.way)()
        except UsageError as problem:
            raise problem.with_traceback(None) from None

    called.__name__ = called.__qualname__ = function.name
    called.__doc__ = docstring(command, function)
    called.__signature__ = signature(command, function)  # type: ignore[attr-defined]
    return called


def _ways(command: Command, function: Function, values: tuple[Any, ...], given: dict[str, Any]) -> Ways:
    """Sort the arguments of a call; raise TypeError for those that the function does not have, or lacks."""
    from f5py.options import declarations

    positional = [name for name, option in declarations(command.options).items() if option.is_argument]
    if len(values) > len(positional):
        raise TypeError(f"{function.name}() takes {len(positional)} positional arguments but {len(values)} were given")
    given = command.by_field(given, function.name)
    for name, value in zip(positional, values, strict=False):
        if name in given:
            raise TypeError(f"{function.name}() got multiple values for argument {name!r}")
        given[name] = value
    returns = given.pop("returns", None) if function.rows else None
    progress = given.pop("progress", None) if function.has_progress else None
    is_given = given if function.way != "picture" else {"output": "", **given}  # without one it is returned
    command.check_keywords(is_given, function.name)
    return Ways(command, function, given, returns, progress)


def __getattr__(name: str) -> Any:
    if name not in ROWS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made(*ROWS[name])
    return globals()[name]


def __dir__() -> list[str]:
    return [*globals(), *ROWS]
