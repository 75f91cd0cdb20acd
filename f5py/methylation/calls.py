"""Methylation calls: site groups along a read's alignment and their log-likelihoods.

Sites at most 10 bases apart form a group, which is methylated or not as a whole. The events between the ends of the
group's window (10 bases of flank on both sides) are scored under the window's reference bases as they are and with
every site methylated; the difference of the two log-likelihoods is the call.
"""

from __future__ import annotations

import numpy as np

from f5py.methylation.motifs import Motif, complement_codes, letter_codes
from f5py.pipeline.batch import ReadBatch, ReadStatus, offsets_of
from f5py.pipeline.workers import WorkerPool, longest_first
from f5py.pore_model.model import PoreModel


def call_methylation(batch: ReadBatch, motif: Motif, model: PoreModel, pool: WorkerPool) -> None:
    """Fill the batch's call arrays for all reads that are still `ReadStatus.OK`.

    Parameters
    ----------
    batch : ReadBatch
        Alignment, scaling, reference segments and CIGARs are read.
    motif : Motif
    model : PoreModel
        Over the alphabet ACGMT.
    pool : WorkerPool
    """
    from f5py.methylation._calls_numba import call_read, count_groups

    wanted = batch.status == ReadStatus.OK
    order = longest_first(batch.read_length, wanted)
    capacity = np.zeros(len(batch), np.int64)
    patterns = motif.patterns

    def count(read: int) -> None:
        capacity[read] = count_groups(
            batch.reference[batch.reference_offsets[read] : batch.reference_offsets[read + 1]], patterns
        )

    pool.run(count, order)
    batch.call_offsets = offsets_of(capacity)
    n_groups = batch.call_offsets[-1]
    batch.n_calls = np.zeros(len(batch), np.int64)
    batch.call_first = np.empty(n_groups, np.int64)
    batch.call_last = np.empty(n_groups, np.int64)
    batch.call_sites = np.empty(n_groups, np.int32)
    batch.call_methylated = np.empty(n_groups, np.float32)
    batch.call_unmethylated = np.empty(n_groups, np.float32)
    codes, complement = letter_codes(), complement_codes()
    ln_stdv = model.ln_stdv

    def call(read: int) -> None:
        reverse = bool(batch.reverse[read])
        groups = slice(batch.call_offsets[read], batch.call_offsets[read + 1])
        read_length = int(batch.base_offsets[read + 1] - batch.base_offsets[read])
        first = batch.base_offsets[read]
        batch.n_calls[read] = call_read(
            batch.reference[batch.reference_offsets[read] : batch.reference_offsets[read + 1]],
            batch.reference_start[read],
            batch.cigar[batch.cigar_offsets[read] : batch.cigar_offsets[read + 1]],
            reverse,
            batch.event_mean[batch.event_offsets[read] : batch.event_offsets[read + 1]],
            batch.first_event[first : first + read_length - model.k + 1],
            read_length,
            batch.shift[read],
            batch.scale[read],
            batch.var[read],
            batch.events_per_base[read],
            model.k,
            model.level_mean,
            model.level_stdv,
            ln_stdv,
            codes,
            complement,
            patterns,
            motif.methylated_reverse if reverse else motif.methylated_forward,
            batch.call_first[groups],
            batch.call_last[groups],
            batch.call_sites[groups],
            batch.call_methylated[groups],
            batch.call_unmethylated[groups],
        )

    pool.run(call, order)
