"""Stages of the mapper that a first run compiles ahead."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from f5py.core.names import Names
from f5py.mapping.batch import Anchors, ChainedHits, Hits, MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.hit_table import N_FIELDS
from f5py.mapping.hits.hits import align_hits, chain_hits, rank_hits
from f5py.mapping.index.packed_bases import pack
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import find_anchors
from f5py.mapping.output.records import RecordStyle, paf_lines_of, records_of
from f5py.mapping.settings import PRESETS, Parameters, parameters
from f5py.threads.pool import CallingThread

_HERE: Any = CallingThread()


def _no_reads(preset: str = "map-ont") -> tuple[MappingBatch, ReferenceIndex, Parameters]:
    """Make a batch without reads, with the arrays that the stages fill, an index, and settings."""
    bytes_, int32 = np.empty(0, np.uint8), np.empty(0, np.int32)
    int64, uint64 = np.empty(0, np.int64), np.empty(0, np.uint64)
    offsets, hits = np.zeros(1, np.int64), np.empty((0, N_FIELDS), np.int64)
    batch = MappingBatch(Names.of([]), bytes_, offsets, bytes_, bytes_, offsets)
    batch.anchors = Anchors(uint64, int64, offsets, int64, offsets, int64, int32, int32)
    batch.chained = ChainedHits(hits, offsets, uint64, int64, offsets)
    batch.hits = Hits(hits, offsets, int64)
    settings = PRESETS[preset]
    index = ReferenceIndex(
        [], pack(bytes_), offsets, np.zeros((1 << 12) + 1, np.uint32), np.zeros(1, np.uint64), int64, hits, settings.k,
        settings.w, settings.hpc, int64,
    )  # fmt: skip
    return batch, index, parameters(settings, 10)


def _seeds() -> None:
    batch, index, settings = _no_reads()
    find_anchors(batch, index, settings, _HERE)
    score_chains(batch, settings, _HERE)


def _hits(stage: Callable[..., object], preset: str = "map-ont") -> None:
    stage(*_no_reads(preset), _HERE)


def _ranks() -> None:
    batch, _, settings = _no_reads()
    rank_hits(batch, settings, _HERE)


def _output(make: Callable[..., object]) -> None:
    batch, index, _ = _no_reads()
    make(batch, index, Names.of([]), RecordStyle(md=True), _HERE)


#: See `f5py.jit.warm_up.Stages`; the longest first. None of those of Darwin.
STAGES: dict[str, Callable[[], object]] = {
    "spliced hits": partial(_hits, align_hits, "splice"),
    "hits": partial(_hits, align_hits),
    "chained hits": partial(_hits, chain_hits),
    "mapped records": partial(_output, records_of),
    "mapped lines": partial(_output, paf_lines_of),
    "seeds": _seeds,
    "ranks": _ranks,
}
