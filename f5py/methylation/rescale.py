"""Scaling of methylated reads: a second fit to levels that depend on a first pass of calls.

f5c fits a read as if no k-mer were methylated (`f5py.signal.scaling`). Here a k-mer with sites has the level and spread
of a mixture. Let p be the mean methylation probability of its sites, and l, s the level and standard deviation of the
unmethylated and of the methylated k-mer::

    level = (1 - p) l0 + p l1
    spread ** 2 = (1 - p) s0 ** 2 + p s1 ** 2 + p (1 - p) (l1 - l0) ** 2

A site's probability is the logistic of its group's log-likelihood ratio, or the read's mean without a call. Shift and
scale minimize the weighted squared residuals of the first event of every k-mer with fewer than 20 events. Weights are
``1 / spread ** 2``, times ``1 / (1 + (z / 2.5 d) ** 2)`` for a residual of z in units of the spread, where d is 1.4826
times the median absolute residual. Five rounds suffice. var is the standard deviation of the residuals. Reads with
fewer k-mers than recalibration needs keep their fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from f5py.core.batch import ReadBatch, ReadStatus, Scaling
from f5py.core.motifs import Motif
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first


def rescale_reads(
    batch: ReadBatch, motif: Motif, model: PoreModel, pool: WorkerPool, least_events: int
) -> tuple[Scaling, float]:
    """Fit the reads of a batch again, by its calls of groups.

    Return a new scaling and the seconds of all threads.

    Parameters
    ----------
    batch : ReadBatch
        Bases, alignments, events, scaling and calls are read.
    model : PoreModel
        Over the alphabet ACGMT.
    least_events : int
        Reads with fewer usable k-mers keep their fit.
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
def use_scaling(batch: ReadBatch, scaling: Scaling) -> Iterator[None]:
    """Replace the scaling of a batch within a `with` block."""
    before = batch.scaling
    batch.shift, batch.scale, batch.var = scaling
    try:
        yield
    finally:
        batch.shift, batch.scale, batch.var = before
