"""Maximal exact matches on a GPU: the five stages of GPUseed, with later stages on the CPU threads.

The index of the reference is copied to the device once. The reads of a batch go there in as many rounds as the arena's
part needs. Matches, and the places of those that are always used, come back, and the CPU threads choose among them and
make anchors, as for their own (`f5py.mapping.mem.mem_seeds`). The CPU threads search reads that do not fit. Arithmetic
is in whole numbers, so the results are the same on both.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.arena import memory_fraction
from f5py.compute.gpu.buffers import TransferredArrays, copy_to_device
from f5py.compute.gpu.device import GpuDevice, GpuFailure, guarded
from f5py.compute.gpu.part_pool import GpuPartPool
from f5py.compute.gpu.sources import functions
from f5py.core.offsets import rounds_of_reads
from f5py.mapping.batch import MappingBatch
from f5py.mapping.index.seeds import SeedSums, collecting, take_anchors
from f5py.mapping.mem.mem_seeds import MemSearch, anchors_of_found, find_mem_anchors, search_reads
from f5py.mapping.settings import MID_OCC
from f5py.threads.pool import WorkerPool, longest_first

#: Parts of the arena, in each of which a batch can be.
_N_PARTS = 2
#: Bases of a part, at most and at least.
_MOST_BASES, _FEWEST_BASES = 8 << 20, 1 << 13
#: So many bases for each read, match and place of a part; and about what a base takes in all.
_BASES_OF_READ, _BASES_OF_MATCH, _BASES_OF_PLACE, _BYTES_OF_BASE = 32, 4, 4, 36
_MOST_SUM = 2**31 - 1
_THREADS, _SCAN_THREADS, _LANES = 256, 512, 32


class _MemPart(TransferredArrays):
    """Part of the arena, with room for bases, reads, matches and places."""

    def __init__(self, n_bases: int, zero_copy: bool) -> None:
        self.n_bases, self.n_reads = n_bases, n_bases // _BASES_OF_READ
        self.n_mems, self.n_places = n_bases // _BASES_OF_MATCH, n_bases // _BASES_OF_PLACE
        arrays = (
            ("bases", n_bases, np.uint8), ("offsets", self.n_reads + 1, np.int32), ("totals", 2, np.int32),
            ("mems", 4 * self.n_mems, np.int32), ("firsts", self.n_mems, np.int32),
            ("located", self.n_places, np.int32),
        )  # fmt: skip
        n = 2 * (n_bases + self.n_reads)
        scratch = (
            ("patterns", n, np.uint8), ("lengths", n, np.int32), ("rows", 2 * n, np.int32),
            ("kept", n // _LANES + 1, np.uint32), ("counts", n // _LANES + 1, np.int32),
        )  # fmt: skip
        super().__init__(arrays, zero_copy, scratch=scratch)


class GpuMems(GpuPartPool[_MemPart]):
    """Backend that fills the anchors of a batch from maximal exact matches.

    It is checked with `bases` of the reference. `max_bases` is -K.
    """

    def __init__(
        self,
        device: GpuDevice,
        search: MemSearch,
        bases: NDArray[np.uint8],
        pool: WorkerPool,
        max_bases: int = _MOST_BASES,
        mem_frac: float | None = None,
        zero_copy: bool | None = None,
    ) -> None:
        super().__init__(device, goes_on="the search for matches", room_for="the FM-index")
        self.n_searched = 0  # bases searched by the kernels
        self._search, self._pool = search, pool
        self._functions = self._started(lambda: functions(device.number, (), "matches"))
        self._index = self._started(lambda: _uploaded(search))
        zero_copy = device.integrated if zero_copy is None else zero_copy
        index = search.fm_index
        used = index.blocks.nbytes + index.places.nbytes + index.table.nbytes
        fraction = memory_fraction(mem_frac, device.integrated)
        room = int((device.free_memory * fraction - used) / _N_PARTS / _BYTES_OF_BASE)
        n = min(room, _MOST_BASES, max(max_bases, _FEWEST_BASES))
        n = self._take_parts(_N_PARTS, n, _FEWEST_BASES, lambda size: _MemPart(size, zero_copy))
        self._note_size(n, "bases", "Searching")
        self._checked(lambda: self._check(bases))

    def _check(self, bases: NDArray[np.uint8]) -> None:
        """Compare the anchors of made-up reads with those of the CPU threads."""
        found, expected = trial_reads(bases), trial_reads(bases)
        find_mem_anchors(expected, self._search, self._pool)
        self._compute(found)
        self.n_searched = 0
        assert found.anchors is not None
        assert expected.anchors is not None
        if not found.anchors.equals(expected.anchors):
            raise self._differs("finds other matches than the CPU")

    def compute(self, batch: MappingBatch) -> None:
        """Fill the anchors of a batch; thread-safe."""
        if not self._broken:
            try:
                self._compute(batch)
            except GpuFailure as problem:
                self.give_up(problem)
            else:
                return
        find_mem_anchors(batch, self._search, self._pool)

    def _compute(self, batch: MappingBatch) -> None:
        """Fill the anchors of a batch. Raises `GpuFailure`."""
        sums = SeedSums.zero(len(batch))
        results: list[Any] = []
        with self._part() as part:
            for first, end in rounds_of_reads(batch.offsets, part.n_bases, part.n_reads):
                reads = np.arange(first, end)
                found = guarded(self.device.number, self._find, part, batch, first, end) if end > first else None
                if found is None:
                    search_reads(batch, np.arange(first, max(end, first + 1)), self._search, self._pool, sums, results)
                else:
                    self._take(batch, reads, found, sums, results)
        take_anchors(batch, results, sums)

    def _find(
        self, part: _MemPart, batch: MappingBatch, first: int, end: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None:
        """Find the matches of a round's reads, offsets of their places, and these; None if they do not fit."""
        search, run = self._search, self._functions
        offsets = batch.offsets[first : end + 1] - batch.offsets[first]
        n_reads, n_bases = end - first, int(offsets[-1])
        n = 2 * (n_bases + n_reads)
        n_words = -(-n // _LANES)
        part.put("bases", batch.codes[batch.offsets[first] : batch.offsets[end]])
        part.put("offsets", offsets)
        blocks, ends, places, table, first_rows = self._index
        with part.stream:
            grid = (-(-n // _THREADS), _THREADS)
            part.launch(run["mems_pack"], *grid, "bases", "offsets", n_reads, n, "patterns")
            part.launch(
                run["mems_find"], *grid, "patterns", n, search.fm_index.k, blocks, ends, len(ends), *first_rows, table,
                "lengths", "rows",
            )  # fmt: skip
            part.launch(run["mems_mark"], *grid, "lengths", "rows", n, search.min_length, "kept", "counts")
            part.launch(run["mems_scan"], 1, _SCAN_THREADS, "counts", n_words, 0, "totals")
            part.launch(run["mems_compact"], *grid, "lengths", "rows", n, "kept", "counts", part.n_mems, "mems")
        part.download("totals", 1)
        part.wait()
        n_mems = int(part.host["totals"][0])
        if n_mems > part.n_mems:
            return None
        n_places = 0
        if n_mems > 0:
            limit = int(search.parameters.integers[MID_OCC])
            if n_mems * limit > _MOST_SUM:
                return None
            with part.stream:
                n_blocks = -(-n_mems // _THREADS)
                part.launch(run["mems_rows"], n_blocks, _THREADS, "mems", n_mems, limit, "firsts")
                part.launch(run["mems_scan"], 1, _SCAN_THREADS, "firsts", n_mems, 1, "totals")
            part.download("totals", 2)
            part.wait()
            n_places = int(part.host["totals"][1])
            if n_places > part.n_places:
                return None
        if n_places > 0:
            with part.stream:
                part.launch(
                    run["mems_locate"], -(-n_places // _THREADS), _THREADS, "mems", n_mems, "firsts", n_places, places,
                    "located",
                )  # fmt: skip
        for name, count in (("mems", 4 * n_mems), ("firsts", n_mems), ("located", n_places)):
            part.download(name, count)
        part.wait()
        with self._lock:
            self.n_searched += n_bases
        mems = part.host["mems"][: 4 * n_mems].reshape(n_mems, 4)
        return mems, part.host["firsts"][:n_mems], part.host["located"][:n_places]

    def _take(
        self, batch: MappingBatch, reads: NDArray[np.int64], found: tuple[NDArray[np.int32], ...],
        sums: SeedSums, results: list[Any],
    ) -> None:  # fmt: skip
        """Make anchors from a round's matches."""
        order = reads[longest_first(batch.lengths[reads], np.ones(len(reads), np.bool_))]
        self._pool.run(
            collecting(anchors_of_found, results), order, batch.offsets, int(reads[0]), self._search.contig_offsets,
            self._search.fm_index.places, *found, self._search.parameters.integers, sums, order=batch.number,
        )  # fmt: skip

    def search_only(self, batch: MappingBatch) -> None:
        """Search reads without making anchors, for a comparison of times."""
        with self._part() as part:
            for first, end in rounds_of_reads(batch.offsets, part.n_bases, part.n_reads):
                if end > first:
                    guarded(self.device.number, self._find, part, batch, first, end)

    def _release(self) -> None:
        self._index = ()
        super()._release()


def _uploaded(search: MemSearch) -> tuple[Any, ...]:
    """Copy the index to the current device: blocks, ends, places, table; and the first rows of the bases."""
    index = search.fm_index
    arrays = copy_to_device(index.blocks, index.ends.astype(np.int32), index.places, index.table)
    return (*arrays, [int(row) for row in index.first_rows])


def trial_reads(bases: NDArray[np.uint8]) -> MappingBatch:
    """Make reads from the reference with some bases changed, the same ones every time."""
    rng = np.random.default_rng(5)
    pieces = []
    for _ in range(12):
        begin = int(rng.integers(0, max(len(bases) - 300, 1)))
        piece = bases[begin : begin + 300].copy()
        piece[rng.integers(0, 25, len(piece)) == 0] = rng.integers(0, 5)
        pieces.append(piece if rng.integers(0, 2) else np.where(piece < 4, 3 - piece, 4)[::-1].astype(np.uint8))
    return MappingBatch.of_codes(pieces)
