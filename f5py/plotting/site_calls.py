"""Methylation calls as a plot of a read shows them, by the samples in which their k-mers pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif

if TYPE_CHECKING:
    from f5py.plotting.data import PlotData


class SiteCalls(NamedTuple):
    """Methylation calls of the read in the region, in the order of the signal; shape (c,) each.

    Attributes
    ----------
    motif : str
        What was called, such as ``CG``.
    threshold : float
        Ratios nearer to 0 count as undecided.
    first, last : int64
        0-based positions of the group's first and last site.
    sites : int64
        Number of sites in the group.
    ratio : float64
        Log-likelihood ratio; above 0 for methylated.
    start_sample, end_sample : int64
        Half-open interval of samples in which the k-mers pass that begin at the group's sites.
    """

    motif: str
    threshold: float
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    sites: NDArray[np.int64]
    ratio: NDArray[np.float64]
    start_sample: NDArray[np.int64]
    end_sample: NDArray[np.int64]


def site_calls(data: PlotData, batch: ReadBatch, read: int, motif: Motif, threshold: float) -> SiteCalls:
    """Take those of a read's calls of which the drawn region has all sites.

    Parameters
    ----------
    data : PlotData
    batch : ReadBatch
        With calls.
    read : int
        Index in the batch.
    motif : Motif
    threshold : float
    """
    mine = slice(begin := batch.call_offsets[read], begin + batch.n_calls[read])
    first, last = batch.call_first[mine], batch.call_last[mine]
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
        batch.call_sites[mine][order].astype(np.int64),
        batch.call_methylated[mine][order].astype(np.float64) - batch.call_unmethylated[mine][order],
        data.kmer_start[kmers.min(axis=0)],
        data.kmer_end[kmers.max(axis=0)],
    )
