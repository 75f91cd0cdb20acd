"""Map batches of reads, on CPU threads and GPUs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.device import DeviceBackend, load_early, may_use_gpus, open_device, open_gpus
from f5py.compute.gpu.placement import Backend
from f5py.compute.gpu.selection import AutoGpuScheduler
from f5py.mapping.batch import MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.hits.hits import align_hits, chain_hits, rank_hits
from f5py.mapping.index.reference_index import ReferenceIndex, codes_of
from f5py.mapping.index.seeds import OverlapTargets, find_anchors, suits_gpu
from f5py.mapping.mem.fm_index import FmIndex
from f5py.mapping.mem.mem_seeds import MemSearch, find_mem_anchors
from f5py.mapping.settings import AVA, SPLICED, MapSettings, Parameters, parameters
from f5py.messages import console
from f5py.options.shared import GpuOptions, device_numbers
from f5py.threads.pool import WorkerPool

#: Batches that the CPU threads map at a time while a GPU is started. With more, that takes longer, and those that the
#: GPU gets then wait for them.
_MEANWHILE = 1
#: The share of the time for hits that a GPU saves, estimated from what the CPU threads spend on each part.
_SAVED = 0.2
#: Bases of the reference that reads are made of for the first search on a GPU, at most.
_CHECKED_BASES = 1 << 20


def begin_gpu(options: GpuOptions) -> bool:
    """Load GPU libraries early if a GPU starts at once; return whether one does.

    To call before the reference is read.
    """
    return load_early(options, lambda: options.gpu_use == "on")


class CpuMems:
    """Backend that fills the anchors of a batch from maximal exact matches on the CPU threads.

    Attributes
    ----------
    search : MemSearch
    seconds : float
        Seconds of work for each thread.
    """

    def __init__(self, search: MemSearch, pool: WorkerPool) -> None:
        self.seconds = 0.0
        self.search, self._pool = search, pool

    def compute(self, batch: MappingBatch) -> None:
        """See `Backend.compute`."""
        self.seconds += find_mem_anchors(batch, self.search, self._pool) / self._pool.n_threads

    def close(self) -> None:
        """Nothing: the pool belongs to the caller."""


class CpuMapping:
    """Backend that fills the hits of a batch, and its anchors if it has none, on the CPU threads.

    Attributes
    ----------
    seconds : float
        Seconds of work for each thread that a GPU would save.
    """

    def __init__(
        self,
        index: ReferenceIndex,
        numbers: Parameters,
        pool: WorkerPool,
        overlaps: OverlapTargets | None,
        junctions: NDArray[np.int64] | None = None,
        before_stage: Callable[[str], object] = lambda stage: None,
    ) -> None:
        self.seconds = 0.0
        self._before_stage = before_stage
        self._index, self._parameters, self._pool, self._overlaps = index, numbers, pool, overlaps
        self._junctions = junctions

    def compute(self, batch: MappingBatch) -> None:
        """See `Backend.compute`."""
        seconds = 0.0
        if batch.anchors is None:
            self._before_stage("seeds")
            of_seeds = find_anchors(batch, self._index, self._parameters, self._pool, self._overlaps)
            if suits_gpu(self._parameters):
                seconds += of_seeds
        self._before_stage("chains")
        seconds += score_chains(batch, self._parameters, self._pool)
        self._before_stage("chained hits")
        of_hits = chain_hits(batch, self._index, self._parameters, self._pool)
        if not self._parameters.integers[AVA]:
            self._before_stage("hits")
            of_hits += align_hits(batch, self._index, self._parameters, self._pool, junctions=self._junctions)
            seconds += _SAVED * of_hits
        self._before_stage("ranks")
        rank_hits(batch, self._parameters, self._pool)
        self.seconds += seconds / self._pool.n_threads

    def close(self) -> None:
        """Nothing: the pool belongs to the caller."""


@dataclass
class Mapper:
    """Mapper of reads by seeds, chains and base alignment."""

    index: ReferenceIndex
    parameters: Parameters
    overlaps: OverlapTargets | None  # of reads among themselves; their hits are chains without base alignment
    pool: WorkerPool
    backend: Backend  # where chains are scored and stretches aligned
    mems: Backend | None = None  # where maximal exact matches are found, if these are the seeds
    # called with the name of a stage before it begins: ``seeds`` or ``mem seeds``, ``chains``, ``chained hits``,
    # ``alignments`` on a GPU, ``hits``, ``ranks``
    before_stage: Callable[[str], object] = lambda stage: None
    _told: set[str] = field(default_factory=set)
    _opening: dict[int, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(
        cls,
        index: ReferenceIndex,
        settings: MapSettings,
        pool: WorkerPool,
        fm_index: FmIndex | None = None,
        junctions: NDArray[np.int64] | None = None,
        before_stage: Callable[[str], object] = lambda stage: None,
    ) -> Mapper:
        """Make a mapper on the CPU threads; with an FM-index its seeds are exact matches.

        Parameters
        ----------
        junctions : int64, shape (n, 3), optional
            Annotated introns, see `f5py.mapping.align.junctions`.
        """
        overlaps = OverlapTargets(index) if settings.ava else None
        numbers = parameters(settings, index.mid_occ(settings))
        mems = None
        if fm_index is not None:
            mems = CpuMems(MemSearch(fm_index, index.offsets, settings.min_mem, numbers), pool)
        cpu = CpuMapping(index, numbers, pool, overlaps, junctions, before_stage)
        return cls(index, numbers, overlaps, pool, cpu, mems, before_stage)

    def use_gpu(self, options: GpuOptions, max_bases: int) -> None:
        """Use GPUs if allowed and present, but not for spliced reads; with `--gpu auto` once they pay."""
        cpu = self.backend
        assert isinstance(cpu, CpuMapping)
        if self.parameters.integers[SPLICED]:
            if options.gpu_use == "on":
                console.note("map", "reads are aligned over introns on the CPU threads; --gpu on changes nothing")
            return
        if not may_use_gpus(options.gpu_use):
            return

        def open_one(number: int) -> DeviceBackend:
            from f5py.mapping.gpu.backend import GpuMapping

            device = open_device(number)
            return GpuMapping(
                device, self.index, self.parameters, self.pool, max_bases, options.cuda_mem_frac,
                self.overlaps, self.mems is None, self.before_stage,
            )  # fmt: skip

        mems = self.mems
        if isinstance(mems, CpuMems):

            def open_for_mems(number: int) -> DeviceBackend:
                from f5py.mapping.gpu.mems import GpuMems

                device = open_device(number)
                some = self.index.bases.codes(0, min(self.index.n_bases, _CHECKED_BASES))
                return GpuMems(device, mems.search, some, self.pool, max_bases, options.cuda_mem_frac)

            self.mems = self._with_gpus(mems, options, open_for_mems, "searched")
        self.backend = self._with_gpus(cpu, options, open_one, "mapped")

    def _with_gpus(
        self, cpu: CpuMapping | CpuMems, options: GpuOptions, open_one: Callable[[int], DeviceBackend], verb: str
    ) -> Backend:
        """Combine the CPU threads with GPUs."""

        def open_alone(number: int) -> DeviceBackend:
            with self._lock:
                alone = self._opening.setdefault(number, threading.Lock())
            with alone:  # both stages take what is free
                return open_one(number)

        return AutoGpuScheduler(
            cpu, self._once(open_gpus(device_numbers(options.cuda_dev_id), open_alone)), alone=options.gpu_use == "on",
            size_of=lambda batch: int(batch.offsets[-1]), verb=verb, seconds=lambda: cpu.seconds,
            meanwhile=_MEANWHILE,
        )  # fmt: skip

    def _once(self, gpus: Generator[DeviceBackend | Exception, None, None]) -> Iterator[DeviceBackend | Exception]:
        """Yield GPUs for one of two stages, with the message of a failed device only once."""
        with closing(gpus):
            for gpu in gpus:
                if isinstance(gpu, Exception):
                    with self._lock:
                        if str(gpu) in self._told:
                            continue
                        self._told.add(str(gpu))
                yield gpu

    def map(self, batch: MappingBatch) -> None:
        """Fill the hits of a batch; thread-safe."""
        batch.codes = codes_of(batch.letters)
        if self.mems is not None:
            self.before_stage("mem seeds")
            self.mems.compute(batch)
        self.backend.compute(batch)

    def close(self) -> None:
        """Close the GPUs."""
        self.backend.close()
        if self.mems is not None:
            self.mems.close()
