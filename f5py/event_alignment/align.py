"""Alignment of events to the reference: which k-mer of the reference every event of a read belongs to.

Two aligned bases at the ends of a stretch of about a hundred reference bases say, through the base-to-event map,
which events belong to the stretch. A hidden Markov model over the k-mers of the reference then assigns these events.
The first fifty of them become rows, and the next stretch begins where they end. Where the alignment to the reference
has an intron, or leaves a window, a new segment begins.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch, ReadStatus, Rows
from f5py.core.hmm import MIN_STAY, P_BAD, P_SKIP, P_SKIP_SELF
from f5py.core.kmers import strand_codes
from f5py.core.windows import Windows
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first

# In single precision, as f5c computes with them here.
_P_SKIP = np.float32(P_SKIP)
_P_BAD = np.float32(P_BAD)
_P_SKIP_SELF = np.float32(P_SKIP_SELF)
_MIN_STAY = np.float32(MIN_STAY)


def transitions(events_per_base: NDArray[np.float64]) -> NDArray[np.float32]:
    """Logarithms of the transition probabilities of reads' hidden Markov models.

    Parameters
    ----------
    events_per_base : float64, shape (n,)

    Returns
    -------
    float32, shape (n, 8)
        M to M of the same k-mer, M to M of the next one, M to B, M to K, B to B, B to anything else, K to K, K to M.
    """
    one = np.float32(1.0)
    with np.errstate(divide="ignore"):
        stay = np.maximum((1.0 - 1.0 / events_per_base).astype(np.float32), _MIN_STAY)
    probabilities = np.empty((len(stay), 8), np.float32)
    probabilities[:, 0] = stay
    probabilities[:, 1] = ((one - stay) - _P_SKIP) - _P_BAD
    probabilities[:, 2] = _P_BAD
    probabilities[:, 3] = _P_SKIP
    probabilities[:, 4] = _P_BAD
    probabilities[:, 5] = (one - _P_BAD) / np.float32(3.0)
    probabilities[:, 6] = _P_SKIP_SELF
    probabilities[:, 7] = one - _P_SKIP_SELF
    return np.log(probabilities.astype(np.float64)).astype(np.float32)


class RowsElsewhere(Protocol):
    """Something that aligns the events of some reads of a batch to the reference at the same time."""

    def rows(self, batch: ReadBatch) -> NDArray[np.bool_]:
        """Select the reads that it applies to."""
        ...

    def begin_rows(
        self, batch: ReadBatch, model: PoreModel, ln_var: NDArray[np.float32], log_transitions: NDArray[np.float32]
    ) -> None:
        """Begin with these reads."""
        ...

    def fetch_rows(self, batch: ReadBatch) -> NDArray[np.bool_]:
        """Wait for them and fill their rows; return which reads are given back."""
        ...


def align_events(
    batch: ReadBatch,
    model: PoreModel,
    pool: WorkerPool,
    windows: Windows | None,
    elsewhere: RowsElsewhere | None = None,
) -> float:
    """Fill the batch's row arrays for all reads that are still `ReadStatus.OK`.

    The rows of a read are in the order of the reference. No row is made of the first event of a segment. A stretch of
    the reference longer than about a hundred bases without aligned ones ends the segment.

    Return the seconds that all threads together have worked.

    Parameters
    ----------
    batch : ReadBatch
        Alignment, scaling, reference segments and CIGARs are read.
    model : PoreModel
        Over the alphabet ACGMT, k-mers of a marked reference are methylated where it says so; see
        `f5py.core.kmers.StrandCodes`.
    windows : Windows or None
        Parts of the reference to restrict the alignment to. A BED file's windows are half-open intervals, and each
        is a segment of its own. A region takes one base more at its end, as f5c does.
    elsewhere : RowsElsewhere, optional
        Aligns its share of the reads, if there are no windows.
    """
    from f5py.event_alignment._align_numba import ReadNumbers, align_all

    offsets = batch.events.offsets
    batch.rows = Rows(
        offsets, np.zeros(len(batch), np.int64), np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32),
        np.empty(offsets[-1], np.uint8),
    )  # fmt: skip
    wanted = batch.status == ReadStatus.OK
    # Reads without an alignment have no events per base, and no rows.
    log_transitions = transitions(np.where(wanted, batch.events_per_base, 1.0))
    ln_var = np.log(np.where(wanted, batch.var, 1.0).astype(np.float64)).astype(np.float32)

    def align(reads: NDArray[np.bool_]) -> float:
        return pool.run(
            align_all, longest_first(batch.n_events, reads), batch.view, strand_codes(model.alphabet), model.levels,
            ReadNumbers(ln_var, log_transitions), _windows_of_reads(batch, windows), batch.rows, order=batch.number,
        )  # fmt: skip

    if elsewhere is None or windows is not None or not (others := elsewhere.rows(batch)).any():
        return align(wanted)
    elsewhere.begin_rows(batch, model, ln_var, log_transitions)
    seconds = align(wanted & ~others)
    return seconds + align(elsewhere.fetch_rows(batch))


def _windows_of_reads(batch: ReadBatch, windows: Windows | None) -> tuple:
    """Convert `windows` for the kernel: the windows that overlap each read, which are consecutive ones."""
    n = len(batch)
    if windows is None:
        everything = np.array([0], np.int64), np.array([np.iinfo(np.int64).max], np.int64)
        return *everything, np.zeros(n, np.int64), np.ones(n, np.int64), True
    starts, ends, first, stop = windows.overlapping(
        batch.contig, batch.reference_start, batch.reference_end, int(windows.is_region)
    )
    return starts, ends, first, stop, windows.is_region
