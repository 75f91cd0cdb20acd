"""Reader and index of POD5 files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.errors import SignalError, unavailable
from f5py.io.remote import ranged_file
from f5py.io.signals.pod5.uuids import keys_of_names, names_of_keys
from f5py.io.signals.source import NO_FILE, FileReader, SignalFile, UnreadableError
from f5py.io.signals.system_limits import reraise_system_error
from f5py.messages.console import input_warning

if TYPE_CHECKING:
    from f5py.io.signals.pod5._pod5_file import Pod5File, ReadEntries

_NAMES_AT_ONCE = 1 << 16


class Pod5Reader(FileReader):
    """Reader of POD5 files."""

    @staticmethod
    def prepare(path: str) -> None:
        import f5py.io.signals.pod5._pod5_file  # noqa: F401

    @staticmethod
    def open_file(path: str) -> SignalFile | str:
        return _open_file(path, False)

    def fetch_remote(self, by_file: Mapping[str, Iterable[str]]) -> None:
        wanted: list[tuple[Pod5File, ReadEntries]] = []
        for path, names in by_file.items():
            file: Any = self.file(path) if ranged_file(path) is not None else ""
            if not isinstance(file, str):
                with suppress(UnreadableError):  # reading reports it
                    wanted.append((file, file.entries_of(list(names))))
        tables = [one for file, entries in wanted for one in file.stretches_of_tables(entries)]
        if tables:
            files = tables[0][0].files
            files.fetch(tables)
            files.fetch([one for file, entries in wanted for one in file.stretches_of_signals(entries)], goes_on=True)

    def list_reads(self, path: str) -> NDArray[np.void] | str:
        """Return `keys_of` a file."""
        return keys_of(path)


class ChunkOffsetReader(Pod5Reader):
    """Reader of chunk offsets in place of samples; see `f5py.io.signals.pod5._pod5_file.ChunkOffsetFile`."""

    @staticmethod
    def open_file(path: str) -> SignalFile | str:
        return _open_file(path, True)


class Pod5Index(Mapping[str, str]):
    """Compact mapping of read names to POD5 files; a repeated read belongs to the first.

    Raises `SignalError` if no file can be read, `MissingDependencyError` without pod5. Some unreadable files of several
    cause a warning.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.fill({path: keys_of(path) for path in dict.fromkeys(paths)})

    def fill(self, found: Mapping[str, NDArray[np.void] | str]) -> None:
        """Index the reads of files, by `keys_of`, in place of the known ones."""
        bad = [keys for keys in found.values() if isinstance(keys, str)]
        known = {path: keys for path, keys in found.items() if not isinstance(keys, str)}
        if bad and not known:
            raise SignalError(bad[0] if len(bad) == 1 else f"none of {len(bad)} POD5 files can be read: {bad[0]}")
        if bad:
            input_warning(
                "read_signals",
                f"{len(bad)} of {len(found)} POD5 files cannot be read, their reads are left out: " + "; ".join(bad),
            )
        self._paths = list(known)
        keys = list(known.values())
        files = np.repeat(np.arange(len(keys), dtype=np.int32), [len(of_file) for of_file in keys])
        # numpy sorts bytes strings, not voids; equal lengths make trailing zeros harmless
        flat = np.concatenate([np.empty(0, "V16"), *keys]).view("S16")
        order = np.argsort(flat, kind="stable")
        flat = flat[order]
        first = np.concatenate([np.ones(min(len(flat), 1), np.bool_), flat[1:] != flat[:-1]])
        self._keys = flat[first]
        self._files = files[order[first]]

    def paths_of(self, names: Sequence[str]) -> list[str]:
        """Return the file of each read, "" if unknown."""
        keys, is_uuid = keys_of_names(names)
        wanted = keys.view("S16")
        at = np.searchsorted(self._keys, wanted)
        there = is_uuid & (at < len(self._keys))
        there[there] = self._keys[at[there]] == wanted[there]
        files = np.full(len(names), -1)
        files[there] = self._files[at[there]]
        return list(map([*self._paths, ""].__getitem__, files.tolist()))

    def __getitem__(self, name: str) -> str:
        (path,) = self.paths_of([name])
        if not path:
            raise KeyError(name)
        return path

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self._keys), _NAMES_AT_ONCE):
            yield from names_of_keys(self._keys[start : start + _NAMES_AT_ONCE])


def _open_file(path: str, leaves_packed: bool) -> SignalFile | str:
    if not path:
        return NO_FILE
    require_pod5(path)
    from f5py.io.signals.pod5._pod5_file import ChunkOffsetFile, Pod5File

    try:
        return (ChunkOffsetFile if leaves_packed else Pod5File)(path)
    except UnreadableError as problem:
        reraise_system_error(problem, path)
        return f"is in a file that {problem}"


def require_pod5(path: str) -> None:
    """Raise `MissingDependencyError` without the package pod5; `path` is the file to read."""
    try:
        import lib_pod5  # noqa: F401
    except ImportError as problem:
        if problem.name == "lib_pod5":
            problem.name = "pod5"  # which requires it
        raise unavailable(problem, f"{path}: reading POD5 files needs the package", "pod5", "pod5") from None


def keys_of(path: str) -> NDArray[np.void] | str:
    """Return the UUIDs of a file's reads, or why it cannot be read. Raise `MissingDependencyError` without pod5."""
    require_pod5(path)
    from f5py.io.signals.pod5._pod5_file import Pod5File

    try:
        with closing(Pod5File(path)) as file:
            return file.all_keys()
    except UnreadableError as problem:
        reraise_system_error(problem, path)
        return f"{path}: the file {problem}"
