"""Several sources of the same signals, so that several batches are read at the same time."""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence

from f5py.io.signals.content import Kind
from f5py.io.signals.source import IndexedSource, SignalBlock, SignalSource


class SideBySide(IndexedSource):
    """Sources of the same reads, each of which is asked by one thread at a time.

    The processes of one source wait for each other, and for their samples to be copied; meanwhile those of the others
    read.

    Parameters
    ----------
    sources : sequence of SignalSource
        Closed with this one.
    paths, kind
        As for `IndexedSource`.
    """

    is_concurrent = True

    def __init__(self, sources: Sequence[SignalSource], paths: Mapping[str, str], kind: Kind | None = None) -> None:
        super().__init__(paths, kind)
        self._sources = sources
        self._free: queue.SimpleQueue[SignalSource] = queue.SimpleQueue()
        for source in sources:
            self._free.put(source)

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        source = self._free.get()
        try:
            return source.fetch(names)
        finally:
            self._free.put(source)

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        source = self._free.get()
        try:
            return source.run_info(names)
        finally:
            self._free.put(source)

    def close(self) -> None:
        for source in self._sources:
            source.close()
