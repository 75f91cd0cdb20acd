"""Signal files of reads, from the ``.readdb`` of an index.

Its lines are sorted by name. Small files become a dict, without compiled code; large ones are memory-mapped and
searched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, ValuesView
from copy import copy
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.errors import InputFileError, blamed_on
from f5py.io.files.mapped_file import MappedFile
from f5py.io.remote import is_url
from f5py.messages import console
from f5py.messages.console import input_warning
from f5py.options.input_names import FAI_SUFFIX, READDB_SUFFIX

#: Name that stands for all reads, as in nanopolish.
ALL_READS = "*"
#: Smaller files become a dict.
_LARGE_BYTES = 4 << 20
_CHUNK_BYTES = 1 << 20
#: Number of reads for the check of existing files.
_FILES_LOOKED_FOR = 100
INDEX_AGAIN = "if they were moved, or the folder was copied, run f5py index again where they are now"
_MOST_RELATIVE = 100


class ReadFiles(Mapping[str, str]):
    """Mapping of read names to signal files; open one with `ReadFiles.read`.

    Parameters
    ----------
    text : uint8
        Lines of a name, a tab and a path, sorted by the bytes of the name, each name once.
    relative : list of str
        Relative paths in it, at most `_MOST_RELATIVE`.
    held : dict of bytes to bytes, optional
        Name to path, in place of `text`.
    file : MappedFile, optional
        Owner of the text.
    of_all : sequence of bytes
        Signal files with all reads.
    """

    def __init__(
        self,
        text: NDArray[np.uint8],
        n_lines: int,
        relative: list[str],
        held: dict[bytes, bytes] | None = None,
        file: MappedFile | None = None,
        of_all: Sequence[bytes] = (),
    ) -> None:
        self._file = file
        self._text = text
        self._n_lines = n_lines
        self.relative = relative
        self._held = held
        self._of_all = of_all
        self._folder = ""

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
            n_lines, relative, is_sorted = _check(text, path)
            if is_sorted:
                return cls(text, n_lines, relative, file=file)
            console.note("readdb", f"{path}: is not sorted by name (LC_ALL=C sort), which takes memory and time")
        held, of_all = _hold(text, path)
        file.check()
        different = (raw.decode("utf-8", "surrogateescape") for raw in dict.fromkeys([*of_all, *held.values()]))
        relative = list(islice((file for file in different if file and not os.path.isabs(file)), _MOST_RELATIVE))
        file.close()
        return cls(np.empty(0, np.uint8), len(held), relative, held, of_all=of_all)

    def below(self, folder: str) -> ReadFiles:
        """Resolve relative paths in a folder."""
        moved = copy(self)
        moved.relative, moved._folder = [], folder
        return moved

    @property
    def of_all(self) -> list[str]:
        """Signal files and folders with all reads."""
        if self._held is None:
            return [path for path in self._found([ALL_READS]) if path]
        return [self._path(raw) for raw in self._of_all]

    def paths_of(self, names: Sequence[str]) -> list[str]:
        """Return the file of each read, "" if unknown."""
        return [path or "" for path in self._found(names)]

    def __getitem__(self, name: str) -> str:
        (path,) = self._found([name])
        if path is None:
            raise KeyError(name)
        return path

    def __len__(self) -> int:
        return self._n_lines

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._fields())

    def values(self) -> ValuesView[str]:
        """Return the files of all reads; iteration does no lookup."""
        return _FileValues(self)

    def _found(self, names: Sequence[str]) -> list[str | None]:
        """Look up the file of each read, None for a missing one."""
        raw = self._find(names) if self._held is None else list(map(self._held.get, map(_encoded, names)))
        paths = {path: None if path is None else self._path(path) for path in set(raw)}
        return [paths[path] for path in raw]

    def _find(self, names: Sequence[str]) -> list[bytes | None]:
        """Search the text for the path of each read."""
        from f5py.io.reads._read_files_numba import find_paths

        wanted = Names.of(names)
        begins, ends = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.int64)
        find_paths(self._text, wanted.text, wanted.offsets, begins, ends)
        places = zip(begins.tolist(), ends.tolist(), strict=True)
        found = [None if begin < 0 else self._text[begin:end].tobytes() for begin, end in places]
        if self._file is not None:
            self._file.check()
        return found

    def _fields(self) -> Iterator[tuple[str, str]]:
        """Yield reads and their files in the order of the lines."""
        lines = (line.partition(b"\t") for line in _lines(self._text))
        fields = ((name, path) for name, _, path in lines) if self._held is None else self._held.items()
        for name, path in fields:
            yield name.decode("utf-8", "surrogateescape"), self._path(path)

    def _path(self, raw: bytes) -> str:
        path = raw.decode("utf-8", "surrogateescape")
        return os.path.join(self._folder, path) if path else path


class _FileValues(ValuesView[str]):
    _mapping: ReadFiles

    def __iter__(self) -> Iterator[str]:
        return (path for _, path in self._mapping._fields())


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


def _line_from(text: NDArray[np.uint8], place: int) -> str:
    """Return the rest of a line."""
    end = place
    while end < len(text) and text[end] != ord("\n"):
        end += 1
    return text[place:end].tobytes().decode("utf-8", "surrogateescape")


def _check(text: NDArray[np.uint8], path: str) -> tuple[int, list[str], bool]:
    """Return the number of lines, some relative paths, and whether the lines are sorted."""
    from f5py.io.reads._read_files_numba import check_lines

    places = np.empty(_MOST_RELATIVE, np.int64)
    n_lines, bad_line, is_sorted, n_relative = check_lines(text, places)
    if bad_line:
        raise _bad_line(path, bad_line)
    relative = dict.fromkeys(_line_from(text, place) for place in places[:n_relative].tolist())
    return n_lines, list(relative), is_sorted


def _hold(text: NDArray[np.uint8], path: str) -> tuple[dict[bytes, bytes], list[bytes]]:
    """Return name to path, the last one of repeated names, and the paths of `ALL_READS`."""
    held: dict[bytes, bytes] = {}
    of_all: list[bytes] = []
    paths: dict[bytes, bytes] = {}
    for number, line in enumerate(_lines(text), 1):
        name, tab, file = line.partition(b"\t")
        if not tab or not name:
            raise _bad_line(path, number)
        held[name] = paths.setdefault(file, file)  # reads share files
        if name == ALL_READS.encode() and file:
            of_all.append(file)
    return held, of_all


def _bad_line(path: str, number: int) -> InputFileError:
    return InputFileError(f"{path}: line {number} is not a read name, a tab and a path; run f5py index again")


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _lines(text: NDArray[np.uint8]) -> Iterator[bytes]:
    rest = b""
    for at in range(0, len(text), _CHUNK_BYTES):
        *lines, rest = (rest + text[at : at + _CHUNK_BYTES].tobytes()).split(b"\n")
        yield from lines
    if rest:
        yield rest
