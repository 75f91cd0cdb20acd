"""The methylation calls of a read that a plot of it shows."""

from __future__ import annotations

import numpy as np

from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif
from f5py.plotting.data import PlotData
from f5py.plotting.site_calls import SiteCalls


def site_calls(data: PlotData, batch: ReadBatch, read: int, motif: Motif, threshold: float) -> SiteCalls:
    """Take those of a read's calls of which the drawn region has all sites.

    Parameters
    ----------
    batch : ReadBatch
        With calls.
    read : int
        Index in the batch.
    """
    mine = slice(begin := batch.calls.offsets[read], begin + batch.calls.n[read])
    first, last = batch.calls.first[mine], batch.calls.last[mine]
    order = np.flatnonzero((first >= data.position.min()) & (last <= data.position.max()))
    if data.descending:
        order = order[::-1]
    first, last = first[order], last[order]
    by_position = np.argsort(data.position)
    kmers = by_position[np.searchsorted(data.position[by_position], np.stack([first, last]))]
    return SiteCalls(
        motif.pattern,
        threshold,
        first,
        last,
        batch.calls.sites[mine][order].astype(np.int64),
        batch.calls.methylated[mine][order].astype(np.float64) - batch.calls.unmethylated[mine][order],
        data.kmer_start[kmers.min(axis=0)],
        data.kmer_end[kmers.max(axis=0)],
    )
