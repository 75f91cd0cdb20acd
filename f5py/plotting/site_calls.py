"""Methylation calls as a plot of a read shows them, by the samples in which their k-mers pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SiteCalls(NamedTuple):
    """Methylation calls of the read in the region, in the order of the signal; shape (c,) each."""

    motif: str  # what was called, such as ``CG``
    threshold: float  # ratios nearer to 0 count as undecided
    # first, last: 0-based positions of the group's first and last site
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    sites: NDArray[np.int64]  # number of sites in the group
    ratio: NDArray[np.float64]  # log-likelihood ratio; above 0 for methylated
    # start_sample, end_sample: half-open interval of samples in which the k-mers pass that begin at the group's sites
    start_sample: NDArray[np.int64]
    end_sample: NDArray[np.int64]
