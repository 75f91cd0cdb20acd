"""Which signal file each read is in, as the ``.readdb`` of an index says.

The lines of the file are sorted by name, so that reads are looked up where it is, mapped into memory: nothing is held
for each of the millions of reads that it may have.
"""

from __future__ import annotations

import os
from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView

import numpy as np
from numpy.typing import NDArray

from f5py import console
from f5py.core.names import Names
from f5py.errors import InputFileError, blamed_on
from f5py.io.indexed_fasta import MappedText

#: How much of the text is taken apart at a time where all of it is wanted.
_CHUNK_BYTES = 1 << 20
#: How many relative paths are remembered.
_MOST_RELATIVE = 100


class ReadFiles(Mapping[str, str]):
    """Read name to signal file, as the lines of a ``.readdb`` say; open one with `ReadFiles.read`.

    Parameters
    ----------
    text : uint8
        Lines of a name, a tab and a path, sorted by the bytes of the name, each name once.
    n_lines : int
    relative : list of str
        Relative paths in it; if there are many, some of them.
    """

    def __init__(self, text: NDArray[np.uint8], n_lines: int, relative: list[str]) -> None:
        self._text = text
        self._n_lines = n_lines
        self.relative = relative
        self._folder = ""

    @classmethod
    def read(cls, path: str) -> ReadFiles:
        """Open a ``.readdb`` file.

        The path is empty where no signal file is known. The name ``*`` stands for all reads: their signals are in one
        SLOW5 file (or POD5 file or folder), as f5py and nanopolish write it for SLOW5.

        Parameters
        ----------
        path : str
            The ``.readdb`` file itself, that is, the reads file's name and `f5py.io.read_index.READDB_SUFFIX`.

        Raises
        ------
        InputFileError
            The file is missing or a line does not have two fields.
        """
        from f5py.io._read_files_numba import check_lines

        try:
            with blamed_on(path):
                text = MappedText(path).text
        except (FileNotFoundError, NotADirectoryError) as problem:
            raise InputFileError(
                f"{path}: not found; run f5py index with -d and the fast5 folder, with --slow5 or with --pod5"
            ) from problem
        places = np.empty(_MOST_RELATIVE, np.int64)
        n_lines, bad_line, is_sorted, n_relative = check_lines(text, places)
        if bad_line:
            raise InputFileError(
                f"{path}: line {bad_line} is not a read name, a tab and a path; run f5py index again"
            )
        relative = list(dict.fromkeys(_line_from(text, place) for place in places[:n_relative].tolist()))
        if not is_sorted:
            console.note("readdb", f"{path}: is not sorted by name (LC_ALL=C sort), which takes memory and time")
            text, n_lines = _sorted(text)
        return cls(text, n_lines, relative)

    def below(self, folder: str) -> ReadFiles:
        """The same reads; relative paths are taken from a folder."""
        moved = ReadFiles(self._text, self._n_lines, [])
        moved._folder = folder
        return moved

    def paths_of(self, names: Sequence[str]) -> list[str]:
        """Return the file of each read, "" where none is known."""
        return [path or "" for path in self._found(names)]

    def __getitem__(self, name: str) -> str:
        (path,) = self._found([name])
        if path is None:
            raise KeyError(name)
        return path

    def __len__(self) -> int:
        return self._n_lines

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items())

    def items(self) -> ItemsView[str, str]:
        """Return all reads and their files; iterating looks nothing up."""
        return _Items(self)

    def values(self) -> ValuesView[str]:
        """Return the files of all reads; iterating looks nothing up."""
        return _Values(self)

    def _found(self, names: Sequence[str]) -> list[str | None]:
        """The file of each read, None for one that is not there."""
        from f5py.io._read_files_numba import find_paths

        wanted = Names.of(names)
        begins, ends = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.int64)
        find_paths(self._text, wanted.text, wanted.offsets, begins, ends)
        raw = [self._text[begin:end].tobytes() for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        paths = {path: self._path(path) for path in set(raw)}
        return [paths[path] if begin >= 0 else None for path, begin in zip(raw, begins.tolist(), strict=True)]

    def _fields(self) -> Iterator[tuple[str, str]]:
        """All reads and their files, in the order of the names."""
        for line in _lines(self._text):
            name, _, path = line.partition(b"\t")
            yield name.decode("utf-8", "surrogateescape"), self._path(path)

    def _path(self, raw: bytes) -> str:
        path = raw.decode("utf-8", "surrogateescape")
        return os.path.join(self._folder, path) if path else path


class _Items(ItemsView[str, str]):
    _mapping: ReadFiles

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return self._mapping._fields()


class _Values(ValuesView[str]):
    _mapping: ReadFiles

    def __iter__(self) -> Iterator[str]:
        return (path for _, path in self._mapping._fields())


def _line_from(text: NDArray[np.uint8], place: int) -> str:
    """The rest of a line."""
    end = place
    while end < len(text) and text[end] != ord("\n"):
        end += 1
    return text[place:end].tobytes().decode("utf-8", "surrogateescape")


def _sorted(text: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], int]:
    """The lines in the order of their names, and their number; of a name that occurs again the last one counts."""
    paths: dict[bytes, bytes] = {}
    of_name = {}
    for line in _lines(text):
        name, _, path = line.partition(b"\t")
        of_name[name] = paths.setdefault(path, path)  # thousands of reads share a multi-read file
    lines = bytearray()
    for name in sorted(of_name):
        lines += b"%s\t%s\n" % (name, of_name[name])
    return np.frombuffer(lines, np.uint8), len(of_name)


def _lines(text: NDArray[np.uint8]) -> Iterator[bytes]:
    rest = b""
    for at in range(0, len(text), _CHUNK_BYTES):
        *lines, rest = (rest + text[at : at + _CHUNK_BYTES].tobytes()).split(b"\n")
        yield from lines
    if rest:
        yield rest
