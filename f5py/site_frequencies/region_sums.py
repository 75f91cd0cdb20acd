"""Methylation of regions of the reference, from the frequencies of the sites in them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_kernel
from f5py.site_frequencies.site_table import Frequencies, rank_names


class RegionSums(NamedTuple):
    """Methylation of regions in one sample, shape (n,) each; NaN without sites, or for spreads with one."""

    sites: NDArray[np.int64]
    calls: NDArray[np.int64]
    mean: NDArray[np.float64]  # of the sites' frequencies
    weighted_mean: NDArray[np.float64]  # methylated calls of all calls
    standard_deviation: NDArray[np.float64]  # of the sites' frequencies, with n - 1 in the denominator


@exact_kernel
def sum_sites(first, stop, called, methylated, sums):
    """Fill the sums of regions.

    Parameters
    ----------
    first, stop : int64, shape (n_regions,)
        Half-open ranges of sites.
    called, methylated : int64, shape (n_sites,)
    sums : RegionSums
        Filled.
    """
    for region in range(first.shape[0]):
        n_sites, n_calls, n_methylated = stop[region] - first[region], np.int64(0), np.int64(0)
        total = squares = 0.0
        for site in range(first[region], stop[region]):
            n_calls += called[site]
            n_methylated += methylated[site]
            total += methylated[site] / called[site]
        mean = total / n_sites if n_sites else np.nan
        for site in range(first[region], stop[region]):
            difference = methylated[site] / called[site] - mean
            squares += difference * difference
        sums.sites[region], sums.calls[region], sums.mean[region] = n_sites, n_calls, mean
        sums.weighted_mean[region] = n_methylated / n_calls if n_calls else np.nan
        sums.standard_deviation[region] = math.sqrt(squares / (n_sites - 1)) if n_sites > 1 else np.nan


def sums_of_regions(
    frequencies: Frequencies, contigs: list[str], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> RegionSums:
    """Sum the sites or groups that start in each region: 0-based, half-open, perhaps overlapping."""
    sites, names = frequencies.columns(), frequencies.chromosomes
    rank = rank_names(names)
    of_name = {name.decode("utf-8", "surrogateescape"): int(rank[i]) for i, name in enumerate(names)}
    place = rank[sites.chromosome].astype(np.int64) << 32 | sites.start  # ascending
    contig = np.array([of_name.get(name, -1) for name in contigs], np.int64)
    first, stop = (np.searchsorted(place, contig << 32 | bound) for bound in (starts, ends))
    stop = np.where(contig < 0, first, stop)
    kinds = (np.int64, np.int64, np.float64, np.float64, np.float64)
    sums = RegionSums._make(np.empty(len(first), kind) for kind in kinds)
    sum_sites(first, stop, sites.called, sites.methylated, sums)
    return sums
