"""Methylation calls: site groups along a read's alignment and their log-likelihoods.

Sites at most 10 bases apart form a group, which is methylated or not as a whole. The events between the ends of the
group's window (10 bases of flank on both sides) are scored under the window's reference bases as they are and with
every site methylated; the difference of the two log-likelihoods is the call. `f5py.methylation.per_site` has the calls
of single sites.
"""

from __future__ import annotations

import numpy as np

from f5py.core.batch import ReadBatch, ReadStatus, offsets_of
from f5py.core.motifs import Motif
from f5py.core.workers import WorkerPool, longest_first
from f5py.pore_model.model import PoreModel


def call_methylation(
    batch: ReadBatch,
    motif: Motif,
    model: PoreModel,
    pool: WorkerPool,
    per_site: bool = False,
    agreement: float | None = None,
) -> None:
    """Fill the batch's call arrays for all reads that are still `ReadStatus.OK`.

    Parameters
    ----------
    batch : ReadBatch
        Alignment, scaling, reference segments and CIGARs are read.
    motif : Motif
    model : PoreModel
        Over the alphabet ACGMT.
    pool : WorkerPool
    per_site : bool
        Call every site of a group on its own, see `f5py.methylation.per_site`. A site's call has the site for its first
        and last one, and the number of sites 1. The same sites are called either way.
    agreement : float, optional
        For `per_site`: prior probability that all sites of a group have one state, from 0 (all combinations of states
        are equally probable) to 1 (every site gets its group's call). None: learned from each read.
    """
    from f5py.methylation._calls_numba import Fit, Model, call_read, count_groups

    if per_site:
        from f5py.methylation._per_site_numba import call_read_sites

    wanted = batch.status == ReadStatus.OK
    order = longest_first(batch.read_length, wanted)
    capacity = np.zeros(len(batch), np.int64)
    codes = motif.codes(False), motif.codes(True)
    levels = Model(model.k, model.level_mean, model.level_stdv, model.ln_stdv)

    def count(read: int) -> None:
        segment = batch.reference[batch.reference_offsets[read] : batch.reference_offsets[read + 1]]
        n_groups, n_sites = count_groups(segment, codes[int(batch.reverse[read])])
        capacity[read] = n_sites if per_site else n_groups

    pool.run(count, order)
    batch.call_offsets = offsets_of(capacity)
    n_calls = batch.call_offsets[-1]
    batch.n_calls = np.zeros(len(batch), np.int64)
    batch.call_first = np.empty(n_calls, np.int64)
    batch.call_last = np.empty(n_calls, np.int64)
    batch.call_sites = np.empty(n_calls, np.int32)
    batch.call_methylated = np.empty(n_calls, np.float32)
    batch.call_unmethylated = np.empty(n_calls, np.float32)

    def call(read: int) -> None:
        reverse = bool(batch.reverse[read])
        calls = slice(batch.call_offsets[read], batch.call_offsets[read + 1])
        read_length = int(batch.base_offsets[read + 1] - batch.base_offsets[read])
        first = batch.base_offsets[read]
        inputs = (
            batch.reference[batch.reference_offsets[read] : batch.reference_offsets[read + 1]],
            batch.reference_start[read],
            batch.cigar[batch.cigar_offsets[read] : batch.cigar_offsets[read + 1]],
            reverse,
            batch.event_mean[batch.event_offsets[read] : batch.event_offsets[read + 1]],
            batch.first_event[first : first + read_length - model.k + 1],
            read_length,
            Fit(batch.shift[read], batch.scale[read], batch.var[read], batch.events_per_base[read]),
            levels,
            codes[int(reverse)],
        )
        outputs = (
            batch.call_first[calls],
            batch.call_last[calls],
            batch.call_sites[calls],
            batch.call_methylated[calls],
            batch.call_unmethylated[calls],
        )
        if per_site:
            batch.n_calls[read] = call_read_sites(*inputs, -1.0 if agreement is None else agreement, *outputs)
        else:
            batch.n_calls[read] = call_read(*inputs, *outputs)

    pool.run(call, order)
