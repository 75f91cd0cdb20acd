"""Signal files of reads, from the ``.readdb`` of an index; large ones are memory-mapped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence, ValuesView
from copy import copy
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names, NameTable
from f5py.core.offsets import gather_slices
from f5py.errors import InputFileError, blamed_on
from f5py.io.files.mapped_file import MappedFile
from f5py.io.remote import is_url
from f5py.messages import console
from f5py.messages.console import input_warning
from f5py.options.input_names import FAI_SUFFIX, READDB_SUFFIX

#: Name that stands for all reads, as in nanopolish.
ALL_READS = "*"
#: Smaller files are copied.
_LARGE_BYTES = 4 << 20
_CHUNK_BYTES = 1 << 20
#: Number of reads for the check of existing files.
_FILES_LOOKED_FOR = 100
INDEX_AGAIN = "if they were moved, or the folder was copied, run f5py index again where they are now"
#: Relative paths that are remembered, and lines that are looked at for them.
_MOST_RELATIVE, _MOST_LOOKED_AT = 100, 1 << 17


class ReadFiles(Mapping[str, str]):
    """Mapping of read names to signal files; open one with `ReadFiles.read`.

    Its text has lines of a name, a tab and a path; of equal names the last line counts. `relative` lists relative
    paths in it, at most `_MOST_RELATIVE`.
    """

    def __init__(self, text: NDArray[np.uint8], path: str, file: MappedFile | None = None) -> None:
        self._file = file
        self._text = text.data
        self._folder = ""
        ends, tabs = _places(text, b"\n"), _places(text, b"\t")
        if len(text) and text[-1] != ord("\n"):
            ends = np.append(ends, len(text))
        begins = np.append(0, ends[:-1] + 1)[: len(ends)]
        tabs = np.append(tabs, len(text))[np.searchsorted(tabs, begins)]
        if (wrong := (tabs >= ends) | (tabs == begins)).any():
            raise _bad_line(path, 1 + int(wrong.argmax()))
        self._table = NameTable(text, begins, tabs)
        #: Each name's first line, and the line with its path by its first line.
        self._first = self._line_of = np.arange(len(begins))
        if self._table.n_distinct < len(begins):
            first = self._table.rows_of(Names(*gather_slices(text, begins, tabs - begins)))
            self._first, self._line_of = np.unique(first), self._line_of.copy()
            self._line_of[first] = np.arange(len(begins))  # the last line is assigned last
        self._begins, self._ends = tabs + 1, ends
        is_of_all = (tabs == begins + 1) & (text[begins] == ord(ALL_READS)) & (ends > self._begins)
        self._of_all = np.flatnonzero(is_of_all)
        relative: dict[str, None] = {}
        lines = np.append(self._of_all, self._line_of[self._first])
        lines = lines[self._begins[lines] < ends[lines]]
        for line in lines[text[self._begins[lines]] != ord("/")][:_MOST_LOOKED_AT].tolist():
            relative[self._path(line)] = None
            if len(relative) == _MOST_RELATIVE:
                break
        self.relative = list(relative)

    @classmethod
    def read(cls, path: str) -> ReadFiles:
        """Open a ``.readdb`` file.

        Paths are empty where no signal file is known. The name ``*`` stands for all reads: their signals are in a SLOW5
        file, as nanopolish writes it, or a POD5 file or folder; each of several files has such a line. Raises
        `InputFileError` if the file is missing or a line lacks a field.
        """
        try:
            with blamed_on(path):
                file = MappedFile(path)
        except (FileNotFoundError, NotADirectoryError) as problem:
            raise InputFileError(
                f"{path}: not found; run f5py index with -d and the fast5 folder, with --slow5 or with --pod5, or name "
                "the signals here"
            ) from problem
        text = file.text
        if len(text) and not text.min():
            raise _bad_line(path, 1 + text[: int(text.argmin())].tobytes().count(b"\n"))
        if len(text) and text[-1] != ord("\n"):
            input_warning(
                "readdb", f"{path}: its last line has no end; if the file was cut short, run f5py index again"
            )
        if len(text) >= _LARGE_BYTES:
            return cls(text, path, file)
        text = text.copy()
        file.check()
        file.close()
        return cls(text, path)

    def below(self, folder: str) -> ReadFiles:
        """Resolve relative paths in a folder."""
        moved = copy(self)
        moved.relative, moved._folder = [], folder
        return moved

    @property
    def of_all(self) -> list[str]:
        """Signal files and folders with all reads."""
        return [self._path(line) for line in self._of_all.tolist()]

    def paths_of(self, names: Sequence[str]) -> list[str]:
        """Return the file of each read, "" if unknown."""
        return [path or "" for path in self._found(names)]

    def __getitem__(self, name: str) -> str:
        (path,) = self._found([name])
        if path is None:
            raise KeyError(name)
        return path

    def __len__(self) -> int:
        return len(self._first)

    def __iter__(self) -> Iterator[str]:
        return map(self._table.name, self._first.tolist())

    def values(self) -> ValuesView[str]:
        """Return the files of all reads; iteration does no lookup."""
        return _FileValues(self)

    def _found(self, names: Sequence[str]) -> list[str | None]:
        """Look up the file of each read, None for a missing one."""
        rows = self._table.rows_of(Names.of(names))
        paths = [None if row < 0 else sys.intern(self._path(self._line_of[row])) for row in rows.tolist()]
        if self._file is not None:
            self._file.check()
        return paths

    def _path(self, line: int) -> str:
        path = self._text[self._begins[line] : self._ends[line]].tobytes().decode("utf-8", "surrogateescape")
        return os.path.join(self._folder, path) if path else path


class _FileValues(ValuesView[str]):
    _mapping: ReadFiles

    def __iter__(self) -> Iterator[str]:
        files = self._mapping
        return map(files._path, files._line_of[files._first].tolist())


def _places(text: NDArray[np.uint8], letter: bytes) -> NDArray[np.int64]:
    """Return the offsets of a letter in a text."""
    pieces = range(0, len(text), _CHUNK_BYTES)
    found = [at + np.flatnonzero(text[at : at + _CHUNK_BYTES] == ord(letter)) for at in pieces]
    return np.concatenate([np.empty(0, np.int64), *found])


def _warn_if_shorter(paths: ReadFiles, index: str) -> None:
    """Warn if a ``.readdb`` has fewer reads than the index, as if truncated."""
    fai = index.removesuffix(READDB_SUFFIX) + FAI_SUFFIX
    if "*" in paths or not os.path.exists(fai):
        return
    file = MappedFile(fai)
    n_reads = int(np.count_nonzero(file.text == ord("\n")))
    file.close()
    if len(paths) < n_reads:
        input_warning(
            "readdb", f"{index}: has {len(paths)} reads, but {fai} has {n_reads}; was it cut? Run f5py index again"
        )


def resolve_paths(paths: ReadFiles, index: str) -> ReadFiles:
    """Resolve relative paths in the first of three folders that has one of them.

    These are the working folder, the index's folder and, if the index is a link, the folder of its target.
    """
    _warn_if_shorter(paths, index)
    if not paths.relative:
        _warn_of_lost_files(paths, index)
        return paths
    folders = [os.path.dirname(os.path.abspath(index)), os.path.dirname(os.path.realpath(index))]
    folders = list(dict.fromkeys(folder for folder in folders if folder != os.getcwd()))
    for path in paths.relative:
        if os.path.exists(path):
            return paths
        for folder in folders:
            if os.path.exists(os.path.join(folder, path)):
                console.note("open_signals", f"relative paths in {index} are taken from {folder}")
                return paths.below(folder)
    input_warning(
        "open_signals",
        f"{index}: signal files with relative paths, such as {paths.relative[0]}, are not below "
        f"{' nor '.join([os.getcwd(), *folders])}; run f5py where the reads were indexed, or index them again "
        "with -d and the whole path",
    )
    return paths


def _warn_of_lost_files(paths: ReadFiles, index: str) -> None:
    """Warn if none of the first signal files exists, as after moving a folder."""
    files = list(dict.fromkeys(filter(None, islice(paths.values(), _FILES_LOOKED_FOR))))
    if files and not any(is_url(path) or os.path.exists(path) for path in files):
        input_warning(
            "open_signals", f"{index}: signal files that it names, such as {files[0]}, are not there; {INDEX_AGAIN}"
        )


def _bad_line(path: str, number: int) -> InputFileError:
    return InputFileError(f"{path}: line {number} is not a read name, a tab and a path; run f5py index again")
