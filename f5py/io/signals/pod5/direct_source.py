"""Direct POD5 source: threads of this process read signal chunks and leave them packed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import StoredSamples
from f5py.core.large_arrays import recycled_array
from f5py.core.names import numbered
from f5py.core.offsets import offsets_of
from f5py.io.signals.slow5._slow5_functions import CodecFunctions
from f5py.io.signals.source import MAX_OPEN_FILES, IndexedSource, SignalBlock, SignalSource, merge_blocks, paths_of
from f5py.io.signals.system_limits import most_open
from f5py.threads.pool import BorrowedPool, WorkerPool

if TYPE_CHECKING:
    from f5py.io.signals.pod5._vbz_numba import ChunkBuffers

#: int64 values of a `ChunkOffsetFile` per chunk, and their size in samples.
_N_NUMBERS, _N_ELEMENTS = 3, 12
#: Largest size of a chunk: fixed and per sample.
_BYTES, _BYTES_PER_SAMPLE = 1 << 10, 3


class DirectPod5Source(IndexedSource):
    """Signals of indexed reads in POD5 files.

    The library reads samples that cannot be expanded here: damaged reads, which it diagnoses, and uncompressed files.
    `places` returns chunk offsets (`ChunkOffsetReader`); `start_others` starts a source that uses the library.
    """

    def __init__(
        self,
        places: SignalSource,
        start_others: Callable[[], SignalSource],
        paths: Mapping[str, str],
        called: CodecFunctions,
        n_threads: int = 1,
    ) -> None:
        super().__init__(paths, "pod5")
        self._leaves_packed = False
        self._places = places
        self._start_others = start_others
        self._called = called
        self._threads = BorrowedPool(n_threads)
        self._others: SignalSource | None = None
        self._lock = threading.Lock()  # for starting `_others`
        self._most_open = most_open(MAX_OPEN_FILES)

    @property
    def is_concurrent(self) -> bool:
        return self._places.is_concurrent

    def use_pool(self, pool: WorkerPool, leaves_packed: bool = False) -> None:
        self._threads.lend(pool)
        self._leaves_packed = leaves_packed

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        names = list(names)
        found = self._places.fetch(names)
        n_rows = np.diff(found.offsets) // _N_ELEMENTS
        rows = found.samples.copy().view(np.int64).reshape(-1, _N_NUMBERS)
        first = offsets_of(n_rows)[:-1]
        is_there = n_rows > 0
        n_samples = np.zeros(len(names), np.int64)
        n_samples[is_there] = rows[first[is_there], 0]
        is_piece = np.ones(len(rows), np.bool_)
        is_piece[first[is_there]] = False
        pieces, owners = rows[is_piece], np.repeat(np.arange(len(names)), n_rows)[is_piece]

        left = is_there & ~_are_sound(pieces, owners, n_samples)
        here = ~left[owners] & (pieces[:, 2] > 0)
        pieces, owners = pieces[here], owners[here]
        got = self._read(pieces, owners, paths_of(self._paths, names))
        is_good = got.codes == 0
        left[owners[~is_good]] = True
        offsets = offsets_of(np.where(left, 0, n_samples))
        empty = np.empty if self._leaves_packed and not left.any() else recycled_array
        samples = empty(int(offsets[-1]), np.int16)
        block = SignalBlock(samples, offsets, found.calibration, found.problems)
        first = np.searchsorted(owners, np.arange(len(names) + 1))
        block.packed = StoredSamples(got.values, first, got.places, pieces[:, 2].copy(), got.is_packed)
        if left.any() or not self._leaves_packed:
            block.expand(self._threads.workers())
        return self._with_others(block, np.flatnonzero(left), names) if left.any() else block

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        return self._places.run_info(names)

    def close(self) -> None:
        self._places.close()
        with self._lock:
            if self._others is not None:
                self._others.close()
        self._threads.close()

    def _read(self, pieces: NDArray[np.int64], owners: NDArray[np.int64], paths: Sequence[str]) -> ChunkBuffers:
        """Read chunks; `owners` are indices of the reads with these `paths`."""
        from f5py.io.signals.pod5._vbz_numba import ChunkBuffers, read_pieces
        from f5py.io.signals.slow5._slow5_numba import CANNOT_READ

        n = len(pieces)
        most = ((pieces[:, 2] + 3) // 4 + 2 * pieces[:, 2] + 1) // 2  # with two bytes for each sample
        got = ChunkBuffers(
            np.zeros(1, np.int64), recycled_array(int(most.sum()), np.int16), np.zeros(n, np.int64),
            np.zeros(n, np.bool_), np.full(n, CANNOT_READ, np.int32),
        )  # fmt: skip
        all_files, of_reads = numbered(paths)
        files = of_reads[owners]
        for begin in range(0, len(all_files), self._most_open):
            some = np.flatnonzero((files >= begin) & (files < begin + self._most_open))
            if not len(some):
                continue
            descriptors = np.full(len(all_files), -1, np.int64)
            with ExitStack() as opened:
                for file in np.unique(files[some]).tolist():
                    with suppress(OSError):  # the library reports it
                        descriptors[file] = os.open(all_files[file], os.O_RDONLY | os.O_CLOEXEC)
                        opened.callback(os.close, int(descriptors[file]))
                some = some[descriptors[files[some]] >= 0]
                self._threads.workers().run(read_pieces, some, pieces, descriptors[files], self._called, got)
        return got

    def _with_others(self, block: SignalBlock, left: NDArray[np.int64], names: Sequence[str]) -> SignalBlock:
        """Replace some reads of a block by the library's."""
        with self._lock:
            if self._others is None:
                self._others = self._start_others()
        read = self._others.fetch([names[i] for i in left.tolist()])
        if len(left) == len(names):
            return read
        return merge_blocks(len(names), [(range(len(names)), block), (left.tolist(), read)], recycled_array)


def _are_sound(pieces: NDArray[np.int64], owners: NDArray[np.int64], n_samples: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which reads have chunks of plausible sizes that add up to their samples."""
    begins, ends, lengths = pieces.T
    good = (begins >= 0) & (ends >= begins) & (lengths >= 0) & (lengths <= n_samples[owners])
    good &= ends - begins <= _BYTES + _BYTES_PER_SAMPLE * lengths
    sums = np.zeros(len(n_samples), np.int64)
    np.add.at(sums, owners[good], lengths[good])
    sums[owners[~good]] = -1
    return sums == n_samples
