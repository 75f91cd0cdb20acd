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

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from f5py.core.batch import ReadBatch, ReadStatus, Scaling
from f5py.core.cigar import ALIGNED, OF_READ, OF_REFERENCE
from f5py.core.motifs import Motif
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation.group_scores import fill_methylated, fill_plain, fill_ranks
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool, longest_first

#: K-mers with this many events were stalled, or are misaligned.
MOST_EVENTS = 20
#: Robust deviations of a residual at which its weight is halved.
HALVED = 2.5
#: Robust deviation over median absolute residual.
_OF_MEDIAN = 1.4826
_ROUNDS = 5
#: Bins of the histogram for the median of absolute residuals, which is faster than sorting.
_STEPS_PER_UNIT = 64
_N_STEPS = 16 * _STEPS_PER_UNIT


@inner
def _reference_of(cigar, reference_start, reverse, places):
    """Fill the reference position aligned to every base in sequencing order; -1 for none."""
    length = places.shape[0]
    places[:] = -1
    reference = np.int64(reference_start)
    read = np.int64(0)
    for c in range(cigar.shape[0]):
        operation = cigar[c] & 15
        n = np.int64(cigar[c] >> 4)
        if ALIGNED >> operation & 1:
            for i in range(min(n, length - read)):
                places[length - 1 - read - i if reverse else read + i] = reference + i
        if OF_REFERENCE >> operation & 1:
            reference += n
        if OF_READ >> operation & 1:
            read += n


@inner
def _probability(methylated, unmethylated):
    return 1.0 / (1.0 + math.exp(min(max(np.float64(unmethylated) - np.float64(methylated), -700.0), 700.0)))


@inner
def _group_of(position, first, last):
    """Find the group of the site at a position by binary search; -1 for none."""
    low = 0
    high = first.shape[0]
    while low < high:
        middle = (low + high) // 2
        if first[middle] <= position:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > 0 and position <= last[low - 1] else -1


@inner
def site_probabilities(places, plain, changed, offset, calls, begin, end, probability):
    """Fill the methylation probability of a read's sites; -1 for other bases.

    `places` (int64) are the reference positions aligned to each base, or -1; `plain` and `changed` the codes of the
    bases without and with methylated sites; `offset` is that of the modified base in the motif on the reference's
    strand. The calls are those from `begin` to `end`.
    """
    first, last = calls.first[begin:end], calls.last[begin:end]
    methylated, unmethylated = calls.methylated[begin:end], calls.unmethylated[begin:end]
    total = 0.0
    n = 0
    for g in range(first.shape[0]):
        if np.isfinite(methylated[g]) and np.isfinite(unmethylated[g]):
            total += _probability(methylated[g], unmethylated[g])
            n += 1
    mean = total / n if n > 0 else 0.5
    for q in range(plain.shape[0]):
        probability[q] = -1.0
        if changed[q] != plain[q]:
            probability[q] = mean
            g = _group_of(places[q] - offset, first, last) if places[q] >= 0 else -1
            if g >= 0 and np.isfinite(methylated[g]) and np.isfinite(unmethylated[g]):
                probability[q] = _probability(methylated[g], unmethylated[g])


@inner
def _median(sizes, counts):
    """Find the median to half a step; the last step has all larger values."""
    counts[:] = 0
    for i in range(sizes.shape[0]):
        counts[int(min(sizes[i] * _STEPS_PER_UNIT, _N_STEPS - 1.0))] += 1
    below = 0
    step = 0
    while below + counts[step] <= sizes.shape[0] // 2:
        below += counts[step]
        step += 1
    return (step + 0.5) / _STEPS_PER_UNIT


@inner
def fit_robust(x, level, spread):
    """Fit `x` to `level` by weighted least squares with smaller weights of large residuals.

    Return shift, scale and var as float64, all 0 without a fit. var is the standard deviation of the residuals in units
    of `spread`.
    """
    n = x.shape[0]
    trust = np.ones(n, np.float64)
    sizes = np.empty(n, np.float64)
    counts = np.empty(_N_STEPS, np.int64)
    shift = 0.0
    scale = 0.0
    for _ in range(_ROUNDS):
        weight_sum = 0.0
        level_sum = 0.0
        square_sum = 0.0
        x_sum = 0.0
        product_sum = 0.0
        for i in range(n):
            weight = trust[i] / (spread[i] * spread[i])
            weight_sum += weight
            level_sum += weight * level[i]
            square_sum += weight * level[i] * level[i]
            x_sum += weight * x[i]
            product_sum += weight * level[i] * x[i]
        determinant = weight_sum * square_sum - level_sum * level_sum
        if not determinant > 0.0:
            return 0.0, 0.0, 0.0
        shift = (square_sum * x_sum - level_sum * product_sum) / determinant
        scale = (weight_sum * product_sum - level_sum * x_sum) / determinant
        for i in range(n):
            sizes[i] = abs(x[i] - shift - scale * level[i]) / spread[i]
        unit = 1.0 / (HALVED * _OF_MEDIAN * _median(sizes, counts))
        for i in range(n):
            z = sizes[i] * unit
            trust[i] = 1.0 / (1.0 + z * z)
    total = 0.0
    for i in range(n):
        total += sizes[i] * sizes[i]
    return shift, scale, math.sqrt(total / n)


@inner
def fit_read(event_mean, first_event, last_event, plain, changed, probability, model, least_events):
    """Fit shift, scale and var of one read as float64, all 0 with too few usable k-mers."""
    k = model.k
    n_kmers = plain.shape[0] - k + 1
    ranks = np.empty((2, n_kmers), np.int64)
    fill_ranks(plain, k, False, n_kmers, ranks[0])
    fill_ranks(changed, k, False, n_kmers, ranks[1])
    x = np.empty(n_kmers, np.float64)
    level = np.empty(n_kmers, np.float64)
    spread = np.empty(n_kmers, np.float64)
    n = 0
    for j in range(n_kmers):
        if first_event[j] < 0 or abs(last_event[j] - first_event[j]) + 1 >= MOST_EVENTS:
            continue
        total = 0.0
        sites = 0
        for q in range(j, j + k):
            if probability[q] >= 0.0:
                total += probability[q]
                sites += 1
        p = total / sites if sites > 0 else 0.0
        low = np.float64(model.level_mean[ranks[0, j]])
        high = np.float64(model.level_mean[ranks[1, j]])
        a = np.float64(model.level_stdv[ranks[0, j]])
        b = np.float64(model.level_stdv[ranks[1, j]])
        x[n] = event_mean[first_event[j]]
        level[n] = (1.0 - p) * low + p * high
        spread[n] = math.sqrt((1.0 - p) * a * a + p * b * b + p * (1.0 - p) * (high - low) * (high - low))
        n += 1
    if n < least_events:
        return 0.0, 0.0, 0.0
    return fit_robust(x[:n], level[:n], spread[:n])


@kernel
def rescale_all(queue, reads, batch, bases, model, motifs, least_events, calls):
    """Change the scaling of `reads`; those with fewer usable k-mers than `least_events` keep it.

    Parameters
    ----------
    bases : uint8
        Letters of the reads as sequenced.
    """
    alignments, base_map, events = batch.alignments, batch.base_map, batch.events
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        first = calls.offsets[read]
        end = first + calls.n[read]
        own = slice(base_map.offsets[read], base_map.offsets[read + 1])
        length = own.stop - own.start
        if end == first or length < model.k:
            continue
        reverse = alignments.reverse[read]
        plain = np.empty(length, np.uint8)
        changed = np.empty(length, np.uint8)
        fill_plain(bases[own], 0, length, motifs[0], False, plain)
        fill_methylated(bases[own], 0, length, motifs[0], True, plain, changed)
        places = np.empty(length, np.int64)
        cigar = alignments.cigar[alignments.cigar_offsets[read] : alignments.cigar_offsets[read + 1]]
        _reference_of(cigar, alignments.start[read], reverse, places)
        probability = np.empty(length, np.float64)
        offset = motifs[1 if reverse else 0].offset
        site_probabilities(places, plain, changed, offset, calls, first, end, probability)
        shift, scale, var = fit_read(
            events.mean[events.offsets[read] : events.offsets[read + 1]], base_map.first_event[own],
            base_map.last_event[own], plain, changed, probability, model, least_events,
        )  # fmt: skip
        if scale > 0.0 and var > 0.0:
            batch.scaling.shift[read] = np.float32(shift)
            batch.scaling.scale[read] = np.float32(scale)
            batch.scaling.var[read] = np.float32(var)


def rescale_reads(
    batch: ReadBatch, motif: Motif, model: PoreModel, pool: WorkerPool, least_events: int
) -> tuple[Scaling, float]:
    """Fit the reads of a batch again, by its calls of groups; return the scaling and thread seconds.

    Reads with fewer usable k-mers than `least_events` keep their fit.
    """
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
