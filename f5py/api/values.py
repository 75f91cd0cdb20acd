"""Values from Python as values of options: paths of all kinds, open files, NumPy's numbers."""

from __future__ import annotations

import io
import operator
import os
import shutil
import threading
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import Any, NoReturn

import numpy as np

from f5py.errors import UsageError
from f5py.options import Group, Kind, Option

_FILES = (Kind.FILE, Kind.PATH)
_CHUNK_BYTES = 1 << 16


class GivenFiles(ExitStack):
    """Gives open files names by which a command can open them; closes what it has made for that, not the files."""

    def __init__(self) -> None:
        super().__init__()
        self._feeds: list[_Feed] = []

    def input_name(self, file: Any) -> str:
        """A name under which the bytes of `file` can be read from its beginning, or from a pipe as they come."""
        try:
            descriptor = file.fileno()
        except (AttributeError, io.UnsupportedOperation):
            descriptor = os.memfd_create("f5py input")
            self.callback(os.close, descriptor)
            if hasattr(file, "seekable") and file.seekable():
                file.seek(0)
            with open(os.dup(descriptor), "wb") as copy:
                shutil.copyfileobj(file, copy)
        else:
            # the name, if it has one, so that indices beside the file are found
            with suppress(OSError, TypeError):
                if os.path.samestat(os.stat(file.name), os.fstat(descriptor)):
                    return os.fspath(file.name)
        return f"/proc/self/fd/{descriptor}"

    def output_name(self, file: Any) -> str:
        """A name under which bytes can be written that end up in `file`."""
        feed = _Feed(file)
        self._feeds.append(feed)
        self.callback(feed.close)
        return feed.name

    def finish(self) -> None:
        """Wait until all bytes are in their files.

        Raises
        ------
        Exception
            What writing to one of them has raised.
        """
        for feed in self._feeds:
            feed.close()
            if feed.problem is not None:
                raise feed.problem


class _Feed:
    """Passes on to an object with a method ``write`` what is written to a pipe."""

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
    """The value of an option as its command expects it.

    Parameters
    ----------
    name : str
        The keyword.
    option : Option
    value : Any
        As a caller from Python gives it.
    files : GivenFiles
        Takes care of open files.

    Raises
    ------
    UsageError
        It is no value of such an option.
    """
    if value is None:
        if option.default is not None and option.refused is None:
            _fail(name, "None is no value; leave it out for the default")
        return None
    if option.repeated:
        several = value if isinstance(value, Iterable) and not _is_one(value) else [value]
        return tuple(_single(name, option, one, files) for one in several)
    return _single(name, option, value, files)


def _is_one(value: Any) -> bool:
    return isinstance(value, str | bytes | os.PathLike) or hasattr(value, "read")


def _single(name: str, option: Option, value: Any, files: GivenFiles) -> Any:
    kind = option.kind
    if kind in (Kind.FLAG, Kind.YES_NO):
        if not isinstance(value, bool | np.bool_):
            _fail(name, f"{value!r} is neither True nor False")
        return bool(value)
    if kind in (Kind.INTEGER, Kind.BASES):
        return _number(name, value, operator.index, "a whole number")
    if kind is Kind.NUMBER:
        return _number(name, value, float, "a number")
    if kind is Kind.CHOICE:
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
    """A text, the path of a file, or a name of an open one."""
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike) or (isinstance(value, bytes) and option.kind in _FILES):
        return os.fsdecode(value)
    if option.kind in _FILES:
        if isinstance(value, io.TextIOBase):
            _fail(name, "is open as text; open it in binary mode")
        if option.group is Group.OUTPUT and hasattr(value, "write"):
            return files.output_name(value)
        if option.group is not Group.OUTPUT and hasattr(value, "read"):
            return files.input_name(value)
        _fail(name, f"{value!r} is neither a path nor a file that is open for {_use(option)}")
    _fail(name, f"{value!r} is no text")


def _use(option: Option) -> str:
    return "writing" if option.group is Group.OUTPUT else "reading"


def _fail(name: str, why: str) -> NoReturn:
    raise UsageError(f"{name}: {why}")
