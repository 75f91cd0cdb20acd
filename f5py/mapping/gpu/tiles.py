"""Alignments in tiles on a GPU: a warp extends a candidate from its first tile to both ends.

The candidates of a batch go to the GPU in rounds for which there is room, those with most work first. A batch with
more bases than there is room for, or with hardly any candidates, is left to the CPU threads. All arithmetic is in
integers, so GPU and CPU give the same result.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.arena import memory_fraction
from f5py.compute.gpu.buffers import TransferredArrays, copy_to_device
from f5py.compute.gpu.device import GpuDevice, GpuFailure, GpuUnavailableError, guarded
from f5py.compute.gpu.part_pool import GpuPartPool, rounds
from f5py.compute.gpu.sources import functions
from f5py.core.offsets import offsets_of
from f5py.mapping.darwin import darwin_settings as setting
from f5py.mapping.darwin import extensions as column
from f5py.mapping.darwin.extensions import N_RESULT, Extensions, Targets
from f5py.mapping.darwin.gact import extend_all
from f5py.mapping.index.seeds import copy_to_places
from f5py.threads.pool import WorkerPool

#: Parts of the arena, in each of which a batch can be.
_N_PARTS = 2
#: Candidates of a part, at most and at least.
_MOST_CANDIDATES, _FEWEST_CANDIDATES = 8192, 256
#: A batch is left to the CPU threads if each of them has no more candidates than this.
_FEW_CANDIDATES = 16
_WARPS, _LANES, _STEPS = 4, 32, 8
#: 32-bit words of a candidate's cells, as in gact.cu.
_CELL_WORDS = -(-(setting.TILE_BASES + _LANES - 1) // _STEPS) * setting.TILE_BASES
#: Numbers of a candidate, and bytes of it with its cells and results.
_N_NUMBERS = 8
_CANDIDATE = 8 * _N_NUMBERS + 4 * N_RESULT + 4 * _CELL_WORDS
#: Bytes of paths for each base of a batch, and at least.
_PATHS_OF_BASE, _FEWEST_PATHS = 2, 1 << 20
#: A batch may have so many bases more than it is to have, as reads are not cut, and a quarter.
_MORE_BASES = 1 << 16
#: Longest read or target of which columns are counted in 32 bits.
_MOST_LENGTH = 1 << 29


class _Targets(NamedTuple):
    """Targets on the device, and their offsets."""

    bases: Any
    offsets: NDArray[np.int64]


class _TilePart(TransferredArrays):
    """Part of the arena, with room for candidates, bases and paths."""

    def __init__(self, n_candidates: int, n_bases: int, zero_copy: bool) -> None:
        self.n_candidates, self.n_bases = n_candidates, n_bases
        self.n_path_bytes = max(_PATHS_OF_BASE * n_bases, _FEWEST_PATHS)
        arrays = (
            ("strands", 2 * n_bases, np.uint8), ("candidates", _N_NUMBERS * n_candidates, np.int64),
            ("results", N_RESULT * n_candidates, np.int32), ("paths", self.n_path_bytes, np.uint8),
        )  # fmt: skip
        super().__init__(arrays, zero_copy, scratch=[("cells", n_candidates * _CELL_WORDS, np.uint32)])


class GpuTiles(GpuPartPool[_TilePart]):
    """Backend that extends the candidates of a batch against the targets of an index."""

    def __init__(
        self,
        device: GpuDevice,
        targets: Targets,
        integers: NDArray[np.int64],
        pool: WorkerPool,
        max_bases: int,
        mem_frac: float | None = None,
        zero_copy: bool | None = None,
    ) -> None:
        super().__init__(device)
        self.n_extended = 0  # candidates extended by the kernel
        self._all, self._integers, self._pool = targets, integers, pool
        if np.diff(targets.offsets).max(initial=0) >= _MOST_LENGTH:
            raise GpuUnavailableError(f"a sequence of the reference has {_MOST_LENGTH} bases or more")
        self._started(self._start)
        zero_copy = device.integrated if zero_copy is None else zero_copy
        n_bases = max_bases + max_bases // 4 + _MORE_BASES
        memory = int(device.free_memory * memory_fraction(mem_frac, device.integrated) / _N_PARTS)
        room = (memory - (2 + _PATHS_OF_BASE) * n_bases) // _CANDIDATE
        n = self._take_parts(
            _N_PARTS, min(room, _MOST_CANDIDATES), _FEWEST_CANDIDATES, lambda size: _TilePart(size, n_bases, zero_copy)
        )
        self._note_size(n, "candidates")
        self._checked(self._check)

    def _start(self) -> None:
        self._function = functions(self.device.number, (), "tiles")["gact_extend"]
        self._targets = _Targets(copy_to_device(self._all.bases)[0], self._all.offsets)

    def _check(self) -> None:
        """Compare the alignments of made-up candidates with those of the CPU threads."""
        expected, few = trial_extensions()
        extend_all(expected, few, self._integers, self._pool)
        paths = expected.with_paths(np.arange(len(expected.table)))
        extend_all(paths, few, self._integers, self._pool)
        found, _ = trial_extensions()
        found = Extensions(
            found.strands, found.offsets, found.table, paths.results.copy(), np.empty_like(paths.ops), paths.op_offsets
        )
        targets = _Targets(guarded(self.device.number, copy_to_device, few.bases)[0], few.offsets)
        self._extend(found, np.arange(len(found.table)), targets)
        self.n_extended = 0
        if not (np.array_equal(found.results, expected.results) and np.array_equal(found.ops, paths.ops)):
            raise self._differs("aligns tiles in another way than the CPU")

    def compute(self, extensions: Extensions) -> None:
        """Fill the results and paths of a batch; thread-safe."""
        e = extensions
        part = self._parts[0] if self._parts else None
        lengths = np.diff(e.offsets)
        fits = part is not None and e.offsets[-1] <= part.n_bases and lengths.max(initial=0) < _MOST_LENGTH
        sizes = np.diff(e.op_offsets)
        if self._broken or not fits or len(e.table) <= _FEW_CANDIDATES * self._pool.n_threads:
            extend_all(e, self._all, self._integers, self._pool)
            return
        assert part is not None
        order = np.argsort(-e.work(np.diff(self._all.offsets)), kind="stable")
        is_here = sizes[order] <= part.n_path_bytes
        results = e.results.copy()  # what a failure leaves is not taken
        try:
            self._extend(e, order[is_here], self._targets)
            if not is_here.all():
                extend_all(e, self._all, self._integers, self._pool, only=order[~is_here])
        except GpuFailure as problem:
            self.give_up(problem)
            e.results[:] = results
            extend_all(e, self._all, self._integers, self._pool)

    def _extend(self, e: Extensions, order: NDArray[np.int64], targets: _Targets) -> None:
        """Extend candidates on the GPU."""
        number = self.device.number
        sizes = np.diff(e.op_offsets)
        n_bases = int(e.offsets[-1])
        with self._part() as part:
            part.host["strands"][: 2 * n_bases] = e.strands.reshape(-1)
            guarded(number, part.upload, "strands", 2 * n_bases)
            for chosen in rounds(order, sizes, part.n_path_bytes, part.n_candidates):
                places = offsets_of(sizes[chosen])
                n = len(chosen)
                numbers = part.host["candidates"][: _N_NUMBERS * n].reshape(n, _N_NUMBERS)
                _fill(numbers, e, chosen, targets.offsets, places)
                guarded(number, self._launch, part, targets, n, int(places[-1]))
                guarded(number, part.wait)
                e.results[chosen] = part.host["results"][: N_RESULT * n].reshape(n, N_RESULT)
                if places[-1] > 0:
                    copy_to_places(chosen, sizes, e.op_offsets, part.host["paths"], e.ops)
                with self._lock:
                    self.n_extended += n

    def _launch(self, part: _TilePart, targets: _Targets, n: int, n_path_bytes: int) -> None:
        """Queue the copies and the kernel of a round."""
        s = setting
        places = (s.K, s.OVERLAP, s.FIRST_SCORE, s.AFTER_SEED, s.MATCH, s.MISMATCH, s.GAP_OPEN, s.GAP_EXTEND)
        part.upload("candidates", _N_NUMBERS * n)
        with part.stream:
            part.launch(
                self._function, -(-n // _WARPS), _WARPS * _LANES, "strands", targets.bases, "candidates", 0, n,
                *(int(self._integers[at]) for at in places), "cells", "paths", "results",
            )  # fmt: skip
        part.download("results", N_RESULT * n)
        part.download("paths", n_path_bytes)


def _fill(
    numbers: NDArray[np.int64], e: Extensions, chosen: NDArray[np.int64], target_offsets: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None:  # fmt: skip
    """Fill the numbers of candidates as the kernel takes them; see gact.cu."""
    table = e.table[chosen]
    read, target = table[:, column.READ], table[:, column.TARGET]
    numbers[:, 0] = e.offsets[read] + table[:, column.REVERSE] * e.offsets[-1]
    numbers[:, 1] = np.diff(e.offsets)[read]
    numbers[:, 2] = target_offsets[target]
    numbers[:, 3] = np.diff(target_offsets)[target]
    numbers[:, 4], numbers[:, 5] = table[:, column.PLACE], table[:, column.OFFSET]
    numbers[:, 6] = np.where(np.diff(places) > 0, places[:-1], -1)
    numbers[:, 7] = e.results[chosen, column.LEFT]


def trial_extensions() -> tuple[Extensions, Targets]:
    """Make candidates of reads with errors, some wrong, the same ones every time; and their targets."""
    rng = np.random.default_rng(5)
    n, length = 4, 900
    genome = rng.integers(0, 4, 2000).astype(np.uint8)
    reads, table = [], []
    targets = np.concatenate([genome[:1300], genome[500:]])
    target_offsets = np.array([0, 1300, len(targets)])
    for i in range(n):
        start = 250 * i
        piece = genome[start : start + length].copy()
        wrong = rng.random(len(piece)) < 0.08
        piece[wrong] = rng.integers(0, 5, wrong.sum())
        piece = piece[rng.random(len(piece)) > 0.05]
        reverse = i % 2
        reads.append(np.where(piece < 4, 3 - piece, 4)[::-1].astype(np.uint8) if reverse else piece)
        for at in (0, 40, 430, 700):
            for target, place in ((0, start + at), (1, start + at - 500)):
                if 0 <= place < target_offsets[target + 1] - target_offsets[target] - 28:
                    table.append((i, reverse, target, place, int(at * 0.95)))
    offsets = offsets_of([len(read) for read in reads])
    codes = np.concatenate(reads)
    strands = np.stack([codes, codes])
    for i in range(n):
        own = codes[offsets[i] : offsets[i + 1]][::-1]
        strands[1, offsets[i] : offsets[i + 1]] = np.where(own < 4, 3 - own, 4)
    return Extensions.of(strands, offsets, np.array(table, np.int64)), Targets(targets, target_offsets)
