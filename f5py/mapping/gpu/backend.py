"""Mapping with a GPU for seeds, chains and base alignment, and CPU threads for the rest."""

from collections.abc import Callable

from f5py.compute.gpu.arena import memory_fraction
from f5py.compute.gpu.device import GpuDevice, GpuFailure, GpuUnavailableError
from f5py.mapping.batch import MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.gpu.chains import GpuChaining
from f5py.mapping.gpu.pair_alignments import GpuAlignments
from f5py.mapping.gpu.seeds import GpuSeeds
from f5py.mapping.hits.hits import align_hits, chain_hits, rank_hits
from f5py.mapping.hits.planned import Stretches
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import OverlapTargets, find_anchors, suits_gpu
from f5py.mapping.settings import AVA, Parameters
from f5py.messages import console
from f5py.threads.pool import WorkerPool


class GpuMapping:
    """Backend that fills the hits of a batch, and its anchors if it has none, with a GPU and CPU threads.

    Raises `GpuUnavailableError` if memory is short, or the kernels do not compile or differ from the CPU.

    Parameters
    ----------
    overlaps : OverlapTargets, optional
        For reads among themselves, with seeds from the CPU threads.
    with_seeds : bool
        Batches have no anchors yet.
    before_stage : callable of str
        Called with the name of each stage before it.
    """

    def __init__(
        self,
        device: GpuDevice,
        index: ReferenceIndex,
        parameters: Parameters,
        pool: WorkerPool,
        max_bases: int,
        mem_frac: float | None = None,
        overlaps: OverlapTargets | None = None,
        with_seeds: bool = True,
        before_stage: Callable[[str], object] = lambda stage: None,
    ) -> None:
        self.name = f"GPU {device.number}"
        self._before_stage = before_stage
        self._index, self._parameters, self._pool, self._overlaps = index, parameters, pool, overlaps
        self.seeds: GpuSeeds | None = None
        self.chaining = GpuChaining(device, parameters, pool, max_bases, mem_frac)
        self.alignments: GpuAlignments | None = None
        if parameters.integers[AVA]:
            return
        try:
            memory = int(device.free_memory * memory_fraction(mem_frac, device.integrated)) - self.chaining.n_bytes
            if index.n_bases <= memory // 2:
                memory -= index.n_bases
                self.alignments = GpuAlignments(device, parameters, memory, max_bases, device.integrated)
                self.alignments.check(parameters, pool)
                self.alignments.keep_reference(index)
                memory -= self.alignments.n_bytes
            else:
                console.note("map", f"{device.name} has no room for the reference: the CPU threads align")
            if with_seeds and suits_gpu(parameters):
                if GpuSeeds.has_room(index, memory):
                    self.seeds = GpuSeeds(device, index, parameters, pool, memory, max_bases, device.integrated)
                else:
                    console.note("map", f"{device.name} has no room for the index: the CPU threads find the seeds")
        except GpuFailure as problem:
            self.close()
            raise GpuUnavailableError(f"{device.name} does not work: {problem}") from problem
        except BaseException:
            self.close()
            raise

    @property
    def is_broken(self) -> bool:
        """Whether the device has failed, so that the CPU threads do its work."""
        return self.chaining.is_broken

    def compute(self, batch: MappingBatch) -> None:
        """Fill the hits of a batch; thread-safe."""
        if batch.anchors is None:
            self._before_stage("seeds")
            self._find_seeds(batch)
        self._before_stage("chains")
        if self.is_broken:
            score_chains(batch, self._parameters, self._pool)
        else:
            self.chaining.compute(batch)
        made = None
        self._before_stage("chained hits")
        chain_hits(batch, self._index, self._parameters, self._pool)
        if self.alignments is not None and not self.is_broken:
            self._before_stage("alignments")
            stretches = Stretches.of(batch, self._index, self._parameters, self._pool)
            try:
                made = self.alignments.align(stretches)
            except GpuFailure as problem:
                self.chaining.give_up(problem)
        if not self._parameters.integers[AVA]:
            self._before_stage("hits")
            align_hits(batch, self._index, self._parameters, self._pool, made)
        self._before_stage("ranks")
        rank_hits(batch, self._parameters, self._pool)

    def _find_seeds(self, batch: MappingBatch) -> None:
        """Fill the anchors of a batch."""
        if self.seeds is not None and not self.is_broken:
            try:
                self.seeds.find(batch)
            except GpuFailure as problem:
                self.chaining.give_up(problem)
            else:
                return
        find_anchors(batch, self._index, self._parameters, self._pool, self._overlaps)

    def close(self) -> None:
        """Free the memory; no batch may be in progress."""
        try:
            for one in (self.seeds, self.alignments):
                if one is not None:
                    one.close()
        except GpuFailure:
            if not self.is_broken:
                raise
        finally:
            self.chaining.close()
