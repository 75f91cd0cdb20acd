"""Reader and index of POD5 files."""

from __future__ import annotations

import os
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.large_arrays import recycled_array
from f5py.core.names import Names
from f5py.errors import SignalError, unavailable
from f5py.io.remote import ranged_file
from f5py.io.signals.helper_process import ProcessCrashError, map_files
from f5py.io.signals.lru_cache import LruCache, close_file, most_open, reraise_system_error
from f5py.io.signals.search import list_files
from f5py.io.signals.source import NO_FILE, BlockBuilder, FileReader, FileSource, Room, SignalBlock, UnreadableError
from f5py.messages.console import input_warning

if TYPE_CHECKING:
    from f5py.io.signals.pod5._pod5_file import Pod5File, ReadEntries, StoredRead

#: Default number of open files; each takes four descriptors.
MAX_OPEN_FILES = 64
#: Longer signals (55 hours at 5 kHz) mean a damaged table.
MAX_SAMPLES = 1_000_000_000
NO_UUID = "has a name that is not a UUID, as all reads of POD5 files have"
_NAMES_AT_ONCE = 1 << 16


class Pod5Reader(FileReader):
    """Reader of POD5 files with a cache of open files."""

    def __init__(self, max_open: int = MAX_OPEN_FILES) -> None:
        self._max_open = max_open
        #: Path to the open file, or to the reason of a failure.
        self._files: LruCache[str, Pod5File | str] = LruCache(_open, most_open(max_open), close_file)

    def prepare(self, path: str) -> None:
        import f5py.io.signals.pod5._pod5_file  # noqa: F401

    def read(self, names: Sequence[str], paths: Sequence[str], room: Room = recycled_array) -> SignalBlock:
        damaged: dict[int, str] = {}
        while True:
            block, found = self._read(names, paths, damaged, room)
            if not found:
                return block
            damaged |= found

    def run_info(self, name: str, path: str) -> dict[str, str]:
        keys, is_uuid = keys_of_names([name])
        file = self._files.get(path) if path and is_uuid[0] else ""
        if isinstance(file, str):
            return {}
        found, _ = look_up(file, keys, path)
        return file.run_info(found[0].one(0)) if found else {}

    def close(self) -> None:
        self._files.clear()

    def _fetch(self, by_file: Mapping[str, Mapping[bytes, object]]) -> None:
        """Fetch the signals of reads in remote files, all at the same time."""
        wanted: list[tuple[Pod5File, list[ReadEntries]]] = []
        for path, reads in by_file.items():
            if ranged_file(path) is not None and not isinstance(file := self._files.get(path), str):
                wanted.append((file, look_up(file, _joined(reads), path)[0]))
        tables = [one for file, parts in wanted for part in parts for one in file.stretches_of_tables(part)]
        if tables:
            files = tables[0][0].files
            files.fetch(tables)
            signals = [one for file, parts in wanted for part in parts for one in file.stretches_of_signals(part)]
            files.fetch(signals, goes_on=True)

    def _read(
        self, names: Sequence[str], paths: Sequence[str], damaged: Mapping[int, str], room: Room
    ) -> tuple[SignalBlock, dict[int, str]]:
        """Read all but the `damaged` reads; if it finds more of them, the block is invalid.

        Signals are decoded into the laid-out block, which is faster than copying; they are copied if not all files can
        be open.
        """
        builder = BlockBuilder(names, paths, room)
        later: list[tuple[list[int], Pod5File, StoredRead]] = []
        by_file = _by_file(builder, names, paths)
        in_place = len(by_file) <= self._max_open
        self._fetch(by_file)
        for path, reads in by_file.items():
            file = self._files.get(path)
            stored, missing = ({}, file) if isinstance(file, str) else _stored(file, reads, path)
            # in disk order
            for key in sorted(reads, key=lambda key: stored[key].place if key in stored else (-1, -1)):
                first, *again = reads[key]
                try:
                    if isinstance(file, str) or key not in stored:
                        raise UnreadableError(missing)
                    if first in damaged:
                        raise UnreadableError(damaged[first])
                    read = stored[key]
                    if read.n_samples > MAX_SAMPLES:
                        raise UnreadableError(f"has damaged signal data ({read.n_samples} samples)")
                    if in_place:
                        later.append((reads[key], file, read))
                        builder.add(first, read.n_samples, read.calibration)
                    else:
                        samples = np.empty(read.n_samples, np.int16)
                        file.decode(read, samples)
                        builder.add(first, samples, read.calibration)
                except UnreadableError as problem:
                    reraise_system_error(problem, path)
                    builder.fail(first, str(problem))
                for i in again:
                    builder.repeat(i, first)
        block = builder.build()

        found = {}
        for (first, *again), file, read in later:
            samples = block.samples[block.offsets[first] : block.offsets[first + 1]]
            if first in block.problems:
                continue
            try:
                file.decode(read, samples)
            except UnreadableError as problem:
                reraise_system_error(problem, paths[first])
                found[first] = str(problem)
            for i in again:
                block.samples[block.offsets[i] : block.offsets[i + 1]] = samples
        return block, found


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

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Pod5Index:
        """Index a POD5 file, or all ``*.pod5`` files below a folder; raise as `pod5_files`."""
        return cls(pod5_files(path))

    def paths_of(self, names: Sequence[str]) -> list[str]:
        """Return the file of each read, "" if unknown."""
        keys, is_uuid = keys_of_names(names)
        at = rows_of(self._keys, keys.view("S16"))
        there = is_uuid & (at >= 0)
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

    def items(self) -> ItemsView[str, str]:
        """Return all reads and their files; iteration does no lookup."""
        return _IndexItems(self)

    def values(self) -> ValuesView[str]:
        """Return the files of all reads; iteration does no lookup."""
        return _IndexValues(self)

    def _all_paths(self) -> Iterator[str]:
        for start in range(0, len(self._files), _NAMES_AT_ONCE):
            yield from map(self._paths.__getitem__, self._files[start : start + _NAMES_AT_ONCE].tolist())


class _IndexItems(ItemsView[str, str]):
    _mapping: Pod5Index

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self._mapping, self._mapping._all_paths(), strict=True)


class _IndexValues(ValuesView[str]):
    _mapping: Pod5Index

    def __iter__(self) -> Iterator[str]:
        return self._mapping._all_paths()


class Pod5Source(FileSource):
    """Signals of reads in known POD5 files, by a mapping such as a `Pod5Index`, which is not copied."""

    def __init__(self, paths: Mapping[str, str], max_open: int = MAX_OPEN_FILES) -> None:
        super().__init__(paths, Pod5Reader(max_open), "pod5")

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Pod5Source:
        """Open a POD5 file or all ``*.pod5`` files below a folder; raise as `pod5_files`."""
        return cls(Pod5Index.from_path(path))


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
        import pod5  # noqa: F401
    except ImportError as problem:
        raise unavailable(problem, f"{path}: reading POD5 files needs the package", "pod5", "pod5") from None


def _open(path: str) -> Pod5File | str:
    """Return the open file, or the reason why there is none."""
    require_pod5(path)
    from f5py.io.signals.pod5._pod5_file import Pod5File

    try:
        return Pod5File(path)
    except UnreadableError as problem:
        reraise_system_error(problem, path)
        return f"is in a file that {problem}"


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


def list_keys(paths: Sequence[str]) -> dict[str, NDArray[np.void] | str]:
    """Return `keys_of` files from a helper process, which may crash on damage and imports slowly."""
    found: dict[str, NDArray[np.void] | str] = {}

    def take(path: str, keys: NDArray[np.void] | str | ProcessCrashError) -> None:
        found[path] = f"{path}: the file {keys.how}; it is damaged" if isinstance(keys, ProcessCrashError) else keys

    map_files(keys_of, list(dict.fromkeys(paths)), 1, take)
    return {path: found[path] for path in paths}


def _by_file(builder: BlockBuilder, names: Sequence[str], paths: Sequence[str]) -> dict[str, dict[bytes, list[int]]]:
    """Group reads by file and UUID; report impossible ones to the builder."""
    by_file: dict[str, dict[bytes, list[int]]] = {}
    keys, is_uuid = keys_of_names(names)
    for i, path in enumerate(paths):
        if not path:
            builder.fail(i, NO_FILE)
        elif not is_uuid[i]:
            builder.fail(i, NO_UUID)
        else:
            by_file.setdefault(path, {}).setdefault(keys[i].tobytes(), []).append(i)
    return by_file


def _joined(keys: Iterable[bytes]) -> NDArray[np.void]:
    return np.frombuffer(b"".join(keys), "V16")


def _stored(file: Pod5File, keys: Iterable[bytes], path: str) -> tuple[dict[bytes, StoredRead], str]:
    """Look up reads as `look_up`, by UUID."""
    found, missing = look_up(file, _joined(keys), path)
    return {key.tobytes(): part.one(i) for part in found for i, key in enumerate(part.keys)}, missing


def look_up(file: Pod5File, keys: NDArray[np.void], path: str) -> tuple[list[ReadEntries], str]:
    """Look up reads table by table; also return the reason for missing ones."""
    try:
        return file.find(keys), "is not in this file"
    except UnreadableError as problem:
        reraise_system_error(problem, path)
        return [], str(problem)


def rows_of(known: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of texts among sorted ones; -1 if missing."""
    at = np.searchsorted(known, wanted)
    is_there = at < len(known)
    is_there[is_there] = known[at[is_there]] == wanted[is_there]
    return np.where(is_there, at, -1)


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
