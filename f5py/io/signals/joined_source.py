"""Combination of signal sources."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from f5py.io.files.signal_format import Kind
from f5py.io.signals.source import NO_FILE, SignalBlock, SignalSource, merge_blocks, unreadable_block
from f5py.threads.pool import WorkerPool


class JoinedSource(SignalSource):
    """Several sources as one; the first one with a read provides it. Closes them with itself."""

    def __init__(self, sources: Sequence[SignalSource]) -> None:
        self._sources = list(sources)

    @property
    def kind(self) -> Kind:
        return self._sources[0].kind

    @property
    def is_concurrent(self) -> bool:
        return all(source.is_concurrent for source in self._sources)

    def use_pool(self, pool: WorkerPool, leaves_packed: bool = False) -> None:
        for source in self._sources:
            source.use_pool(pool)

    def has_reads(self, names: Sequence[str]) -> NDArray[np.bool_]:
        return self._owners(names) >= 0

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        names = list(names)
        owners = self._owners(names)
        parts: list[tuple[list[int], SignalBlock]] = []
        for at in np.unique(owners).tolist():
            reads = np.flatnonzero(owners == at).tolist()
            wanted = [names[i] for i in reads]
            n = len(wanted)
            block = unreadable_block(wanted, [""] * n, [NO_FILE] * n) if at < 0 else self._sources[at].fetch(wanted)
            if len(reads) == len(names):
                return block
            parts.append((reads, block))
        return merge_blocks(len(names), parts)

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        for name, at in zip(names, self._owners(names).tolist(), strict=True):
            if at >= 0 and (found := self._sources[at].run_info([name])):
                return found
        return {}

    def first_names(self, n: int) -> list[str]:
        names: list[str] = []
        for source in self._sources:
            names += source.first_names(n - len(names))
        return names

    def place(self, name: str) -> str:
        (at,) = self._owners([name]).tolist()
        return "" if at < 0 else self._sources[at].place(name)

    def close(self) -> None:
        for source in self._sources:
            source.close()

    def _owners(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the first source that has each read; -1 for none."""
        owners = np.full(len(names), -1)
        for at in range(len(self._sources) - 1, -1, -1):
            owners[self._sources[at].has_reads(names)] = at
        return owners
