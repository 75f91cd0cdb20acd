"""Scaling that knows of methylation: reads are fitted again to the levels that a first pass of calls makes probable.

f5c fits a read as if none of its k-mers were methylated (`f5py.signal.scaling`). Here a k-mer with sites has the level
and the spread of a mixture. With p the mean probability of methylation of its sites, and l, s level and standard
deviation of the plain k-mer and of the methylated one::

    level = (1 - p) l0 + p l1
    spread ** 2 = (1 - p) s0 ** 2 + p s1 ** 2 + p (1 - p) (l1 - l0) ** 2

The probability of a site is the logistic of its group's log-likelihood ratio, and the read's mean where its group has
no call. Shift and scale minimise the weighted squares of the residuals of the first event of every k-mer with fewer
than 20 events. Weights are ``1 / spread ** 2``, times ``1 / (1 + (z / 2.5 d) ** 2)`` for a residual of z in units of
the spread, where d is 1.4826 times the median size; five rounds of that suffice. var is the standard deviation of the
residuals. Reads with fewer k-mers than recalibration needs keep their fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from f5py.core.batch import ReadBatch, ReadStatus, Scaling
from f5py.core.motifs import Motif
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first


def rescaled(
    batch: ReadBatch, motif: Motif, model: PoreModel, pool: WorkerPool, least_events: int
) -> tuple[Scaling, float]:
    """Fit the reads of a batch that has calls of groups again.

    Parameters
    ----------
    batch : ReadBatch
        Bases, alignments, events, scaling and calls are read.
    model : PoreModel
        Over the alphabet ACGMT.
    least_events : int
        Reads with fewer usable k-mers keep their fit.

    Returns
    -------
    scaling : Scaling
        New arrays.
    seconds : float
        That all threads together have worked.
    """
    from f5py.methylation._rescale_numba import rescale_all

    scaling = Scaling(*(values.copy() for values in batch.scaling))
    reads = longest_first(batch.read_length, (batch.status == ReadStatus.OK) & (batch.calls.n > 0))
    seconds = pool.run(
        rescale_all, reads, batch.view._replace(scaling=scaling), batch.bases, model.levels,
        (motif.codes(False), motif.codes(True)), least_events, batch.calls, order=batch.number,
    )  # fmt: skip
    return scaling, seconds


@contextmanager
def scaled(batch: ReadBatch, scaling: Scaling) -> Iterator[None]:
    """Give a batch another scaling for a while."""
    before = batch.scaling
    batch.shift, batch.scale, batch.var = scaling
    try:
        yield
    finally:
        batch.shift, batch.scale, batch.var = before
