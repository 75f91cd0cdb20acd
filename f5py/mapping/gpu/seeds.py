"""Seeds of reads and their sorted anchors on a GPU, with the CPU threads beside it.

The index of the reference is copied to the device once. The reads of a batch are copied in as many rounds as the
arena's part needs. Each round returns the numbers of anchors, then the sorted anchors. Where the order depends on the
CPU's sort, the CPU threads sort them. The CPU threads also find the seeds of rare kinds of reads: with unknown bases,
or with a minimizer that may be frequent. All arithmetic is in integers, so both give the same seeds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.buffers import TransferredArrays, copy_to_device
from f5py.compute.gpu.device import GpuDevice, guarded
from f5py.compute.gpu.part_pool import GpuPartPool, rounds
from f5py.compute.gpu.sources import functions
from f5py.core.offsets import offsets_of, rounds_of_reads
from f5py.mapping.batch import MappingBatch
from f5py.mapping.index.contigs import Contigs
from f5py.mapping.index.reference_index import ReferenceIndex, build_index
from f5py.mapping.index.seeds import SeedSums, find_anchors, seed_some, take_anchors
from f5py.mapping.settings import MAX_MAX_OCC, MID_OCC, OCC_DIST, PRESETS, Q_OCC_FRAC, K, Parameters, W
from f5py.threads.pool import WorkerPool, longest_first, threads_for

#: Parts of the arena, in each of which a batch can be.
_N_PARTS = 2
#: Bases of a part, at most and at least.
_MOST_BASES, _FEWEST_BASES = 12 << 20, 1 << 15
#: So many bases for each read and anchor of a part; and about what a base takes in all.
_BASES_OF_READ, _BASES_OF_ANCHOR, _BYTES_OF_BASE = 32, 8, 32
#: A batch is left to the CPU threads if each of them has fewer bases: it is done before a GPU would be.
_FEW_BASES = 10_000
#: So many anchors are sorted before workers would have come.
_FEW_UNSORTED = 1 << 18
_THREADS, _WARPS = 128, 4
#: Numbers of a read, as in map_seeds.cu.
_N_FOUND = 5


class _SeedPart(TransferredArrays):
    """Part of the arena, with room for bases, reads and anchors."""

    def __init__(self, n_bases: int, zero_copy: bool) -> None:
        self.n_bases, self.n_reads, self.n_anchors = n_bases, n_bases // _BASES_OF_READ, n_bases // _BASES_OF_ANCHOR
        arrays = (
            ("bases", n_bases, np.uint8), ("offsets first_anchors first_used", self.n_reads + 1, np.int32),
            ("chosen has_ties", self.n_reads, np.int32), ("found", _N_FOUND * self.n_reads, np.int32),
            ("x", self.n_anchors, np.uint64), ("y used", self.n_anchors, np.int64),
        )  # fmt: skip
        scratch = (
            ("keys", n_bases, np.uint64), ("listed places", n_bases, np.int32), ("entries", n_bases, np.int64),
            ("other_x", self.n_anchors, np.uint64), ("other_y", self.n_anchors, np.int64),
        )  # fmt: skip
        super().__init__(arrays, zero_copy, scratch=scratch)


class _Index(NamedTuple):
    """The index on the device."""

    directory: Any
    entries: Any
    places: Any
    bits: int  # of an index into the directory

    @classmethod
    def of(cls, index: ReferenceIndex) -> _Index:
        """Copy it to the current device."""
        places = index.places if len(index.places) else np.zeros(1, np.int64)
        directory, entries, places = copy_to_device(index.directory, index.entries, places)
        return cls(directory, entries, places, index.bits)


class GpuSeeds(GpuPartPool[_SeedPart]):
    """Backend that finds the anchors of a batch, with at most `memory` bytes of the device.

    See `f5py.mapping.index.seeds.suits_gpu` for `parameters`.
    """

    def __init__(
        self, device: GpuDevice, index: ReferenceIndex, parameters: Parameters, pool: WorkerPool, memory: int,
        max_bases: int = _MOST_BASES, zero_copy: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(device)
        self.n_found = 0  # reads with anchors found by the kernels
        self._reference, self._parameters, self._pool = index, parameters, pool
        self._functions = self._started(lambda: functions(device.number, (), "seeds"))
        self._index = self._started(lambda: _Index.of(index))
        room = (memory - _size_of(index)) // _N_PARTS // _BYTES_OF_BASE
        most = min(room, _MOST_BASES, max(max_bases, _FEWEST_BASES))
        self._take_parts(_N_PARTS, most, _FEWEST_BASES, lambda size: _SeedPart(size, zero_copy))
        self._checked(self._check, parameters.integers.tobytes() + parameters.floats.tobytes())

    @staticmethod
    def has_room(index: ReferenceIndex, memory: int) -> bool:
        """Return whether the index leaves room for reads in so many bytes."""
        return memory - _size_of(index) >= _N_PARTS * _BYTES_OF_BASE * _FEWEST_BASES

    def _check(self) -> None:
        """Compare the anchors of made-up reads with those of the CPU threads."""
        index, found = trial_reads(self._parameters, self._pool)
        _, expected = trial_reads(self._parameters, self._pool)
        find_anchors(expected, index, self._parameters, self._pool)
        on_device = guarded(self.device.number, _Index.of, index)
        self._find(found, index, on_device)
        self.n_found = 0
        assert found.anchors is not None
        assert expected.anchors is not None
        if not found.anchors.equals(expected.anchors):
            raise self._differs("finds other seeds than the CPU")

    def find(self, batch: MappingBatch) -> None:
        """Fill the anchors of a batch that has codes; thread-safe. Raises `GpuFailure`."""
        if batch.offsets[-1] <= _FEW_BASES * self._pool.n_threads:
            find_anchors(batch, self._reference, self._parameters, self._pool)
        else:
            self._find(batch, self._reference, self._index)

    def _find(self, batch: MappingBatch, reference: ReferenceIndex, index: _Index) -> None:
        from f5py.mapping._sorting_numba import sort_reads

        sums = SeedSums.zero(len(batch))
        is_left, is_unsorted = np.zeros((2, len(batch)), np.bool_)
        results: list[Any] = []
        with self._part() as part:
            for first, end in rounds_of_reads(batch.offsets, part.n_bases, part.n_reads):
                if end == first:
                    is_left[first] = True
                else:
                    self._find_round(part, batch, (first, end), index, sums, (is_left, is_unsorted), results)
        left = np.flatnonzero(is_left)
        seed_some(batch, left, reference, self._parameters, self._pool, sums, results)
        with self._lock:
            self.n_found += len(batch) - len(left)
        take_anchors(batch, results, sums)
        anchors = batch.anchors
        assert anchors is not None
        unsorted = longest_first(np.diff(anchors.offsets), is_unsorted)
        n_unsorted = int(np.diff(anchors.offsets)[unsorted].sum())
        threads_for(self._pool, n_unsorted, _FEW_UNSORTED).run(
            sort_reads, unsorted, anchors.x, anchors.y, anchors.offsets, order=batch.number
        )

    def _find_round(
        self, part: _SeedPart, batch: MappingBatch, some: tuple[int, int], index: _Index, sums: SeedSums,
        marks: tuple[NDArray[np.bool_], NDArray[np.bool_]], results: list[Any],
    ) -> None:  # fmt: skip
        """Find the anchors of some reads; mark those left to the CPU threads, and those left unsorted."""
        (first, end), (is_left, is_unsorted) = some, marks
        number, reads = self.device.number, slice(first, end)
        guarded(number, self._launch_find, part, batch, first, end, index)
        guarded(number, part.wait)
        found = part.host["found"][: _N_FOUND * (end - first)].reshape(end - first, _N_FOUND).astype(np.int64)
        sums.n_seeds[reads], sums.n_anchors[reads], sums.rep_len[reads] = found[:, 1], found[:, 2], found[:, 3]
        sizes = np.maximum(found[:, 1], found[:, 2])
        is_left[reads] = (found[:, 4] != 0) | (sizes > part.n_anchors)
        for chosen in rounds(np.flatnonzero(~is_left[reads]), sizes, part.n_anchors, part.n_reads):
            has_ties = self._place(part, chosen, first, found, index, results, True)
            if has_ties.any():
                is_unsorted[first + chosen[has_ties]] = True
                self._place(part, chosen[has_ties], first, found, index, results, False)

    def _place(
        self, part: _SeedPart, chosen: NDArray[np.int64], first: int, found: NDArray[np.int64], index: _Index,
        results: list[Any], is_sorted: bool,
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Add the anchors of a round's reads to the results; return which have another order than the CPU's."""
        first_anchors, first_used = offsets_of(found[chosen, 2]), offsets_of(found[chosen, 1])
        guarded(self.device.number, self._launch_place, part, chosen, first_anchors, first_used, index, is_sorted)
        guarded(self.device.number, part.wait)
        anchors, used = slice(int(first_anchors[-1])), slice(int(first_used[-1]))
        x, y = part.host["x"][anchors].copy(), part.host["y"][anchors].copy()
        results.append((first + chosen, x, y, part.host["used"][used].copy()))
        return part.host["has_ties"][: len(chosen)] != 0

    def _launch_find(self, part: _SeedPart, batch: MappingBatch, first: int, end: int, index: _Index) -> None:
        """Queue the copies and the kernel that finds the seeds of a round's reads."""
        integers, n = self._parameters.integers, end - first
        part.put("bases", batch.codes[batch.offsets[first] : batch.offsets[end]])
        part.put("offsets", batch.offsets[first : end + 1] - batch.offsets[first])
        with part.stream:
            part.launch(
                self._functions["seeds_find"], -(-n // _WARPS), _THREADS, "bases", "offsets", n,
                *(int(integers[at]) for at in (K, W, MID_OCC)), np.float32(self._parameters.floats[Q_OCC_FRAC]),
                *(int(integers[at]) for at in (OCC_DIST, MAX_MAX_OCC)), index.directory, index.entries, index.bits,
                "keys", "listed", "entries", "places", "found",
            )  # fmt: skip
        part.download("found", _N_FOUND * n)

    def _launch_place(
        self, part: _SeedPart, chosen: NDArray[np.int64], first_anchors: NDArray[np.int64],
        first_used: NDArray[np.int64], index: _Index, is_sorted: bool,
    ) -> None:  # fmt: skip
        """Queue the kernels that write, and may sort, the anchors of a round's reads, and the copies."""
        n = len(chosen)
        part.put("chosen", chosen)
        part.put("first_anchors", first_anchors)
        part.put("first_used", first_used)
        with part.stream:
            part.launch(
                self._functions["seeds_place"], -(-n // _WARPS), _THREADS, "chosen", n, "offsets",
                int(self._parameters.integers[K]), "entries", "places", "found", index.places, "first_anchors",
                "first_used", "x", "y", "used",
            )  # fmt: skip
            if is_sorted:
                part.launch(
                    self._functions["seeds_sort"], n, _THREADS, "first_anchors", "x", "y", "other_x", "other_y",
                    "has_ties",
                )  # fmt: skip
        for name, count in (("x", first_anchors[-1]), ("y", first_anchors[-1]), ("used", first_used[-1])):
            part.download(name, int(count))
        part.download("has_ties", n)

    def _release(self) -> None:
        self._index = None  # type: ignore[assignment]
        super()._release()


def _size_of(index: ReferenceIndex) -> int:
    """Bytes of an index on the device."""
    return index.directory.nbytes + index.entries.nbytes + index.places.nbytes


def trial_reads(parameters: Parameters, pool: WorkerPool) -> tuple[ReferenceIndex, MappingBatch]:
    """Make a reference with repeats and its index, and reads of it with errors; the same ones every time."""
    rng = np.random.default_rng(11)
    k, w = int(parameters.integers[K]), int(parameters.integers[W])
    unit = rng.integers(0, 4, 150).astype(np.uint8)
    # a repeat that is too frequent to be used everywhere, and a part of every second read
    copies = np.tile(unit, min(int(parameters.integers[MID_OCC]) + 5, 40))
    contigs = [np.concatenate([rng.integers(0, 4, 4000).astype(np.uint8), copies]), rng.integers(0, 4, 900)]
    for begin in range(1200, 3000, 300):
        contigs[0][begin : begin + 2 * k] = np.resize([0, 1, begin // 300 % 4], 2 * k)  # neighbours with the same k-mer
    reference, offsets = np.concatenate(contigs).astype(np.uint8), offsets_of([len(one) for one in contigs])
    settings = PRESETS["map-ont"]._replace(k=k, w=w)
    index = build_index(Contigs.of_codes(["a", "b"], reference, offsets), settings, pool)
    pieces = []
    for i in range(10):
        begin = 280 * i
        piece = np.concatenate([reference[begin : begin + 1400], unit[: 75 * (i % 2)], reference[4700:4800]])
        wrong = rng.random(len(piece)) < 0.04
        piece[wrong] = rng.integers(0, 4, wrong.sum())
        piece = piece[rng.random(len(piece)) > 0.03]
        pieces.append((3 - piece)[::-1] if i % 3 == 0 else piece)
    pieces += [reference[100 : 100 + n] for n in (0, k - 1, k, k + w // 2, k + w - 1)]
    pieces[4][20] = 4
    return index, MappingBatch.of_codes(pieces)
