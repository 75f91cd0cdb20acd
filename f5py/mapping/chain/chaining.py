r"""Chains of anchors that lie in the same order on read and reference.

The score of the best chain that ends at anchor i is (Li, Bioinformatics 34:3094, 2018)

.. math:: f(i) = \max(\mathit{span}_i,\ \max_{j<i} f(j) + \min(d_{ji}, \mathit{span}_j) - \gamma(|d^r_{ji} - d^q_{ji}|))

with d the smaller of the distances on reference and read and gamma the penalty of `settings.gap_penalties`. Chains are
then joined over gaps of up to the long bandwidth (Li, Bioinformatics 37:4572, 2021), where that covers more of the
read; for that part see `_chains_numba`.
"""

from __future__ import annotations

import numpy as np

from f5py.mapping.batch import MappingBatch
from f5py.mapping.settings import Parameters
from f5py.threads.pool import WorkerPool, longest_first


def score_chains(batch: MappingBatch, parameters: Parameters, pool: WorkerPool) -> float:
    """Fill the scores and predecessors of all anchors; return the seconds that all threads together have worked."""
    from f5py.mapping.chain._chaining_numba import AnchorArrays, ChainScores, score_reads

    anchors = batch.anchors
    assert anchors is not None
    f, p = np.empty(len(anchors.x), np.int32), np.empty(len(anchors.x), np.int32)
    n_anchors = np.diff(anchors.offsets)
    seconds = pool.run(
        score_reads, longest_first(n_anchors, n_anchors > 0), AnchorArrays(anchors.x, anchors.y), anchors.offsets,
        parameters.integers, parameters.gap_penalty, ChainScores(f, p), order=batch.number,
    )  # fmt: skip
    batch.anchors = anchors._replace(f=f, p=p)
    return seconds
