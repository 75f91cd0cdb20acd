"""Base alignment of stretches on a GPU, for the hits that the CPU threads find with it.

The stretches are listed first (`f5py.mapping.hits.planned`). A warp aligns each short stretch that no band cuts. A
block aligns each long read end within its band, and each long gap within a narrower band, where the score proves that
no better path leaves it. `align_hits` uses these results and aligns all other stretches itself, also those that follow
from scores that drop.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.buffers import TransferredArrays
from f5py.compute.gpu.device import GpuDevice, guarded
from f5py.compute.gpu.part_pool import GpuPartPool, rounds
from f5py.compute.gpu.sources import functions
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.mapping.align._pair_alignment_numba import GLOBAL
from f5py.mapping.batch import MappingBatch
from f5py.mapping.hits.hits import no_alignments
from f5py.mapping.hits.planned import Stretches
from f5py.mapping.index.packed_bases import pack
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.settings import E2, MATCH, MAX_MATRIX_CELLS, MISMATCH, Q2, E, Parameters, Q
from f5py.threads.pool import WorkerPool

#: Threads of a warp.
LANES = 32
#: Numbers of a task and of its result, and of the source of its bases; see map_align.cu.
N_TASK, N_SOURCE = 8, 4
_OPS_PLACE = 6
_N_BUCKETS = 256
_N_PARTS = 2
#: Longest stretches, and bytes of all cells of one; those with fewest cells are sooner done where they are needed.
_MOST_BASES, _CELLS_ROOM, _FEWEST_CELLS = 1024, 512 << 10, 2048
_THREADS, _WARPS = 128, 4
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
#: Bases of the reference that are copied at a time.
_UNPACKED = 1 << 26
_SCORES = (MATCH, MISMATCH, Q, E, Q2, E2)


class _AlignmentPart(TransferredArrays):
    """Part of the arena for a batch: bases, stretches, operations, slots and words of banded cells."""

    def __init__(self, n_bases: int, n_slots: int, n_read: int, zero_copy: bool) -> None:
        self.n_read = n_read
        self.n_bases, self.n_slots, self.n_stretches = n_bases, n_slots, n_bases // _BASES_OF_STRETCH
        self.n_ops = n_bases // _BASES_OF_OPERATION + _OPERATIONS * self.n_stretches
        self.n_words = n_slots * _CELLS_ROOM // _ROWS
        arrays = (
            ("tasks results", N_TASK * self.n_stretches, np.int32), ("bands", 2 * self.n_stretches, np.int32),
            ("sources", N_SOURCE * self.n_stretches, np.int64),
            ("ops", self.n_ops, np.uint32), ("reads", n_read, np.uint8),
        )  # fmt: skip
        scratch = (
            ("bases", n_bases, np.uint8), ("cells", n_slots * _CELLS_ROOM, np.uint8),
            ("left_behind", n_slots * 3 * _MOST_BASES, np.int32), ("best", n_slots * 2 * _MOST_BASES, np.int64),
        )  # fmt: skip
        super().__init__(arrays, zero_copy, scratch=scratch)


class GpuAlignments(GpuPartPool[_AlignmentPart]):
    """Aligner of stretches, with at most `memory` bytes of the device."""

    def __init__(
        self, device: GpuDevice, parameters: Parameters, memory: int, max_bases: int, zero_copy: bool = False
    ) -> None:
        super().__init__(device)
        self.n_aligned = 0  # stretches aligned by the kernels
        self._scores = [int(parameters.integers[at]) for at in _SCORES]
        packed = min(_MOST_PACKED, max(2 * max_bases, _FEWEST_PACKED))
        n_slots = int(min(_MOST_SLOTS, memory // _N_PARTS // _SLOT, max(packed // _BASES_OF_STRETCH, _FEWEST_SLOTS)))
        n_read = min(max_bases + max_bases // 4 + _MORE_BASES, _MOST_READ)
        self._functions = self._started(lambda: functions(device.number, (), "alignments"))
        self._reference: Any = None
        fewest = max(n_slots, _FEWEST_SLOTS)  # of this size only
        self._take_parts(_N_PARTS, n_slots, fewest, lambda size: _AlignmentPart(packed, size, n_read, zero_copy))

    @property
    def n_bytes(self) -> int:
        """Approximate bytes of device memory in use."""
        each = (
            _SLOT * part.n_slots + part.n_bases + part.n_read + 104 * part.n_stretches + 4 * part.n_ops
            for part in self._parts
        )
        return sum(each)

    def keep_reference(self, index: ReferenceIndex) -> None:
        """Copy the bases of a reference to the device. Raises `GpuFailure`."""
        self._reference = guarded(self.device.number, _unpacked, index)

    def check(self, parameters: Parameters, pool: WorkerPool) -> None:
        """Compare alignments of made-up stretches with those of the CPU threads.

        Raises `GpuFailure`, or `GpuUnavailableError` if they differ.
        """
        stretches = trial_stretches(pool)
        self.keep_reference(stretches.index)
        there = self.align(stretches)
        each = (aligned_here(stretches, made, parameters) for made in (there, no_alignments(1)))
        for found, expected in zip(*each, strict=True):
            n_ops = expected[1]
            if found[1:] != expected[1:] or not np.array_equal(found[0][:n_ops], expected[0][:n_ops]):
                raise self._differs("aligns in another way than the CPU")
        self.n_aligned = 0

    def align(self, stretches: Stretches) -> tuple[NDArray, ...]:
        """Align the stretches that suit the GPU, for `align_hits`: none if the reads have no room.

        The reference must have been copied. Raises `GpuFailure`.
        """
        number, results = self.device.number, stretches.results
        all_ops = [np.empty(0, np.uint32)]
        n_ops = 0
        n_read = int(stretches.batch.offsets[-1])
        with self._part() as part:
            if n_read > part.n_read:
                return stretches.keys, results, all_ops[0], stretches.offsets
            guarded(number, part.put, "reads", stretches.batch.codes[:n_read])
            for rows, threads in _rounds_of(stretches.keys, part):
                n = len(rows)
                tasks = part.host["tasks"][: N_TASK * n].reshape(n, N_TASK)
                n_room = _fill_tasks(stretches, rows, tasks, part.host["sources"][: N_SOURCE * n].reshape(n, N_SOURCE))
                if threads:
                    _fill_bands(part.host["bands"], stretches.keys[rows], threads)
                guarded(number, self._launch, part, n, threads, n_room)
                guarded(number, part.wait)
                found = part.host["results"][: N_TASK * n].reshape(n, N_TASK)
                results[rows, :_OPS_PLACE] = found[:, :_OPS_PLACE]
                results[rows, _OPS_PLACE] = tasks[:, _OPS_PLACE] + n_ops
                if threads:
                    self._drop_unproven(stretches, rows)
                all_ops.append(part.host["ops"][:n_room].copy())
                n_ops += n_room
                self.n_aligned += n
        return stretches.keys, results, np.concatenate(all_ops), stretches.offsets

    def _launch(self, part: _AlignmentPart, n: int, threads: int, n_room: int) -> None:
        """Queue the copies and the kernels of a round."""
        part.upload("tasks", N_TASK * n)
        part.upload("sources", N_SOURCE * n)
        if threads:
            part.upload("bands", 2 * n)
        with part.stream:
            part.launch(
                self._functions["align_gather"], -(-n // _WARPS), _THREADS, self._reference, "reads", "sources",
                "tasks", n, "bases",
            )  # fmt: skip
            if threads:
                part.launch(
                    self._functions["align_bands"], n, threads, "bases", "tasks", "bands", n, *self._scores, "cells",
                    "results", "ops",
                )  # fmt: skip
            else:
                n_slots = min(n, part.n_slots)
                part.launch(
                    self._functions["align_pairs"], -(-n_slots // _WARPS), _THREADS, "bases", "tasks", n, n_slots,
                    *self._scores, "cells", _CELLS_ROOM, "left_behind", _MOST_BASES, "best", "results", "ops",
                )  # fmt: skip
        part.download("results", N_TASK * n)
        part.download("ops", n_room)

    def _release(self) -> None:
        self._reference = None
        super()._release()

    def _drop_unproven(self, stretches: Stretches, rows: NDArray[np.int64]) -> None:
        """Drop the results of gaps that may have a better path outside of their band.

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


def _unpacked(index: ReferenceIndex) -> Any:
    """Codes of all contigs on the current device."""
    import cupy

    codes = cupy.empty(index.n_bases, np.uint8)
    for begin in range(0, index.n_bases, _UNPACKED):
        end = min(begin + _UNPACKED, index.n_bases)
        codes[begin:end].set(index.bases.codes(begin, end))
    cupy.cuda.get_current_stream().synchronize()
    return codes


def _rounds_of(keys: NDArray[np.int64], part: _AlignmentPart) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield rounds of rows, and the threads of a block for each; 0 for a warp for each."""
    whole, others = _chosen_whole(keys)
    for some in rounds(whole, keys[:, 1] + keys[:, 3], part.n_bases, part.n_stretches):
        yield some, 0
    yield from _banded(keys, others, part)


def _chosen_whole(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the stretches for warps, roughly those with most cells first, and those for blocks."""
    n, m = keys[:, 1], keys[:, 3]
    cells = -(-n // LANES) * LANES * (m + LANES)
    chosen = (np.minimum(n, m) > 0) & (cells >= _FEWEST_CELLS)
    whole = chosen & (cells <= _CELLS_ROOM) & (np.maximum(n, m) <= np.minimum(keys[:, 5], _MOST_BASES))
    rows = np.flatnonzero(whole)
    bucket = (_CELLS_ROOM - cells[rows]) // (_CELLS_ROOM // _N_BUCKETS + 1)
    return rows[np.argsort(bucket.astype(np.uint8), kind="stable")], np.flatnonzero(chosen & ~whole)


def _fill_tasks(
    stretches: Stretches, rows: NDArray[np.int64], tasks: NDArray[np.int32], sources: NDArray[np.int64]
) -> int:
    """Fill the kernels' tasks for stretches one after another; return the room for operations."""
    r, n, s, m, kind, _, zdrop = stretches.keys[rows].T
    room = (n + m) // _BASES_OF_OPERATION + _OPERATIONS
    begins, ops = offsets_of(n + m), offsets_of(room)
    tasks[:] = np.stack([begins[:-1], n, begins[:-1] + n, m, kind, zdrop, ops[:-1], room], axis=1)
    read, offsets = stretches.read_of[rows], stretches.batch.offsets
    sources[:] = np.stack([r, offsets[read], np.diff(offsets)[read], s], axis=1)
    return int(ops[-1])


def _banded(
    keys: NDArray[np.int64], rows: NDArray[np.int64], part: _AlignmentPart
) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield rounds of the rows to align within their bands, and the threads of a block."""
    keys = keys[rows]
    n, m, kind = keys[:, 1], keys[:, 3], keys[:, 4]
    widths, sizes = _widths(keys), n + m
    at_once = np.minimum(np.minimum(n, m), widths + 1)
    fits = (at_once <= _ROWS * _MOST_THREADS) & (sizes <= part.n_bases) & (n * m <= MAX_MATRIX_CELLS)
    fits &= (kind != GLOBAL) | (np.abs(n - m) <= widths)
    if not fits.any():
        return
    threads = int(-(-at_once[fits].max() // (_ROWS * LANES)) * LANES)
    words = _words_of(keys, threads)
    chosen = np.flatnonzero(fits & (words <= part.n_words))
    chosen = chosen[np.argsort(-words[chosen], kind="stable")]
    chosen = chosen[np.cumsum(words[chosen]) <= _MOST_ROUNDS * part.n_words]
    for many in rounds(chosen, sizes, part.n_bases, part.n_stretches):
        for some in rounds(many, words, part.n_words, part.n_stretches):
            yield rows[some], threads


def _widths(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cells on both sides of the diagonal within which stretches are aligned."""
    return np.where(keys[:, 4] == GLOBAL, np.minimum(keys[:, 5], _GAP_BAND), keys[:, 5])


def _words_of(keys: NDArray[np.int64], threads: int) -> NDArray[np.int64]:
    """Return the words of cells of each banded stretch, in whole cache lines."""
    n, m = keys[:, 1], keys[:, 3]
    n_diagonals = np.minimum(n + m - 1, 2 * np.minimum(n, m) + _widths(keys) + 2)  # the band ends with the shorter one
    return -(-n_diagonals * np.minimum(threads, -(-n // _ROWS)) // LANES) * LANES


def _fill_bands(bands: NDArray[np.int32], keys: NDArray[np.int64], threads: int) -> None:
    """Fill the band widths of stretches, and the offsets of their cells."""
    table = bands[: 2 * len(keys)].reshape(len(keys), 2)
    table[:, 0], table[:, 1] = _widths(keys), offsets_of(_words_of(keys, threads))[:-1]


def trial_stretches(pool: WorkerPool) -> Stretches:
    """Make stretches of a read with errors, the same ones every time."""
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
        ["check"], pack(reference), np.array([0, 1200]), np.zeros(2, np.uint32), np.zeros(1, np.uint64),
        np.empty(0, np.int64), np.empty((0, 2), np.int64), 15, 10, False, np.empty(0, np.int64),
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
    """Align stretches of one read with `align_pair`, in this thread; `made` is as for `align_hits`."""
    from f5py.mapping.align._pair_alignment_numba import KnownAlignments, Stretch, align_pair, new_room

    reference, read, room = stretches.index.bases, strands_of_one(stretches), new_room()
    keys, results, ops, offsets = made
    there = KnownAlignments(keys, results, ops, offsets, np.array([0, len(keys)]))
    return [
        align_pair(reference, read, Stretch(*key), parameters.integers, np.empty(4, np.int64), 0, there, room)
        for key in stretches.keys.tolist()
    ]


def strands_of_one(stretches: Stretches) -> NDArray[np.uint8]:
    """Return both strands of the only read."""
    codes = stretches.batch.codes
    return np.concatenate([codes, np.where(codes < 4, 3 - codes, 4)[::-1]]).astype(np.uint8)
