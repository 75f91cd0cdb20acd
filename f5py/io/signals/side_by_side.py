"""Several sources of the same signals, so that several batches are read at the same time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from f5py.errors import SignalError
from f5py.io.files.signal_format import Kind
from f5py.io.signals.source import IndexedSource, SignalBlock, SignalSource

#: Seconds for which the others are waited for before one more is started: some batches that a single one reads.
_PATIENCE = 0.25


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
    start_more : callable, optional
        Starts a further source, if those that are there keep somebody waiting.
    most : int
        Of all sources; no more are started.
    """

    is_concurrent = True

    def __init__(
        self,
        sources: Sequence[SignalSource],
        paths: Mapping[str, str],
        kind: Kind | None = None,
        start_more: Callable[[], SignalSource] | None = None,
        most: int = 0,
    ) -> None:
        super().__init__(paths, kind)
        self._sources = list(sources)
        self._start_more = start_more
        self._most = most
        self._lock = threading.Lock()  # of what is started later
        self._free: queue.SimpleQueue[SignalSource] = queue.SimpleQueue()
        for source in sources:
            self._free.put(source)

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        source = self._take()
        try:
            return source.fetch(names)
        finally:
            self._free.put(source)

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        source = self._take()
        try:
            return source.run_info(names)
        finally:
            self._free.put(source)

    def close(self) -> None:
        with self._lock:
            self._start_more = None
        for source in self._sources:
            source.close()

    def _take(self) -> SignalSource:
        """Return a source that nobody else asks."""
        if self._start_more is None:
            return self._free.get()
        with suppress(queue.Empty):
            return self._free.get(timeout=_PATIENCE)
        with self._lock:
            if self._start_more is not None and len(self._sources) < self._most:
                try:
                    self._sources.append(self._start_more())
                    return self._sources[-1]
                except SignalError:  # those that are there do all of it
                    self._start_more = None
        return self._free.get()
