"""Reader of fast5 files: single-read and multi-read, gzip or VBZ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from f5py.core.large_arrays import recycled_array
from f5py.io.signals.lru_cache import LruCache, close_file, most_open, reraise_system_error
from f5py.io.signals.source import BlockBuilder, FileReader, Room, SignalBlock, UnreadableError

if TYPE_CHECKING:
    from f5py.io.signals.fast5._fast5_h5py import Fast5File

#: Default number of open files.
MAX_OPEN_FILES = 64


class Fast5Reader(FileReader):
    """Reader of fast5 files with a cache of open files; VBZ needs its decoder."""

    def __init__(self, max_open: int = MAX_OPEN_FILES) -> None:
        #: Path to the open file, or to the reason of a failure.
        self._files: LruCache[str, Fast5File | str] = LruCache(_open, most_open(max_open), close_file)

    def prepare(self, path: str) -> None:
        import f5py.io.signals.fast5._fast5_h5py  # noqa: F401

    def read(self, names: Sequence[str], paths: Sequence[str], room: Room = recycled_array) -> SignalBlock:
        from f5py.io.signals.fast5._fast5_h5py import silence_hdf5

        silence_hdf5()
        block = BlockBuilder(names, paths, room)
        by_file: dict[str, list[int]] = {}
        first: dict[tuple[str, str], int] = {}
        repeats = []
        for i, read in enumerate(zip(names, paths, strict=True)):
            if first.setdefault(read, i) == i:
                by_file.setdefault(read[1], []).append(i)
            else:
                repeats.append((i, first[read]))
        for path, reads in by_file.items():
            file = self._files.get(path)
            for i in reads:
                if isinstance(file, str):
                    block.fail(i, file)
                    continue
                try:
                    block.add(i, *file.read(names[i]))
                except UnreadableError as problem:
                    reraise_system_error(problem, path)
                    block.fail(i, str(problem))
        for i, earlier in repeats:
            block.repeat(i, earlier)
        return block.build()

    def run_info(self, name: str, path: str) -> dict[str, str]:
        """Return context tags and tracking id, in lower case; nothing for an unreadable read."""
        from f5py.io.signals.fast5._fast5_h5py import silence_hdf5

        silence_hdf5()
        file = self._files.get(path)
        if isinstance(file, str):
            return {}
        try:
            return file.run_info(name)
        except UnreadableError:
            return {}

    def close(self) -> None:
        self._files.clear()


def _open(path: str) -> Fast5File | str:
    """Return the open file, or the reason why there is none."""
    from f5py.io.signals.fast5._fast5_h5py import Fast5File

    if not path:
        return "has no signal file in the index; run f5py index with the folder that holds it"
    try:
        return Fast5File(path)
    except UnreadableError as problem:
        reraise_system_error(problem, path)
        return str(problem)
