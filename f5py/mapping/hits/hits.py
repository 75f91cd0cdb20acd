"""Hits: the chains of a read, which of them are secondary to which, aligned and ranked.

A hit is primary if no better one covers most of its part of the read. The rules are minimap2's, and so is the order of
equal hits, which a hash of the read's name decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.mapping_batch import Hits, MappingBatch
from f5py.core.offsets import offsets_of
from f5py.mapping.hits.hit_fields import N_FIELDS
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import collecting
from f5py.mapping.settings import Parameters
from f5py.threads.pool import WorkerPool, longest_first


def find_hits(
    batch: MappingBatch,
    index: ReferenceIndex,
    parameters: Parameters,
    pool: WorkerPool,
    with_alignment: bool = True,
    made: tuple[NDArray, ...] | None = None,
) -> float:
    """Fill ``batch.hits`` from the scored anchors; return the seconds that all threads together have worked.

    Parameters
    ----------
    batch : MappingBatch
    index : ReferenceIndex
    parameters : Parameters
    pool : WorkerPool
    with_alignment : bool
        Align base by base; else the hits are chains.
    made : tuple of arrays, optional
        Alignments that have been made elsewhere: keys, results, operations and offsets of
        `f5py.mapping.align._pair_alignment_numba.Made`.
    """
    from f5py.mapping.hits._hit_reads_numba import gather_hits, hit_reads
    from f5py.mapping.index._seeds_numba import gather

    anchors = batch.anchors
    assert anchors is not None
    n = len(batch)
    n_hits, n_ops = np.zeros(n, np.int64), np.zeros(n, np.int64)
    results: list[Any] = []
    seconds = pool.run(
        collecting(hit_reads, results), longest_first(batch.lengths, np.ones(n, np.bool_)), batch.codes, batch.offsets,
        batch.names.text, batch.names.offsets, anchors.x, anchors.y, anchors.offsets, anchors.f, anchors.p,
        anchors.seeds, anchors.seed_offsets, anchors.rep_len, index.bases, index.offsets, np.diff(index.offsets),
        parameters.integers, parameters.floats, parameters.gap_penalty, with_alignment,
        *(made or no_alignments(n)), n_hits, n_ops, order=batch.number,
    )  # fmt: skip
    offsets, op_offsets = offsets_of(n_hits), offsets_of(n_ops)
    table = np.empty((offsets[-1], N_FIELDS), np.int64)
    ops = np.empty(op_offsets[-1], np.int64)
    for done, found, found_ops in results:
        gather_hits(done, n_hits, offsets, op_offsets, found, table)
        gather(done, n_ops, op_offsets, found_ops, ops)
    batch.hits = Hits(table, offsets, ops)
    return seconds


def no_alignments(n_reads: int) -> tuple[NDArray, ...]:
    """Make what `find_hits` takes if no alignments have been made elsewhere."""
    nothing = np.empty((0, 7), np.int64)
    return nothing, nothing, np.empty(0, np.uint32), np.zeros(n_reads + 1, np.int64)
