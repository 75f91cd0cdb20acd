"""The stage that maps a batch of reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from f5py.core.mapping_batch import MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.hits.hits import find_hits
from f5py.mapping.index.reference_index import ReferenceIndex, codes_of
from f5py.mapping.index.seeds import OverlapTargets, find_anchors
from f5py.mapping.settings import MapSettings, Parameters, parameters
from f5py.threads.pool import WorkerPool


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
    before_stage : callable of str
        Called with the name of a stage, ``seeds`` or ``hits``, before it begins.
    """

    index: ReferenceIndex
    parameters: Parameters
    overlaps: OverlapTargets | None
    pool: WorkerPool
    before_stage: Callable[[str], object] = lambda stage: None

    @classmethod
    def of(cls, index: ReferenceIndex, settings: MapSettings, pool: WorkerPool) -> Mapper:
        """The mapper with these settings."""
        overlaps = OverlapTargets(index) if settings.ava else None
        return cls(index, parameters(settings, index.mid_occ(settings)), overlaps, pool)

    def map(self, batch: MappingBatch) -> None:
        """Fill the hits of a batch. May be called from several threads."""
        batch.codes = codes_of(batch.letters)
        self.before_stage("seeds")
        find_anchors(batch, self.index, self.parameters, self.pool, self.overlaps)
        score_chains(batch, self.parameters, self.pool)
        self.before_stage("hits")
        find_hits(batch, self.index, self.parameters, self.pool, self.overlaps is None)
