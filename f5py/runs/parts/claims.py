"""Claims of processes on the parts of a plan."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from f5py.errors import OutputFileError
from f5py.runs.parts.plan import PARTS, Plan


class Claims:
    """Queue of parts for several processes on one machine; a context manager that creates its folder.

    Parts claimed by a process that has died are not given to another one. Picklable.
    """

    def __init__(self, plan: Plan, numbers: Sequence[int]) -> None:
        self._folder: Path = plan.folder / PARTS / f".claims-{secrets.token_hex(8)}"
        self._numbers = numbers

    @property
    def name(self) -> str:
        """Unique name."""
        return self._folder.name

    def __enter__(self) -> Claims:
        try:
            self._folder.mkdir()
        except OSError as problem:
            raise _failure(self._folder, problem) from None
        return self

    def __exit__(self, *problem: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def take(self) -> Iterator[int]:
        """Yield parts, each claimed on request."""
        for number in self._numbers:
            try:
                os.mkdir(self._folder / str(number))  # of several processes one can
            except FileExistsError:
                continue
            except OSError as problem:
                raise _failure(self._folder, problem) from None
            yield number


def _failure(folder: Path, problem: OSError) -> OutputFileError:
    return OutputFileError(f"{folder}: cannot write: {problem.strerror}")
