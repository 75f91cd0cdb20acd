"""Reader of mixed fast5 and POD5 files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from f5py.core.large_arrays import recycled_array
from f5py.io.files.signal_format import Kind, file_kind
from f5py.io.signals.lru_cache import LruCache
from f5py.io.signals.source import Allocator, FileReader, SignalBlock, merge_blocks, unreadable_block

#: Files with a cached format; there may be millions.
_MOST_KNOWN = 10_000
_IN_SLOW5 = "is in a SLOW5 file, which cannot be used from a .readdb; run f5py index with --slow5"


class AnyFileReader(FileReader):
    """Reader that selects the fast5 or POD5 reader by each file's content."""

    def __init__(self) -> None:
        self._kinds: LruCache[str, Kind] = LruCache(_kind, _MOST_KNOWN)
        self._readers: dict[Kind, FileReader] = {}

    def prepare(self, path: str) -> None:
        if (kind := self._kinds.get(path)) != "slow5":
            self._reader(kind).prepare(path)

    def read(self, names: Sequence[str], paths: Sequence[str], room: Allocator = recycled_array) -> SignalBlock:
        by_kind: dict[Kind, list[int]] = {}
        for i, path in enumerate(paths):
            by_kind.setdefault(self._kinds.get(path), []).append(i)
        if len(by_kind) == 1:
            (kind,) = by_kind
            return self._read(kind, names, paths, room)
        parts = [
            (reads, self._read(kind, [names[i] for i in reads], [paths[i] for i in reads], np.empty))
            for kind, reads in by_kind.items()
        ]
        return merge_blocks(len(names), parts, room)

    def run_info(self, name: str, path: str) -> dict[str, str]:
        kind = self._kinds.get(path)
        return {} if kind == "slow5" else self._reader(kind).run_info(name, path)

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()

    def _read(self, kind: Kind, names: Sequence[str], paths: Sequence[str], room: Allocator) -> SignalBlock:
        if kind != "slow5":
            return self._reader(kind).read(names, paths, room)
        return unreadable_block(names, paths, [_IN_SLOW5] * len(names))

    def _reader(self, kind: Kind) -> FileReader:
        if kind not in self._readers:
            if kind == "pod5":
                from f5py.io.signals.pod5.reader import Pod5Reader

                self._readers[kind] = Pod5Reader()
            else:
                from f5py.io.signals.fast5.reader import Fast5Reader

                self._readers[kind] = Fast5Reader()
        return self._readers[kind]


def _kind(path: str) -> Kind:
    """Return a file's format; the fast5 reader reports files of none."""
    try:
        return (file_kind(path) if path else None) or "fast5"
    except (OSError, ValueError):
        return "fast5"
