"""Which process of several on a machine works on which part: each takes the next one that no other has taken."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from f5py.errors import OutputFileError
from f5py.runs.parts.plan import PARTS, Plan


class Claims:
    """Parts of a plan to be taken by processes; a context manager, which makes the folder where they are marked.

    A part that was taken by a process that has ended is not given to another one. Can be pickled.

    Parameters
    ----------
    numbers : list of int
        The parts, in the order in which they are to be taken.
    """

    def __init__(self, plan: Plan, numbers: Sequence[int]) -> None:
        self._folder: Path = plan.folder / PARTS / f".claims-{secrets.token_hex(8)}"
        self._numbers = numbers

    @property
    def name(self) -> str:
        """What no others are called."""
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
        """Take one part after the other, each when it is asked for."""
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
