"""The stage that maps a batch of reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from f5py.compute.gpu.device import open_device
from f5py.compute.gpu.placement import Backend
from f5py.compute.gpu.selection import GpuBackendLike, GpusWhenTheyPay, Work, may_use_gpus, opened
from f5py.core.mapping_batch import MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.hits.hits import find_hits
from f5py.mapping.index.reference_index import ReferenceIndex, codes_of
from f5py.mapping.index.seeds import OverlapTargets, find_anchors
from f5py.mapping.settings import MapSettings, Parameters, parameters
from f5py.options.gpu import GpuOptions, device_numbers
from f5py.threads.pool import WorkerPool


class CpuChaining:
    """Fills the scores and predecessors of a batch's anchors on the CPU threads.

    Attributes
    ----------
    seconds : float
        What the threads have worked, divided by their number.
    """

    def __init__(self, numbers: Parameters, pool: WorkerPool) -> None:
        self.seconds = 0.0
        self._parameters, self._pool = numbers, pool

    def compute(self, batch: MappingBatch) -> None:
        """See `Backend.compute`."""
        self.seconds += score_chains(batch, self._parameters, self._pool) / self._pool.n_threads

    def close(self) -> None:
        """Nothing: the pool belongs to the caller."""


def _n_anchors(batch: MappingBatch) -> int:
    assert batch.anchors is not None
    return len(batch.anchors.x)


@dataclass
class Mapper:
    """What is needed to map reads.

    Attributes
    ----------
    index : ReferenceIndex
    parameters : Parameters
    overlaps : OverlapTargets or None
        Of reads among themselves; their hits are chains without base alignment.
    pool : WorkerPool
    chaining : Backend
        Where chains are scored.
    before_stage : callable of str
        Called with the name of a stage, ``seeds`` or ``hits``, before it begins.
    """

    index: ReferenceIndex
    parameters: Parameters
    overlaps: OverlapTargets | None
    pool: WorkerPool
    chaining: Backend
    before_stage: Callable[[str], object] = lambda stage: None

    @classmethod
    def of(cls, index: ReferenceIndex, settings: MapSettings, pool: WorkerPool) -> Mapper:
        """The mapper with these settings, on the CPU threads."""
        overlaps = OverlapTargets(index) if settings.ava else None
        numbers = parameters(settings, index.mid_occ(settings))
        return cls(index, numbers, overlaps, pool, CpuChaining(numbers, pool))

    def use_gpu(self, options: GpuOptions, max_bases: int) -> None:
        """Score chains on GPUs, if the options allow it: from when that pays, or at once if they say so.

        Parameters
        ----------
        options : GpuOptions
        max_bases : int
            Of a batch.
        """
        cpu = self.chaining
        assert isinstance(cpu, CpuChaining)
        if not may_use_gpus(options.gpu_use):
            return

        def open_one(number: int) -> GpuBackendLike:
            from f5py.compute.gpu.chains import GpuChaining

            return GpuChaining(open_device(number), self.parameters, self.pool, max_bases, options.cuda_mem_frac)

        self.chaining = GpusWhenTheyPay(
            cpu, opened(device_numbers(options.cuda_dev_id), open_one), alone=options.gpu_use == "on",
            work=Work(_n_anchors, "chained", lambda: cpu.seconds),
        )  # fmt: skip

    def map(self, batch: MappingBatch) -> None:
        """Fill the hits of a batch. May be called from several threads."""
        batch.codes = codes_of(batch.letters)
        self.before_stage("seeds")
        find_anchors(batch, self.index, self.parameters, self.pool, self.overlaps)
        self.chaining.compute(batch)
        self.before_stage("hits")
        find_hits(batch, self.index, self.parameters, self.pool, self.overlaps is None)

    def close(self) -> None:
        """Close the GPUs."""
        self.chaining.close()
