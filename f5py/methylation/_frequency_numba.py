"""Jitted loops behind `f5py.methylation.frequency`: call rows to counts per site."""

from __future__ import annotations

import numpy as np

from f5py.accelerate import exact_kernel
from f5py.io._byte_masks_numba import LANES, lowest_bit
from f5py.methylation._site_table_numba import (
    AT,
    DONE,
    FULL,
    LINE,
    MAX_COLUMNS,
    MAX_INT,
    N_NAMES,
    N_SITES,
    NEEDED,
    NOTABLE,
    SLOTS_PER_ENTRY,
    UNUSUAL,
    decimal,
    find_name,
    find_site,
    motif_starts,
    natural,
    next_row,
    same_text,
)

#: What `list_sites` stopped for besides `DONE`, `FULL` and `UNUSUAL`: a row that disagrees with its sequence.
OTHER_SITES = 3

_PLUS = np.uint8(ord("+"))
_MINUS = np.uint8(ord("-"))


@exact_kernel
def count_rows(
    text, end, n_columns, threshold, per_site, split, patterns, patterns_reverse, odd_ratio, has_odd_ratio,
    state, sites, names,
):  # fmt: skip
    """Count the calls in ``text[state[AT]:end]``, which consists of whole lines; `PADDING` more bytes must follow.

    `state` is updated to the line at which the function stopped; ``state[NOTABLE]`` counts the split groups with
    another number of motifs than their row says. `odd_ratio` replaces the first row's ratio if `has_odd_ratio`, for
    numbers that only Python reads. Returns `DONE`, `FULL` or `UNUSUAL`.
    """
    starts = np.empty(MAX_COLUMNS, np.int64)
    ends = np.empty(MAX_COLUMNS, np.int64)
    with_strand = n_columns - 10
    width = patterns.shape[1]
    slots, site_names, spans, group_sizes, called, methylated, text_starts, text_sizes, texts = sites
    name_slots, name_ends, name_text = names
    at = state[AT]
    line = state[LINE]
    n_sites = state[N_SITES]
    n_names = state[N_NAMES]
    text_end = text_starts[n_sites]
    name = np.int64(-1)
    site = np.int64(-1)
    status = DONE
    block = at - LANES
    separators = np.uint64(0)
    while at < end:
        columns, behind_row, block, separators = next_row(text, at, block, separators, starts, ends)
        if columns != n_columns:
            status = UNUSUAL
            break
        position = natural(text, starts[with_strand + 1], ends[with_strand + 1], MAX_INT)
        last = natural(text, starts[with_strand + 2], ends[with_strand + 2], MAX_INT)
        number = natural(text, starts[n_columns - 2], ends[n_columns - 2], MAX_INT)
        if has_odd_ratio:
            ratio, plain = odd_ratio, True
        else:
            ratio, plain = decimal(text, starts[with_strand + 4], ends[with_strand + 4])
        if position < 0 or last < 0 or number < 0 or not plain:
            status = UNUSUAL
            break
        needed_ratio = threshold * number if per_site else threshold
        if not abs(ratio) < needed_ratio:  # not-a-number is kept
            first, behind = starts[n_columns - 1], ends[n_columns - 1]
            is_group = split and number > 1
            if is_group and position + behind - first > MAX_INT:
                status = UNUSUAL
                break
            needed = behind - first if is_group else 1
            if (
                (n_sites + needed) * SLOTS_PER_ENTRY > slots.shape[0]
                or (n_names + 1) * SLOTS_PER_ENTRY > name_slots.shape[0]
                or text_end + behind - first > texts.shape[0]
                or name_ends[n_names] + ends[0] - starts[0] > name_text.shape[0]
            ):
                state[NEEDED] = needed
                status = FULL
                break
            if name < 0 or not same_text(name_text, name_ends[name], name_ends[name + 1], text, starts[0], ends[0]):
                name = find_name(name_slots, name_ends, name_text, n_names, text, starts[0], ends[0])
                n_names = max(n_names, name + 1)
            is_methylated = ratio > 0.0
            if is_group:
                origin = np.int64(-1)
                n_found = 0
                is_reverse = with_strand and text[starts[1]] == _MINUS
                strand_patterns = patterns_reverse if is_reverse else patterns
                for window in range(first, behind - width + 1, LANES):
                    found = motif_starts(text, window, strand_patterns)
                    while found != 0:
                        motif = window + lowest_bit(found)
                        found &= found - np.uint64(1)
                        if motif > behind - width:
                            break
                        if origin < 0:
                            origin = motif
                        n_found += 1
                        place = position + motif - origin
                        site = find_site(slots, site_names, spans, n_sites, site + 1, name, place << 32 | place)
                        if site == n_sites:
                            n_sites += 1
                            group_sizes[site] = 1
                            called[site] = methylated[site] = 0
                            text_starts[n_sites] = text_end
                            text_sizes[site] = 0
                        called[site] += 1
                        methylated[site] += is_methylated
                state[NOTABLE] += n_found != number
            else:
                site = find_site(slots, site_names, spans, n_sites, site + 1, name, position << 32 | last)
                if site == n_sites:
                    n_sites += 1
                    group_sizes[site] = number
                    called[site] = methylated[site] = 0
                    for i in range(behind - first):
                        texts[text_end + i] = text[first + i]
                    text_sizes[site] = behind - first
                    text_end += behind - first
                    text_starts[n_sites] = text_end
                called[site] += number
                methylated[site] += number * is_methylated
        has_odd_ratio = False
        line += 1
        at = behind_row + 1
    state[AT] = at
    state[LINE] = line
    state[N_SITES] = n_sites
    state[N_NAMES] = n_names
    return status


@exact_kernel
def list_sites(
    text, end, n_columns, patterns, patterns_reverse, odd_ratio, has_odd_ratio, state, names,
    contig, start, reverse, ratios, sizes,
):  # fmt: skip
    """List the sites of the calls in ``text[state[AT]:end]`` one by one, groups taken apart.

    As `count_rows`, with ``state[N_SITES]`` entries in the arrays from `contig` on. A row whose sequence does not
    hold as many motifs as it says, or the last one not where it says, stops with `OTHER_SITES`. A sequence that ends
    within its last motif does not hold that; then the row's end tells where it is.
    """
    starts = np.empty(MAX_COLUMNS, np.int64)
    ends = np.empty(MAX_COLUMNS, np.int64)
    with_strand = n_columns - 10
    width = patterns.shape[1]
    name_slots, name_ends, name_text = names
    at = state[AT]
    line = state[LINE]
    n_sites = state[N_SITES]
    n_names = state[N_NAMES]
    name = np.int64(-1)
    status = DONE
    block = at - LANES
    separators = np.uint64(0)
    while at < end:
        columns, behind_row, block, separators = next_row(text, at, block, separators, starts, ends)
        if columns != n_columns:
            status = UNUSUAL
            break
        position = natural(text, starts[with_strand + 1], ends[with_strand + 1], MAX_INT)
        last = natural(text, starts[with_strand + 2], ends[with_strand + 2], MAX_INT)
        number = natural(text, starts[n_columns - 2], ends[n_columns - 2], MAX_INT)
        if has_odd_ratio:
            ratio, plain = odd_ratio, True
        else:
            ratio, plain = decimal(text, starts[with_strand + 4], ends[with_strand + 4])
        first, behind = starts[n_columns - 1], ends[n_columns - 1]
        if position < 0 or last < 0 or number < 0 or not plain or position + behind - first > MAX_INT:
            status = UNUSUAL
            break
        is_reverse = False
        if with_strand:
            strand = text[starts[1]]
            is_reverse = strand == _MINUS
            if ends[1] - starts[1] != 1 or (strand != _MINUS and strand != _PLUS):
                status = UNUSUAL
                break
        if (
            n_sites + behind - first + 1 > start.shape[0]
            or (n_names + 1) * SLOTS_PER_ENTRY > name_slots.shape[0]
            or name_ends[n_names] + ends[0] - starts[0] > name_text.shape[0]
        ):
            state[NEEDED] = behind - first + 1
            status = FULL
            break
        if name < 0 or not same_text(name_text, name_ends[name], name_ends[name + 1], text, starts[0], ends[0]):
            name = find_name(name_slots, name_ends, name_text, n_names, text, starts[0], ends[0])
            n_names = max(n_names, name + 1)
        strand_patterns = patterns_reverse if is_reverse else patterns
        origin = np.int64(-1)
        n_found = np.int64(0)
        for window in range(first, behind - width + 1, LANES):
            found = motif_starts(text, window, strand_patterns)
            while found != 0:
                motif = window + lowest_bit(found)
                found &= found - np.uint64(1)
                if motif > behind - width:
                    break
                if origin < 0:
                    origin = motif
                start[n_sites + n_found] = position + motif - origin
                n_found += 1
        if number == 1:
            # the sequence may show neighbours that were called on their own
            if n_found > 0 or 2 * width > behind - first + 1:
                n_found = np.int64(1)
                start[n_sites] = position
        elif n_found == number - 1 and n_found > 0 and origin + last - position > behind - width:
            start[n_sites + n_found] = last
            n_found += 1
        if n_found != number or (number > 0 and start[n_sites + number - 1] != last):
            status = OTHER_SITES
            break
        for which in range(n_sites, n_sites + n_found):
            contig[which] = name
            reverse[which] = is_reverse
            ratios[which] = ratio
            sizes[which] = number
        n_sites += n_found
        has_odd_ratio = False
        line += 1
        at = behind_row + 1
    state[AT] = at
    state[LINE] = line
    state[N_SITES] = n_sites
    state[N_NAMES] = n_names
    return status
