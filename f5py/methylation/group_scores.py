"""Scores of site groups; see `f5py.methylation.calls`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import segment_of
from f5py.core.hmm import LN_INVERSE_SQRT_2PI
from f5py.jit import simd
from f5py.jit.c_memory import aligned_floats
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation.groups import is_site
from f5py.methylation.hmm import LOG2_E, NEVER, Emissions, ForwardScratch, forward_lanes, work_size

#: Most and fewest groups sorted together, of several reads, to fill packs with groups of like size.
TOGETHER, _LEAST_TOGETHER, _PARTS = 2048, 256, 64
#: Letters of the methylation alphabet ACGMT, and the code of M.
CODES = 5
METHYLATED = 3


class Scores(NamedTuple):
    """Log-likelihoods of groups or sites, natural logarithms."""

    methylated: NDArray[np.float32]  # shape (>= n,)
    unmethylated: NDArray[np.float32]  # shape (>= n,)


@inner
def fill_plain(segment, first, length, motif, reverse, plain):
    """Fill the codes of ``segment[first:first + length]`` on the read's strand.

    On the reverse strand each position holds the code of the complementary base.
    """
    for i in range(length):
        code = motif.letter_codes[segment[first + i]]
        plain[i] = motif.complement[code] if reverse else code


@inner
def fill_methylated(segment, first, length, motif, overlapping, plain, changed):
    """Methylate the sites of the codes in `plain`, from left to right.

    Without `overlapping`, sites that overlap the preceding one are skipped, as in nanopolish.
    """
    for i in range(length):
        changed[i] = plain[i]
    i = 0
    while i + motif.masks.shape[0] <= length:
        if is_site(segment, first + i, motif):
            changed[i + motif.offset] = METHYLATED
            i += 1 if overlapping else motif.masks.shape[0]
        else:
            i += 1


@inner
def fill_emissions(kmers, model, fits, emissions):
    """Fill the emissions of k-mers by rank (int64), lane by lane; of ranks below 0 they are zero.

    `fits` are vectors of shift, scale, var and ln(var) of each lane's read. The number of `kmers` is a multiple of 16.
    """
    inverse, offset, constant = emissions
    for at in range(kmers.shape[0]):
        rank = kmers[at]
        if rank >= 0:
            inverse[at] = model.level_stdv[rank]
            offset[at] = model.level_mean[rank]
            constant[at] = model.ln_stdv[rank]
        else:
            inverse[at] = np.inf
            offset[at] = 0.0
            constant[at] = -NEVER
    shift, scale, var, ln_var = fits
    numerator = simd.splat(np.float32(np.sqrt(0.5 * LOG2_E)))
    ln_constant, log2_e = simd.splat(np.float32(LN_INVERSE_SQRT_2PI)), simd.splat(np.float32(LOG2_E))
    zero = simd.splat(np.float32(0.0))
    for at in range(0, kmers.shape[0], simd.LANES):
        stretch = numerator / (simd.load(inverse, at) * var)
        simd.store(inverse, at, stretch)
        simd.store(offset, at, (zero - simd.madd(scale, simd.load(offset, at), shift)) * stretch)
        simd.store(constant, at, (ln_constant - simd.load(constant, at) - ln_var) * log2_e)


@inner
def fill_ranks(codes, k, reverse, n_kmers, ranks):
    """Fill the rank of each k-mer of the read's strand, in forward order."""
    highest = 1
    for _ in range(k - 1):
        highest *= CODES
    rank = 0
    # rolling ranks
    for i in range(k - 1):
        rank = rank // CODES + codes[i] * highest if reverse else rank * CODES + codes[i]
    for j in range(n_kmers):
        code = codes[j + k - 1]
        rank = rank // CODES + code * highest if reverse else rank * CODES + code
        ranks[j] = rank
        if not reverse:
            rank -= codes[j] * highest


@inner
def sort_by_digit(key, shift, mask, n_digits, order, result):
    """Sort `order` stably by a digit, ``key[order] >> shift & mask``, below `n_digits`, into `result`.

    Several passes replace `np.argsort`, which takes two seconds to compile.
    """
    starts = np.zeros(n_digits + 1, np.int64)
    for g in range(key.shape[0]):
        starts[(key[g] >> shift & mask) + 1] += 1
    for d in range(n_digits):
        starts[d + 1] += starts[d]
    for i in range(order.shape[0]):
        d = key[order[i]] >> shift & mask
        result[starts[d]] = order[i]
        starts[d] += 1


@inner
def _score_block(batch, model, motifs, noise, overlapping, slots, reads, windows, scores):
    """Score groups; see `score_groups`."""
    alignments, events_of_reads, scaling = batch.alignments, batch.events, batch.scaling
    starts, all_bases, begins, ends = windows
    score_methylated, score_unmethylated = scores
    k = model.k
    count = slots.shape[0]
    # the lanes of a pack need like numbers of k-mers and events
    order_key = np.empty(count, np.int64)
    orders = np.empty((3, count), np.int64)
    max_events, max_bases = np.int64(0), np.int64(0)
    for g in range(count):
        n_events = abs(np.int64(ends[slots[g]]) - begins[slots[g]]) + 1
        n_bases = np.int64(all_bases[slots[g]])
        order_key[g] = (n_bases << 32) + n_events
        orders[0, g] = g
        max_events, max_bases = max(max_events, n_events), max(max_bases, n_bases)
    mask = np.int64(0xFFFFFFFF)
    # literal shifts would compile the pass twice
    sort_by_digit(order_key, np.int64(0), mask, max_events + 1, orders[0], orders[1])
    sort_by_digit(order_key, np.int64(32), mask, max_bases + 1, orders[1], orders[2])
    order = orders[2]

    max_kmers = max_bases - k + 1
    codes = np.empty((2, max_bases), np.uint8)
    ranks = np.empty(max_kmers, np.int64)
    kmers = np.empty(max_kmers * simd.LANES, np.int64)
    emissions = Emissions(
        aligned_floats(max_kmers * simd.LANES), aligned_floats(max_kmers * simd.LANES),
        aligned_floats(max_kmers * simd.LANES),
    )  # fmt: skip
    events = aligned_floats(max_events * simd.LANES)
    scratch = ForwardScratch(
        aligned_floats(work_size(max_kmers)), aligned_floats(max_events * simd.LANES),
        aligned_floats(max_events * simd.LANES),
    )  # fmt: skip
    results = np.empty(simd.LANES, np.float32)
    lane_events = np.empty(simd.LANES, np.int64)
    lane_kmers = np.empty(simd.LANES, np.int64)
    events_per_base = np.empty(simd.LANES, np.float64)
    fits = np.empty(4 * simd.LANES, np.float32)
    groups_per_pack = simd.LANES // 2
    mode = simd.flush_denormals()
    for pack in range(0, count, groups_per_pack):
        pack_rows = 0
        pack_kmers = 0
        for slot in range(groups_per_pack):
            key = order_key[order[min(pack + slot, count - 1)]]
            pack_rows = max(pack_rows, key & 0xFFFFFFFF)
            pack_kmers = max(pack_kmers, (key >> 32) - k + 1)
        for slot in range(groups_per_pack):
            g = order[min(pack + slot, count - 1)]  # an incomplete pack repeats its last group
            read, group = reads[g], slots[g]
            segment, reverse = segment_of(alignments, read), alignments.reverse[read]
            motif = motifs[1 if reverse else 0]
            ln_var = np.float32(np.log(scaling.var[read]))
            window, begin = np.int64(starts[group]), np.int64(begins[group])
            n_bases = order_key[g] >> 32
            n_events = order_key[g] & 0xFFFFFFFF
            n_kmers = n_bases - k + 1
            fill_plain(segment, window, n_bases, motif, reverse, codes[1])
            fill_methylated(segment, window, n_bases, motif, overlapping, codes[1], codes[0])
            for hypothesis in range(2):
                lane = 2 * slot + hypothesis
                fill_ranks(codes[hypothesis], k, reverse, n_kmers, ranks)
                for j in range(pack_kmers):
                    kmers[j * simd.LANES + lane] = ranks[j] if j < n_kmers else -1
                lane_events[lane] = n_events
                lane_kmers[lane] = n_kmers
                events_per_base[lane] = batch.events_per_base[read]
                fits[lane], fits[simd.LANES + lane] = scaling.shift[read], scaling.scale[read]
                fits[2 * simd.LANES + lane] = scaling.var[read]
                fits[3 * simd.LANES + lane] = ln_var
            first_event = events_of_reads.offsets[read] + begin
            stride = 1 if begin < ends[group] else -1
            for row in range(pack_rows):
                x = events_of_reads.mean[first_event + stride * min(row, n_events - 1)]
                events[row * simd.LANES + 2 * slot] = x
                events[row * simd.LANES + 2 * slot + 1] = x
        lane_fits = (
            simd.load(fits, 0), simd.load(fits, simd.LANES), simd.load(fits, 2 * simd.LANES),
            simd.load(fits, 3 * simd.LANES),
        )  # fmt: skip
        fill_emissions(kmers[: pack_kmers * simd.LANES], model, lane_fits, emissions)
        forward_lanes(events, emissions, lane_events, lane_kmers, events_per_base, noise, scratch, results)
        for slot in range(min(groups_per_pack, count - pack)):
            g = slots[order[pack + slot]]
            score_methylated[g], score_unmethylated[g] = results[2 * slot], results[2 * slot + 1]
    simd.restore_mode(mode)


@kernel
def score_groups(queue, blocks, size, batch, model, motifs, noise, overlapping, slots, reads, windows, scores):
    """Compute log-likelihoods of groups with all sites methylated and with none.

    Parameters
    ----------
    blocks : int64
        First groups of tasks of `size` groups.
    overlapping : bool
        See `fill_methylated`.
    slots, reads : int64, shape (n,)
        Index of each group in windows and scores, and its read.
    """
    for i in claimed_indices(work_counter(queue), blocks.shape[0]):
        block = slice(blocks[i], blocks[i] + size)
        _score_block(batch, model, motifs, noise, overlapping, slots[block], reads[block], windows, scores)


def blocks_of(n: int) -> tuple[NDArray[np.int64], int]:
    """Return the first groups of the tasks that score `n` groups, and their size."""
    size = min(max(n // _PARTS, _LEAST_TOGETHER), TOGETHER)
    return np.arange(0, n, size), size
