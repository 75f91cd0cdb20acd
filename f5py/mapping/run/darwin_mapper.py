"""Mapping, and overlaps of reads, as Darwin does them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.device import DeviceBackend, may_use_gpus, open_device, open_gpus
from f5py.compute.gpu.placement import Backend
from f5py.compute.gpu.selection import AutoGpuScheduler
from f5py.mapping.batch import Anchors, MappingBatch
from f5py.mapping.darwin.darwin_hits import best_of_pairs, best_of_reads, hits_of, is_good
from f5py.mapping.darwin.darwin_settings import darwin_integers
from f5py.mapping.darwin.dsoft import find_candidates_of, strands_of
from f5py.mapping.darwin.extensions import READ, Extensions, Targets
from f5py.mapping.darwin.gact import extend_all
from f5py.mapping.index.reference_index import ReferenceIndex, codes_of
from f5py.mapping.settings import MapSettings, Parameters, parameters
from f5py.options.shared import GpuOptions, device_numbers
from f5py.threads.pool import WorkerPool


class CpuTiles:
    """Backend that aligns in tiles on the CPU threads.

    Attributes
    ----------
    seconds : float
        Seconds of work for each thread.
    """

    def __init__(self, targets: Targets, integers: NDArray[np.int64], pool: WorkerPool) -> None:
        self.seconds = 0.0
        self._targets, self._integers, self._pool = targets, integers, pool

    def compute(self, extensions: Extensions) -> None:
        """See `Backend.compute`."""
        self.seconds += extend_all(extensions, self._targets, self._integers, self._pool) / self._pool.n_threads

    def close(self) -> None:
        """Nothing: the pool belongs to the caller."""


@dataclass
class DarwinMapper:
    """Mapper of reads by D-SOFT and GACT."""

    index: ReferenceIndex  # of `f5py.mapping.index.reference_index.index_kmers`
    targets: Targets  # its contigs
    parameters: Parameters  # for the judgement of hits
    integers: NDArray[np.int64]  # see `f5py.mapping.darwin.darwin_settings.darwin_integers`
    pool: WorkerPool
    tiles: Backend  # where candidates are extended
    before_stage: Callable[[str], object] = lambda stage: None  # called with the name of a stage before it begins

    @classmethod
    def of(
        cls,
        index: ReferenceIndex,
        settings: MapSettings,
        pool: WorkerPool,
        before_stage: Callable[[str], object] = lambda stage: None,
    ) -> DarwinMapper:
        """Make the mapper with these settings, on the CPU threads."""
        s = settings
        assert s.darwin is not None
        scores = (s.match, -s.mismatch, -(s.q + s.e), -s.e)
        integers = darwin_integers(s.darwin, s.k, scores, index.n_bases)
        targets = Targets(index.bases.codes(0, index.n_bases), index.offsets)
        return cls(index, targets, parameters(s, 0), integers, pool, CpuTiles(targets, integers, pool), before_stage)

    def use_gpu(self, options: GpuOptions, max_bases: int) -> None:
        """Use GPUs if allowed and present; with `--gpu auto` once the gain exceeds their start-up time."""
        cpu = self.tiles
        assert isinstance(cpu, CpuTiles)
        if not may_use_gpus(options.gpu_use):
            return

        def open_one(number: int) -> DeviceBackend:
            from f5py.mapping.gpu.tiles import GpuTiles

            return GpuTiles(
                open_device(number), self.targets, self.integers, self.pool, max_bases, options.cuda_mem_frac
            )  # fmt: skip

        self.tiles = AutoGpuScheduler(
            cpu, open_gpus(device_numbers(options.cuda_dev_id), open_one), alone=options.gpu_use == "on",
            size_of=lambda extensions: len(extensions.table), verb="aligned", seconds=lambda: cpu.seconds,
        )  # fmt: skip

    def map(self, batch: MappingBatch) -> None:
        """Fill the hits of a batch; thread-safe."""
        batch.codes = codes_of(batch.letters)
        extensions = self._extended(batch, np.full(len(batch), -1, np.int64))
        found = extensions.with_paths(best_of_reads(extensions, self.integers))
        self.tiles.compute(found)
        batch.hits = hits_of(found, self.targets, self.parameters)
        batch.anchors = _no_anchors(len(batch))

    def run_of_pairs(self, batch: MappingBatch, first: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Run a batch of targets against all others; return the best run of each pair.

        A run is a candidate with a target as its read, and the result. The batch begins with target `first`.
        """
        extensions = self._extended(batch, np.arange(first, first + len(batch)))
        good = np.flatnonzero(is_good(extensions.results, self.integers))
        table, results = extensions.table[good], extensions.results[good]
        table[:, READ] += first
        chosen = best_of_pairs(table, results)
        return table[chosen], results[chosen]

    def write_pairs(self, batch: MappingBatch, table: NDArray[np.int64], results: NDArray[np.int64]) -> None:
        """Fill the hits of a batch of targets, which has codes, with chosen runs in the order of reads."""
        strands = strands_of(batch.codes, batch.offsets)
        extensions = Extensions.of(strands, batch.offsets, table, batch.number, batch.share_of_input)
        extensions.results = results
        found = extensions.with_paths(np.arange(len(table)))
        self.tiles.compute(found)
        batch.hits = hits_of(found, self.targets, None)
        batch.anchors = _no_anchors(len(batch))

    def _extended(self, batch: MappingBatch, owns: NDArray[np.int64]) -> Extensions:
        """Find and extend all candidates of reads."""
        self.before_stage("candidates")
        strands = strands_of(batch.codes, batch.offsets)
        table = find_candidates_of(strands, batch.offsets, owns, self.index, self.integers, self.pool, batch.number)
        extensions = Extensions.of(strands, batch.offsets, table, batch.number, batch.share_of_input)
        self.before_stage("tiles")
        self.tiles.compute(extensions)
        return extensions

    def close(self) -> None:
        """Close the GPUs."""
        self.tiles.close()


def _no_anchors(n: int) -> Anchors:
    """Make the anchors of reads without any."""
    nothing, zeros, scores = np.empty(0, np.int64), np.zeros(n + 1, np.int64), np.empty(0, np.int32)
    return Anchors(np.empty(0, np.uint64), nothing, zeros, nothing, zeros, zeros[:-1], scores, scores)
