"""Reader and index of POD5 files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.errors import SignalError, unavailable
from f5py.io.remote import ranged_file
from f5py.io.signals.lru_cache import reraise_system_error
from f5py.io.signals.search import list_files
from f5py.io.signals.source import MAX_SAMPLES, NO_FILE, CachingReader, ReadOrCause, UnreadableError
from f5py.messages.console import input_warning

if TYPE_CHECKING:
    from f5py.io.signals.pod5._pod5_file import Pod5File, ReadEntries

#: int64 values per chunk, and their size in samples.
N_NUMBERS = 3
N_ELEMENTS = N_NUMBERS * np.dtype(np.int64).itemsize // np.dtype(np.int16).itemsize
NO_UUID = "has a name that is not a UUID, as all reads of POD5 files have"
_NAMES_AT_ONCE = 1 << 16


class Pod5Reader(CachingReader["Pod5File"]):
    """Reader of POD5 files."""

    def prepare(self, path: str) -> None:
        import f5py.io.signals.pod5._pod5_file  # noqa: F401

    @staticmethod
    def open_file(path: str) -> Pod5File | str:
        if not path:
            return NO_FILE
        require_pod5(path)
        from f5py.io.signals.pod5._pod5_file import Pod5File

        try:
            return Pod5File(path)
        except UnreadableError as problem:
            reraise_system_error(problem, path)
            return f"is in a file that {problem}"

    def fetch_remote(self, by_file: Mapping[str, Iterable[str]]) -> None:
        wanted: list[tuple[Pod5File, ReadEntries]] = []
        for path, names in by_file.items():
            if ranged_file(path) is not None and not isinstance(file := self.files.get(path), str):
                with suppress(UnreadableError):  # reading reports it
                    wanted.append((file, file.find(_distinct(*keys_of_names(list(names))))))
        tables = [one for file, entries in wanted for one in file.stretches_of_tables(entries)]
        if tables:
            files = tables[0][0].files
            files.fetch(tables)
            files.fetch([one for file, entries in wanted for one in file.stretches_of_signals(entries)], goes_on=True)

    def read_file(self, file: Pod5File, names: Sequence[str], path: str) -> Iterator[ReadOrCause]:
        keys, is_uuid = keys_of_names(names)
        found: dict[bytes, ReadOrCause] = {}
        missing = "is not in this file"
        try:
            entries = file.find(_distinct(keys, is_uuid))
            found = dict(zip(map(bytes, entries.keys), self._read_entries(file, entries, path), strict=True))
        except UnreadableError as problem:
            reraise_system_error(problem, path)
            missing = str(problem)
        for key, good in zip(map(bytes, keys), is_uuid.tolist(), strict=True):
            yield found.get(key, missing) if good else NO_UUID

    def _read_entries(self, file: Pod5File, entries: ReadEntries, path: str) -> Iterator[ReadOrCause]:
        for i, (n_samples, calibration) in enumerate(zip(entries.n_samples.tolist(), entries.calibration, strict=True)):
            if n_samples > MAX_SAMPLES:
                yield f"has damaged signal data ({n_samples} samples)"
                continue
            try:
                yield file.decode(n_samples, entries.pieces[entries.pieces_of(i)]), calibration
            except UnreadableError as problem:
                reraise_system_error(problem, path)
                yield str(problem)

    def list_reads(self, path: str) -> NDArray[np.void] | str:
        """Return `keys_of` a file."""
        return keys_of(path)

    def run_info_of(self, file: Pod5File, name: str) -> dict[str, str]:
        keys, is_uuid = keys_of_names([name])
        return file.run_info(keys) if is_uuid[0] else {}


class ChunkOffsetReader(Pod5Reader):
    """Reader of chunk offsets in place of samples, `N_NUMBERS` int64 per read and per chunk.

    A read's row has its number of samples and zeros. A chunk's row has its start and end in the file and its samples,
    or -1 if unknown or not compressed. `DirectPod5Source` reads and expands the chunks.
    """

    def _read_entries(self, file: Pod5File, entries: ReadEntries, path: str) -> Iterator[ReadOrCause]:
        places = file.places_of(entries.pieces) if file.is_compressed else np.full((len(entries.pieces), 3), -1)
        for i, (n_samples, calibration) in enumerate(zip(entries.n_samples.tolist(), entries.calibration, strict=True)):
            if n_samples > MAX_SAMPLES:
                yield f"has damaged signal data ({n_samples} samples)"
                continue
            first = np.array([[n_samples, 0, 0]] if n_samples else np.empty((0, N_NUMBERS)), np.int64)
            of_read = places[entries.pieces_of(i)] if n_samples else first
            yield np.concatenate([first, of_read]).view(np.int16).ravel(), calibration


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


def pod5_files(path: str | os.PathLike[str]) -> list[str]:
    """Return the POD5 file at `path`, or all ``*.pod5`` files below that folder, sorted.

    Raises `SignalError` if there is none or a folder cannot be listed.
    """
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise SignalError(f"{path}: no such file or folder; name a POD5 file or the folder that holds the files")
        return [os.fspath(path)]
    files = list_files(os.fspath(path), lambda file: file.endswith(".pod5"))
    if not files:
        raise SignalError(f"{path}: no file below this folder is named *.pod5; give the folder of the signals")
    return files


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


def _distinct(keys: NDArray[np.void], is_uuid: NDArray[np.bool_]) -> NDArray[np.void]:
    return np.unique(keys[is_uuid].view("S16")).view("V16")


_LENGTH = 36
#: Positions of dashes and digits in the text.
_DASHES = np.array([8, 13, 18, 23])
_DIGITS = np.delete(np.arange(_LENGTH), _DASHES)
#: Digit values of characters; 255 for others.
_VALUES = np.full(256, 255, np.uint8)
_VALUES[np.frombuffer(b"0123456789ABCDEF", np.uint8)] = np.arange(16)
_VALUES[np.frombuffer(b"abcdef", np.uint8)] = np.arange(10, 16)


def keys_of_names(names: Sequence[str]) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """Parse UUIDs.

    Returns
    -------
    keys : V16, shape (n,)
        Zeros for other names.
    is_uuid : bool, shape (n,)
    """
    names = Names.of(names)
    is_uuid = np.diff(names.offsets) == _LENGTH
    text = names.text[names.offsets[:-1][is_uuid, np.newaxis] + np.arange(_LENGTH)]
    digits = _VALUES[text[:, _DIGITS]]
    good = (text[:, _DASHES] == ord("-")).all(axis=1) & (digits < 16).all(axis=1)
    is_uuid[is_uuid] = good
    keys = np.zeros((len(names), 16), np.uint8)
    keys[is_uuid] = digits[good, ::2] << 4 | digits[good, 1::2]
    return keys.view("V16").ravel(), is_uuid


def names_of_keys(keys: NDArray[np.bytes_]) -> list[str]:
    """Format UUIDs of 16 bytes each."""
    digits = np.frombuffer(keys.tobytes().hex().encode(), "S32")
    text = np.full((len(keys), _LENGTH), ord("-"), np.uint8)
    text[:, _DIGITS] = digits.view(np.uint8).reshape(-1, 32)
    line = text.tobytes().decode()
    return [line[at : at + _LENGTH] for at in range(0, len(line), _LENGTH)]
