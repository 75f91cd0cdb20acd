"""Base alignment of stretches on a GPU, for the hits that the CPU threads find with it.

What will be aligned is listed before (`f5py.mapping.hits.planned`). The GPU takes the stretches whose cells it has room
for: short ones that no band cuts, a warp each; and, a block each, long ends of reads within their band and long gaps
within one that is narrower than theirs, where the score proves that no better path leaves it. `align_hits` takes its
results where it asks for just these, and aligns all others itself: also what follows from scores that drop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.buffers import TransferredArrays
from f5py.compute.gpu.device import GpuDevice, guarded
from f5py.compute.gpu.parts import PartsOfGpu, rounds
from f5py.compute.gpu.sources import functions
from f5py.core.mapping_batch import MappingBatch
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.mapping.align._pair_alignment_numba import GLOBAL
from f5py.mapping.hits.hits import no_alignments
from f5py.mapping.hits.planned import Stretches
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.settings import E2, MATCH, MAX_MATRIX_CELLS, MISMATCH, Q2, E, Parameters, Q
from f5py.threads.pool import WorkerPool

_N_PARTS = 2
#: Longest stretches, and bytes of all cells of one; those with fewest cells are sooner done where they are needed.
_MOST_BASES, _CELLS_ROOM, _FEWEST_CELLS = 1024, 512 << 10, 2048
_LANES, _THREADS, _WARPS = 32, 128, 4
#: Of a block that aligns within a band: rows of a thread, whose cells are a word, and threads; see map_bands.cu.
_ROWS, _MOST_THREADS = 4, 384
#: Cells on both sides of the diagonal that long gaps are aligned within.
_GAP_BAND = 751
#: What does not fit into so many rounds is sooner done by the CPU threads.
_MOST_ROUNDS = 2
#: Alignments under way in a part, at most and at least, and bytes of each.
_MOST_SLOTS, _FEWEST_SLOTS = 2048, 32
_SLOT = _CELLS_ROOM + 12 * _MOST_BASES + 16 * _MOST_BASES
#: Of a part: bases of all stretches, and room for that many stretches and operations.
_MOST_PACKED, _FEWEST_PACKED = 24 << 20, 1 << 16
_BASES_OF_STRETCH, _BASES_OF_OPERATION, _OPERATIONS = 128, 4, 16
#: Bases of a batch that there is room for: more than it is to have, as reads are not cut; and at most.
_MORE_BASES, _MOST_READ = 1 << 16, 32 << 20
_SCORES = (MATCH, MISMATCH, Q, E, Q2, E2)


class _Part(TransferredArrays):
    """One part of the arena.

    Attributes
    ----------
    n_bases, n_stretches, n_ops, n_slots, n_words, n_read : int
        What there is room for: words of cells where a band is kept to; the last are the bases of a batch.
    """

    def __init__(self, n_bases: int, n_slots: int, n_read: int, zero_copy: bool) -> None:
        self.n_read = n_read
        self.n_bases, self.n_slots, self.n_stretches = n_bases, n_slots, n_bases // _BASES_OF_STRETCH
        self.n_ops = n_bases // _BASES_OF_OPERATION + _OPERATIONS * self.n_stretches
        self.n_words = n_slots * _CELLS_ROOM // _ROWS
        arrays = (
            ("bases", n_bases, np.uint8), ("tasks results", 8 * self.n_stretches, np.int32),
            ("bands", 2 * self.n_stretches, np.int32),
            ("ops", self.n_ops, np.uint32), ("reads", n_read, np.uint8), ("sources", 4 * self.n_stretches, np.int64),
        )  # fmt: skip
        super().__init__(arrays, zero_copy)

    def _add_more(self) -> None:
        import cupy

        self.device["cells"] = cupy.empty(self.n_slots * _CELLS_ROOM, np.uint8)
        self.device["left_behind"] = cupy.empty(self.n_slots * 3 * _MOST_BASES, np.int32)
        self.device["best"] = cupy.empty(self.n_slots * 2 * _MOST_BASES, np.int64)


class GpuAlignments(PartsOfGpu[_Part]):
    """Aligns stretches.

    Parameters
    ----------
    memory : int
        Bytes that may be taken.
    device, max_bases, zero_copy
        As for `f5py.compute.gpu.mapping.mems.GpuMems`.

    Attributes
    ----------
    n_aligned : int
        Stretches that the kernel has aligned.

    Raises
    ------
    GpuUnavailableError
        There is too little memory, or the kernel does not compile or does not work.
    """

    def __init__(
        self, device: GpuDevice, parameters: Parameters, memory: int, max_bases: int, zero_copy: bool = False
    ) -> None:
        super().__init__(device)
        self.n_aligned = 0
        self._scores = [int(parameters.integers[at]) for at in _SCORES]
        packed = min(_MOST_PACKED, max(2 * max_bases, _FEWEST_PACKED))
        n_slots = int(min(_MOST_SLOTS, memory // _N_PARTS // _SLOT, max(packed // _BASES_OF_STRETCH, _FEWEST_SLOTS)))
        n_read = min(max_bases + max_bases // 4 + _MORE_BASES, _MOST_READ)
        self._functions = self._started(lambda: functions(device.number, (), "alignments"))
        self._reference: tuple[NDArray[np.uint8], Any] | None = None
        fewest = max(n_slots, _FEWEST_SLOTS)  # of this size only
        self._take_parts(_N_PARTS, n_slots, fewest, lambda size: _Part(packed, size, n_read, zero_copy))

    @property
    def n_bytes(self) -> int:
        """Bytes of the device's memory that are taken, about."""
        each = (
            _SLOT * part.n_slots + part.n_bases + part.n_read + 104 * part.n_stretches + 4 * part.n_ops
            for part in self._parts
        )
        return sum(each)

    def keep_reference(self, bases: NDArray[np.uint8]) -> None:
        """Copy the bases of a reference to the device, so that its stretches need not be packed.

        Raises
        ------
        GpuFailure
        """

        def copy() -> Any:
            import cupy

            copied = cupy.asarray(bases)
            cupy.cuda.get_current_stream().synchronize()
            return copied

        self._reference = bases, guarded(self.device.number, copy)

    def check(self, parameters: Parameters, pool: WorkerPool) -> None:
        """Align made-up stretches as well as the CPU threads do: no driver or device may change a number.

        Raises
        ------
        GpuFailure
        GpuUnavailableError
            The results differ.
        """
        stretches = made_stretches(pool)
        self.keep_reference(stretches.index.bases)
        there = self.align(stretches)
        each = (aligned_here(stretches, made, parameters) for made in (there, no_alignments(1)))
        for found, expected in zip(*each, strict=True):
            n_ops = expected[1]
            if found[1:] != expected[1:] or not np.array_equal(found[0][:n_ops], expected[0][:n_ops]):
                raise self._differs("aligns in another way than the CPU")
        self.n_aligned = 0

    def align(self, stretches: Stretches) -> tuple[NDArray, ...]:
        """Align those stretches that suit the GPU; return what `align_hits` takes.

        Raises
        ------
        GpuFailure
        """
        number = self.device.number
        all_ops: list[NDArray[np.uint32]] = []
        n_ops = 0
        with self._part() as part:
            n_read = int(stretches.batch.offsets[-1])
            reference = None
            if self._reference is not None and self._reference[0] is stretches.index.bases and n_read <= part.n_read:
                reference = self._reference[1]
                guarded(number, part.put, "reads", stretches.batch.codes[:n_read])
            for some, threads in _rounds_of(stretches.keys, part):
                lengths = stretches.keys[some][:, [1, 3]]
                places = offsets_of(lengths.sum(axis=1))
                op_places = offsets_of(_room_of_ops(lengths))
                if reference is None:
                    stretches.pack(some, places, part.host["bases"])
                else:
                    _fill_sources(part.host["sources"], stretches, some)
                guarded(number, self._launch, part, stretches.keys[some], places, op_places, threads, reference)
                guarded(number, part.wait)
                self._take(stretches, some, part, op_places[:-1] + n_ops)
                if threads:
                    self._drop_unproven(stretches, some)
                all_ops.append(part.host["ops"][: op_places[-1]].copy())
                n_ops += int(op_places[-1])
                self.n_aligned += len(some)
        ops = all_ops[0] if len(all_ops) == 1 else np.concatenate([np.empty(0, np.uint32), *all_ops])
        return stretches.keys, stretches.results, ops, stretches.offsets

    def _launch(
        self, part: _Part, keys: NDArray[np.int64], places: NDArray[np.int64], op_places: NDArray[np.int64],
        threads: int, reference: Any,
    ) -> None:  # fmt: skip
        """Queue the copies and the kernels of a round; without a reference on the device the bases have been packed."""
        n = len(keys)
        tasks = part.host["tasks"][: 8 * n].reshape(n, 8)
        tasks[:, 0], tasks[:, 1] = places[:-1], keys[:, 1]
        tasks[:, 2], tasks[:, 3] = places[:-1] + keys[:, 1], keys[:, 3]
        tasks[:, 4], tasks[:, 5] = keys[:, 4], keys[:, 6]
        tasks[:, 6], tasks[:, 7] = op_places[:-1], np.diff(op_places)
        part.upload("tasks", 8 * n)
        if reference is None:
            part.upload("bases", int(places[-1]))
        else:
            part.upload("sources", 4 * n)
        if threads:
            bands = part.host["bands"][: 2 * n].reshape(n, 2)
            bands[:, 0], bands[:, 1] = _widths(keys), offsets_of(_words_of(keys, threads))[:-1]
            part.upload("bands", 2 * n)
        n_slots = min(n, part.n_slots)
        with part.stream:
            if reference is not None:
                part.launch(
                    self._functions["align_gather"], -(-n // _WARPS), _THREADS, reference, "reads", "sources", "tasks",
                    n, "bases",
                )  # fmt: skip
            if threads:
                part.launch(
                    self._functions["align_bands"], n, threads, "bases", "tasks", "bands", n, *self._scores, "cells",
                    "results", "ops",
                )  # fmt: skip
            else:
                part.launch(
                    self._functions["align_pairs"], -(-n_slots // _WARPS), _THREADS, "bases", "tasks", n, n_slots,
                    *self._scores, "cells", _CELLS_ROOM, "left_behind", _MOST_BASES, "best", "results", "ops",
                )  # fmt: skip
        part.download("results", 8 * n)
        part.download("ops", int(op_places[-1]))

    def _release(self) -> None:
        self._reference = None
        super()._release()

    def _take(self, stretches: Stretches, rows: NDArray[np.int64], part: _Part, op_places: NDArray[np.int64]) -> None:
        """Fill the results of stretches."""
        found = part.host["results"][: 8 * len(rows)].reshape(len(rows), 8)
        stretches.results[rows, :6] = found[:, :6]
        stretches.results[rows, 6] = op_places

    def _drop_unproven(self, stretches: Stretches, rows: NDArray[np.int64]) -> None:
        """Drop the results of gaps that may have a better path outside of the band that they were aligned within.

        See ``_most_beyond`` in `f5py.mapping.align._pair_alignment_numba`.
        """
        match, _, q, e, q2, e2 = self._scores
        rows = rows[_widths(stretches.keys[rows]) < stretches.keys[rows, 5]]
        keys = stretches.keys[rows]
        n, m, there = keys[:, 1], keys[:, 3], _widths(keys) + 1
        most = []
        for longer, shorter in ((n, m), (m, n)):
            back = there - (longer - shorter)
            gaps = np.minimum(q + e * there, q2 + e2 * there) + np.minimum(q + e * back, q2 + e2 * back)
            most.append(match * (longer - there) - gaps)
        stretches.results[rows[np.maximum(*most) >= stretches.results[rows, 0]], 5] = -1


def _rounds_of(keys: NDArray[np.int64], part: _Part) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Rows of the stretches that the GPU aligns, round by round, those with most cells first.

    With them goes the number of threads that align one within its band, 0 if a warp aligns a whole one.
    """
    n, m, kind, band = keys[:, 1], keys[:, 3], keys[:, 4], keys[:, 5]
    cells = -(-n // _LANES) * _LANES * (m + _LANES)
    longest, shortest = np.maximum(n, m), np.minimum(n, m)
    is_enough = (cells >= _FEWEST_CELLS) & (shortest > 0)
    is_whole = is_enough & (cells <= _CELLS_ROOM) & (longest <= np.minimum(band, _MOST_BASES))
    rows = np.flatnonzero(is_whole)
    rows = rows[np.argsort(-cells[rows], kind="stable")]
    sizes = n + m
    for some in rounds(rows, sizes, part.n_bases, part.n_stretches):
        yield some, 0

    widths = _widths(keys)
    at_once = np.minimum(shortest, widths + 1)
    fits = (at_once <= _ROWS * _MOST_THREADS) & (sizes <= part.n_bases) & (n * m <= MAX_MATRIX_CELLS)
    fits &= (kind != GLOBAL) | (np.abs(n - m) <= widths)
    rows = np.flatnonzero(is_enough & ~is_whole & fits)
    if not len(rows):
        return
    threads = int(-(-at_once[rows].max() // (_ROWS * _LANES)) * _LANES)
    words = _words_of(keys, threads)
    rows = rows[words[rows] <= part.n_words]
    rows = rows[np.argsort(-words[rows], kind="stable")]
    rows = rows[np.cumsum(words[rows]) <= _MOST_ROUNDS * part.n_words]
    for many in rounds(rows, sizes, part.n_bases, part.n_stretches):
        for some in rounds(many, words, part.n_words, part.n_stretches):
            yield some, threads


def _widths(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells on both sides of the diagonal that stretches are aligned within."""
    return np.where(keys[:, 4] == GLOBAL, np.minimum(keys[:, 5], _GAP_BAND), keys[:, 5])


def _words_of(keys: NDArray[np.int64], threads: int) -> NDArray[np.int64]:
    """Words of cells of stretches that so many threads align within a band, and of what fills lines of memory up."""
    n, m = keys[:, 1], keys[:, 3]
    n_diagonals = np.minimum(n + m - 1, 2 * np.minimum(n, m) + _widths(keys) + 2)  # the band ends with the shorter one
    return -(-n_diagonals * np.minimum(threads, -(-n // _ROWS)) // _LANES) * _LANES


def _fill_sources(sources: NDArray[np.int64], stretches: Stretches, rows: NDArray[np.int64]) -> None:
    """Fill where the bases of stretches are; see map_align.cu."""
    table = sources[: 4 * len(rows)].reshape(len(rows), 4)
    reads, offsets = stretches.read_of[rows], stretches.batch.offsets
    table[:, 0], table[:, 3] = stretches.keys[rows, 0], stretches.keys[rows, 2]
    table[:, 1], table[:, 2] = offsets[reads], np.diff(offsets)[reads]


def made_stretches(pool: WorkerPool) -> Stretches:
    """Stretches of a read with errors, the same ones every time."""
    from f5py.mapping.align._pair_alignment_numba import EXTEND, EXTEND_BACKWARDS

    rng = np.random.default_rng(7)
    reference = rng.integers(0, 4, 1200).astype(np.uint8)
    reference[500:700] = np.tile(reference[500:520], 10)
    kept = np.delete(reference, rng.integers(0, 1200, 90))
    read = np.insert(kept, rng.integers(0, len(kept), 90), rng.integers(0, 4, 90))
    read[rng.integers(0, len(read), 60)] = rng.integers(0, 5, 60)
    read = read.astype(np.uint8)
    n, nothing, places = len(read), np.empty(0, np.uint8), np.array([0, len(read)])
    batch = MappingBatch(Names.of(["check"]), nothing, places, nothing, nothing, np.zeros(2, np.int64), -1, codes=read)
    index = ReferenceIndex(
        ["check"], reference, np.array([0, 1200]), np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int32),
        15, 10, False,
    )  # fmt: skip
    keys = np.array(
        [
            [0, 90, 0, 95, EXTEND_BACKWARDS, 751, 400], [90, 210, 95, 200, GLOBAL, 30001, -1],
            [300, 260, 300, 250, GLOBAL, 30001, -1], [560, 140, 560, 70, GLOBAL, 30001, -1],
            [700, 300, 690, 310, EXTEND, 751, 400], [900, 300, n + 20, 280, EXTEND, 751, 50],
            [200, 640, 200, 630, EXTEND_BACKWARDS, 301, 400], [500, 590, 505, 600, EXTEND, 301, 400],
            [500, 600, n + 10, 600, EXTEND, 301, 50],
        ],
        np.int64,
    )  # fmt: skip
    return Stretches(batch, index, pool, keys, np.array([0, len(keys)]))


def aligned_here(stretches: Stretches, made: tuple[NDArray, ...], parameters: Parameters) -> list[tuple]:
    """Results of `align_pair` for stretches of one read, in this thread; `made` is what `align_hits` takes."""
    from f5py.mapping.align._pair_alignment_numba import Made, Stretch, align_pair, new_room

    reference, read, room = stretches.index.bases, strands_of_one(stretches), new_room()
    keys, results, ops, offsets = made
    there = Made(keys, results, ops, offsets, np.array([0, len(keys)]))
    return [
        align_pair(reference, read, Stretch(*key), parameters.integers, np.empty(4, np.int64), 0, there, room)
        for key in stretches.keys.tolist()
    ]


def strands_of_one(stretches: Stretches) -> NDArray[np.uint8]:
    """Both strands of the only read."""
    codes = stretches.batch.codes
    return np.concatenate([codes, np.where(codes < 4, 3 - codes, 4)[::-1]]).astype(np.uint8)


def _room_of_ops(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Room for the operations of stretches; those with more are aligned by the CPU threads."""
    return lengths.sum(axis=1) // _BASES_OF_OPERATION + _OPERATIONS
