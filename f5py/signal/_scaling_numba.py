"""Jitted loops of scaling; see `f5py.signal.scaling` for what they compute."""

import math

import numpy as np

from f5py.jit.kernel import exact_inner


@exact_inner
def estimate_scaling(event_mean, kmer_rank, level_mean):
    """Shift and scale of one read by the method of moments, as float32."""
    n_events = event_mean.shape[0]
    n_kmers = kmer_rank.shape[0]
    level_sum = 0.0
    level_square_sum = 0.0
    for j in range(n_kmers):
        level = np.float64(level_mean[kmer_rank[j]])
        level_sum += level
        level_square_sum += level * level
    event_sum = 0.0
    for e in range(n_events):
        event_sum += np.float64(event_mean[e])
    shift = event_sum / n_events - level_sum / n_kmers
    centred_square_sum = 0.0
    for e in range(n_events):
        centred = np.float64(event_mean[e]) - shift
        centred_square_sum += centred * centred
    scale = (centred_square_sum / n_events) / (level_square_sum / n_kmers)
    return np.float32(shift), np.float32(scale)


@exact_inner
def recalibrate(event_mean, kmer_rank, first_event, level_mean, level_stdv):
    """Weighted least squares of one read's event means on the levels of their k-mers.

    Returns the number of events used, and shift, scale and var as float32. An event is used if its k-mer differs
    from the k-mer of the event visited before it.
    """
    chosen = np.empty(kmer_rank.shape[0], np.int64)
    used = 0
    previous_rank = -1
    for j in range(kmer_rank.shape[0]):
        # Only a k-mer's first event can be used: later ones follow an event of the same k-mer.
        if first_event[j] >= 0:
            if kmer_rank[j] != previous_rank:
                chosen[used] = j
                used += 1
            previous_rank = kmer_rank[j]

    weight_sum = 0.0
    level_sum = 0.0
    level_square_sum = 0.0
    event_sum = 0.0
    product_sum = 0.0
    for i in range(used):
        rank = kmer_rank[chosen[i]]
        level = np.float64(level_mean[rank])
        stdv = np.float64(level_stdv[rank])
        weight = 1.0 / (stdv * stdv)
        x = np.float64(event_mean[first_event[chosen[i]]])
        weight_sum += weight
        level_sum += weight * level
        level_square_sum += weight * level * level
        event_sum += weight * x
        product_sum += weight * level * x
    determinant = weight_sum * level_square_sum - level_sum * level_sum
    if used == 0 or determinant == 0.0:
        return 0, np.float32(0.0), np.float32(0.0), np.float32(0.0)
    shift = (level_square_sum * event_sum - level_sum * product_sum) / determinant
    scale = (weight_sum * product_sum - level_sum * event_sum) / determinant

    residual_sum = 0.0
    for i in range(used):
        rank = kmer_rank[chosen[i]]
        residual = np.float64(event_mean[first_event[chosen[i]]]) - shift - scale * np.float64(level_mean[rank])
        residual /= np.float64(level_stdv[rank])
        residual_sum += residual * residual
    return used, np.float32(shift), np.float32(scale), np.float32(math.sqrt(residual_sum / used))


@exact_inner
def fill_ranks(bases, k, codes, ranks):
    """Ranks of a read's k-mers over the alphabet ACGT, `codes` being those of the letters; uint8 to int32."""
    n_bases = bases.shape[0]
    kept = (1 << (2 * k)) - 1
    rank = 0
    for i in range(n_bases):
        rank = ((rank << 2) | codes[bases[i]]) & kept
        if i >= k - 1:
            ranks[i - k + 1] = rank
