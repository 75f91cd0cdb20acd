"""Concurrent use of several sources of the same signals."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from f5py.errors import SignalError
from f5py.io.files.signal_format import Kind
from f5py.io.signals.source import IndexedSource, SignalBlock, SignalSource

#: Seconds of waiting before another source is started.
_PATIENCE = 0.25


class SourcePool(IndexedSource):
    """Sources of the same reads, each used by one thread at a time. Closes them with itself.

    Parameters
    ----------
    start_more : callable, optional
        Starts a further source if callers wait.
    most : int
        Limit of all sources.
    """

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
        self._lock = threading.Lock()  # for starting sources
        self._free: queue.SimpleQueue[SignalSource] = queue.SimpleQueue()
        for source in sources:
            self._free.put(source)

    @property
    def is_concurrent(self) -> bool:
        return True

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
        """Return a free source."""
        if self._start_more is None:
            return self._free.get()
        with suppress(queue.Empty):
            return self._free.get(timeout=_PATIENCE)
        with self._lock:
            if self._start_more is not None and len(self._sources) < self._most:
                try:
                    self._sources.append(self._start_more())
                    return self._sources[-1]
                except SignalError:
                    self._start_more = None
        return self._free.get()
