"""Jitted loops that find site groups and score them; see `f5py.methylation.calls`."""

from __future__ import annotations

import numpy as np

from f5py import simd
from f5py.accelerate import kernel
from f5py.methylation._hmm_numba import forward_lanes

#: Consecutive sites at most this far apart form one group; as many bases flank a group on both sides.
_SEPARATION = 10
_FLANK = 10
_MAX_SPAN = 200
_MIN_EVENTS = 10  # groups must span more events than this
_LOOK_AROUND = 1000  # k-mers searched for an event
_LN_INVERSE_SQRT_2PI = -0.918938
_LOG2_E = 1.4426950408889634
_CODES = 5  # letters of the methylation alphabet

_MATCH, _INSERTION, _DELETION, _SKIP, _SOFT_CLIP, _HARD_CLIP, _PAD, _EQUAL, _MISMATCH = range(9)


@kernel
def _site_at(segment, position, patterns):
    """Index of the recognition site that starts at `position`, or -1."""
    if position + patterns.shape[1] > segment.shape[0]:
        return -1
    for p in range(patterns.shape[0]):
        same = True
        for i in range(patterns.shape[1]):
            if segment[position + i] != patterns[p, i]:
                same = False
                break
        if same:
            return p
    return -1


@kernel
def count_groups(segment, patterns):
    """Number of site groups in a reference segment, callable or not."""
    count = 0
    last = -_SEPARATION - 1
    for position in range(segment.shape[0]):
        if segment[position] == patterns[0, 0] and _site_at(segment, position, patterns) >= 0:
            if position - last > _SEPARATION:
                count += 1
            last = position
    return count


@kernel
def _closest_event(first_event, kmer):
    """First event of the nearest k-mer that has one: the k-mer itself, earlier ones, then later ones; or -1.

    The far end of each search is excluded, as in the reference.
    """
    n_kmers = first_event.shape[0]
    if kmer < 0 or kmer >= n_kmers:
        return -1
    for j in range(kmer, max(0, kmer - _LOOK_AROUND), -1):
        if first_event[j] >= 0:
            return first_event[j]
    for j in range(kmer, min(kmer + _LOOK_AROUND, n_kmers - 1)):
        if first_event[j] >= 0:
            return first_event[j]
    return -1


@kernel
def _aligned_pairs(cigar, reference_start, read_length, k, pair_reference, pair_read):
    """List the (reference, read) positions of aligned bases that start a usable k-mer; return their number."""
    reference = np.int64(reference_start)
    read = np.int64(0)
    count = 0
    for c in range(cigar.shape[0]):
        operation = cigar[c] & 15
        length = np.int64(cigar[c] >> 4)
        if operation in (_MATCH, _EQUAL, _MISMATCH):
            first = min(max(k - read, 0), length)
            end = min(read_length - k - read, length)
            for i in range(first, end):
                pair_reference[count] = reference + i
                pair_read[count] = read + i
                count += 1
            reference += length
            read += length
        elif operation in (_DELETION, _SKIP):
            reference += length
        elif operation in (_INSERTION, _SOFT_CLIP, _HARD_CLIP):
            read += length
    return count


@kernel
def _fill_codes(segment, first, length, letter_codes, complement, patterns, methylated, reverse, plain, changed):
    """Codes of ``segment[first:first + length]`` on the read's strand, as they are and with every site methylated.

    On the reverse strand each position holds the code of the base opposite to it.
    """
    for i in range(length):
        code = letter_codes[segment[first + i]]
        if reverse:
            code = complement[code]
        plain[i] = code
        changed[i] = code
    width = patterns.shape[1]
    i = 0
    while i + width <= length:
        p = _site_at(segment[first : first + length], i, patterns)
        if p >= 0:
            for s in range(width):
                changed[i + s] = methylated[p, s]
            i += width
        else:
            i += 1


@kernel
def _fill_lane(
    codes, k, reverse, n_kmers, lane, level_mean, level_stdv, ln_stdv, scale, shift, var, inverse, offset, constant
):
    """Emission parameters of one hypothesis' k-mers, in lane `lane`."""
    ln_var = np.log(var)
    highest = 1
    for _ in range(k - 1):
        highest *= _CODES
    rank = 0
    # Ranks roll along the sequence: a new base enters at one end of the k-mer and the oldest leaves at the other.
    for i in range(k - 1):
        rank = rank // _CODES + codes[i] * highest if reverse else rank * _CODES + codes[i]
    for j in range(n_kmers):
        code = codes[j + k - 1]
        rank = rank // _CODES + code * highest if reverse else (rank % highest) * _CODES + code
        at = j * simd.LANES + lane
        stretch = np.float32(np.sqrt(0.5 * _LOG2_E)) / (level_stdv[rank] * var)
        inverse[at] = stretch
        offset[at] = -(scale * level_mean[rank] + shift) * stretch
        constant[at] = (np.float32(_LN_INVERSE_SQRT_2PI) - ln_stdv[rank] - ln_var) * np.float32(_LOG2_E)


@kernel
def _sort_pass(digits, n_digits, order):
    """One stable counting-sort pass over `order` by ``digits[order]``, values below `n_digits`."""
    starts = np.zeros(n_digits + 1, np.int64)
    for g in range(digits.shape[0]):
        starts[digits[g] + 1] += 1
    for d in range(n_digits):
        starts[d + 1] += starts[d]
    result = np.empty_like(order)
    for i in range(order.shape[0]):
        d = digits[order[i]]
        result[starts[d]] = order[i]
        starts[d] += 1
    return result


@kernel
def _order_by_size(order_key, max_bases, max_events):
    """Groups ordered by bases, then events. (`np.argsort` would do, but takes two seconds to compile.)"""
    order = np.arange(order_key.shape[0])
    order = _sort_pass(order_key & 0xFFFFFFFF, max_events + 1, order)
    return _sort_pass(order_key >> 32, max_bases + 1, order)


@kernel
def call_read(
    segment,
    reference_start,
    cigar,
    reverse,
    event_mean,
    first_event,
    read_length,
    shift,
    scale,
    var,
    events_per_base,
    k,
    level_mean,
    level_stdv,
    ln_stdv,
    letter_codes,
    complement,
    patterns,
    methylated,
    group_first,
    group_last,
    group_sites,
    score_methylated,
    score_unmethylated,
):
    """Find and score the site groups of one read; return their number.

    Parameters
    ----------
    segment : uint8
        Upper-case reference bases from `reference_start` on, one base past the alignment's end.
    cigar : uint32
        As BAM stores it: length times 16 plus operation.
    first_event : int32, shape (n_kmers,)
        First event of each k-mer of the read as sequenced, or -1.
    letter_codes : uint8, shape (256,); complement : uint8, shape (5,)
        Base letters to codes in the methylation alphabet, and codes to those of the opposite bases.
    patterns, methylated : uint8, shape (n_sites, site_length)
        Recognition sites as letters; codes of the methylated site on the read's strand, position by position.
    group_first, group_last : int64; group_sites : int32; score_methylated, score_unmethylated : float32
        Filled with one entry a group: reference positions of its first and last site, number of sites,
        log-likelihoods.
    """
    length = segment.shape[0]
    matched = np.int64(0)
    for c in range(cigar.shape[0]):
        operation = cigar[c] & 15
        if operation in (_MATCH, _EQUAL, _MISMATCH):
            matched += np.int64(cigar[c] >> 4)
    pair_reference = np.empty(matched, np.int64)
    pair_read = np.empty(matched, np.int64)
    n_pairs = _aligned_pairs(cigar, reference_start, read_length, k, pair_reference, pair_read)
    if n_pairs == 0:
        return 0
    if reverse:
        for i in range(n_pairs):
            pair_read[i] = read_length - pair_read[i] - k
    if _closest_event(first_event, pair_read[0]) == _closest_event(first_event, pair_read[n_pairs - 1]):
        return 0

    capacity = group_first.shape[0]
    event_begin = np.empty(capacity, np.int64)
    event_end = np.empty(capacity, np.int64)
    count = 0
    pair_a = 0
    pair_b = 0
    position = 0
    while position < length:
        if segment[position] != patterns[0, 0] or _site_at(segment, position, patterns) < 0:
            position += 1
            continue
        first = position
        last = position
        sites = 1
        position += 1
        while position < length and position - last <= _SEPARATION:
            if segment[position] == patterns[0, 0] and _site_at(segment, position, patterns) >= 0:
                last = position
                sites += 1
            position += 1
        if first - _FLANK <= _FLANK or last - first > _MAX_SPAN:
            continue
        begin = reference_start + first - _FLANK
        end = reference_start + last + _FLANK
        while pair_a < n_pairs and pair_reference[pair_a] < begin:
            pair_a += 1
        pair_b = max(pair_b, pair_a)
        while pair_b < n_pairs and pair_reference[pair_b] < end:
            pair_b += 1
        if pair_b == n_pairs:
            break
        if pair_reference[pair_a] != begin and pair_a == 0:
            continue
        e1 = _closest_event(first_event, pair_read[pair_a])
        e2 = _closest_event(first_event, pair_read[pair_b])
        if e1 < 0 or e2 < 0 or abs(e2 - e1) <= _MIN_EVENTS:
            continue
        event_begin[count] = e1
        event_end[count] = e2
        group_first[count] = first
        group_last[count] = last
        group_sites[count] = sites
        count += 1
    if count == 0:
        return 0

    # Lanes of one pack should have like numbers of k-mers and events: order by both.
    order_key = np.empty(count, np.int64)
    max_events = 0
    max_bases = 0
    for g in range(count):
        n_events = abs(event_end[g] - event_begin[g]) + 1
        n_bases = min(group_last[g] + _FLANK + 1, length) - (group_first[g] - _FLANK)
        order_key[g] = (n_bases << 32) + n_events
        max_events = max(max_events, n_events)
        max_bases = max(max_bases, n_bases)
    order = _order_by_size(order_key, max_bases, max_events)

    max_kmers = max_bases - k + 1
    plain = np.empty(max_bases, np.uint8)
    changed = np.empty(max_bases, np.uint8)
    inverse = np.empty(max_kmers * simd.LANES, np.float32)
    offset = np.empty(max_kmers * simd.LANES, np.float32)
    constant = np.empty(max_kmers * simd.LANES, np.float32)
    events = np.empty(max_events * simd.LANES, np.float32)
    work = np.empty(3 * max_kmers * simd.LANES, np.float32)
    ends = np.empty(max_events * simd.LANES, np.float32)
    scales = np.empty(max_events * simd.LANES, np.float32)
    scores = np.empty(simd.LANES, np.float32)
    lane_events = np.empty(simd.LANES, np.int64)
    lane_kmers = np.empty(simd.LANES, np.int64)
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
            begin = group_first[g] - _FLANK
            n_bases = order_key[g] >> 32
            n_events = order_key[g] & 0xFFFFFFFF
            n_kmers = n_bases - k + 1
            _fill_codes(
                segment, begin, n_bases, letter_codes, complement, patterns, methylated, reverse, plain, changed
            )
            for hypothesis in range(2):
                lane = 2 * slot + hypothesis
                _fill_lane(
                    changed if hypothesis == 0 else plain, k, reverse, n_kmers, lane, level_mean, level_stdv,
                    ln_stdv, scale, shift, var, inverse, offset, constant,
                )  # fmt: skip
                for j in range(n_kmers, pack_kmers):
                    at = j * simd.LANES + lane
                    inverse[at] = inverse[at - simd.LANES]
                    offset[at] = offset[at - simd.LANES]
                    constant[at] = constant[at - simd.LANES]
                lane_events[lane] = n_events
                lane_kmers[lane] = n_kmers
            stride = 1 if event_begin[g] < event_end[g] else -1
            for row in range(pack_rows):
                x = event_mean[event_begin[g] + stride * min(row, n_events - 1)]
                events[row * simd.LANES + 2 * slot] = x
                events[row * simd.LANES + 2 * slot + 1] = x
        forward_lanes(
            events, inverse, offset, constant, lane_events, lane_kmers, events_per_base, work, ends, scales, scores
        )
        for slot in range(min(groups_per_pack, count - pack)):
            g = order[pack + slot]
            score_methylated[g] = scores[2 * slot]
            score_unmethylated[g] = scores[2 * slot + 1]

    simd.restore_mode(mode)

    for g in range(count):
        group_first[g] += reference_start
        group_last[g] += reference_start
    return count
