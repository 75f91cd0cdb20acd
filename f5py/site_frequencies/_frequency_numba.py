"""Jitted loops of `f5py.site_frequencies.frequency`: call rows to counts per site."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.bits import lowest_bit
from f5py.jit.kernel import exact_kernel, inner
from f5py.site_frequencies._site_table_numba import (
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
    natural,
    next_row,
    same_text,
)
from f5py.text._byte_masks_numba import LANES, where_is
from f5py.text._format_numba import MINUS, PLUS

#: What `list_sites` stopped for besides `DONE`, `FULL` and `UNUSUAL`: a row that disagrees with its sequence.
OTHER_SITES = 3

_FIRST_PLACES = 1 << 10
#: By the bits of `MotifCodes.masks`.
_BASES = np.frombuffer(b"ACGT", np.uint8)
_ALL = np.uint64(2**64 - 1)


@inner
def _motif_starts(text, window, masks):
    """Mark the places in ``text[window : window + LANES]`` at which the motif begins."""
    found = _ALL
    for i in range(masks.shape[0]):
        here = np.uint64(0)
        for bit in range(4):
            if masks[i] >> bit & 1:
                here |= where_is(text, window + i, _BASES[bit])
        found &= here
    return found


@inner
def _begins_motif(text, start, end, masks):
    """Return whether ``text[start:end]`` is how the motif begins."""
    same = start < end
    i = 0
    while same and start + i < end:
        bases = np.uint8(0)
        for bit in range(4):
            if text[start + i] == _BASES[bit]:
                bases = np.uint8(1 << bit)
        same = bases & masks[i] != 0
        i += 1
    return same


@inner
def group_sites(text, first, stop, position, last, number, masks, starts, n_before):
    """List where the motifs in the sequence ``text[first:stop]`` of a row are; return their number.

    Their positions go to `starts` from `n_before` on, where ``stop - first + 1`` must fit. The sequence shows k bases
    from the last motif's first one on. If that does not hold a longer motif as a whole, the row's end, `last`, tells
    where it is: it is listed if it is the one that the row counts more, and what is shown is its begin.
    """
    width = masks.shape[0]
    origin = np.int64(-1)  # where the row's start is in the text
    n_found = np.int64(0)
    for window in range(first, stop - width + 1, LANES):
        found = _motif_starts(text, window, masks)
        while found != 0:
            motif = window + lowest_bit(found)
            found &= found - np.uint64(1)
            if motif > stop - width:
                break
            if origin < 0:
                origin = motif
            starts[n_before + n_found] = position + motif - origin
            n_found += 1
    if n_found == number - 1 and n_found > 0:
        motif = origin + last - position
        if motif > stop - width and _begins_motif(text, motif, stop, masks):
            starts[n_before + n_found] = last
            n_found += 1
    return n_found


@exact_kernel
def count_without_sites(text, text_starts, text_sizes, firsts, lasts, numbers, masks_forward, masks_reverse):
    """Count the rows whose sequence holds fewer motifs than they say, on whichever strand it holds more.

    Parameters
    ----------
    text : uint8
        With `PADDING` more bytes behind the last sequence.
    text_starts, text_sizes : int64 and int32, shape (n,)
        Of the sequences; rows without one are not counted.
    firsts, lasts : int64, shape (n,)
        0-based positions of the first and the last motif.
    numbers : int32, shape (n,)
        Of motifs, as the rows say.
    masks_forward, masks_reverse : uint8
        Of the motif, see `f5py.core.motifs.MotifCodes`.
    """
    starts = np.empty(_FIRST_PLACES, np.int64)
    n_rows = np.int64(0)
    for row in range(len(numbers)):
        first, size, number = text_starts[row], np.int64(text_sizes[row]), np.int64(numbers[row])
        if size + 1 > starts.shape[0]:
            starts = np.empty(2 * (size + 1), np.int64)
        stop = first + size
        is_short = size > 0
        for masks in (masks_forward, masks_reverse):
            is_short &= group_sites(text, first, stop, firsts[row], lasts[row], number, masks, starts, 0) < number
        n_rows += is_short
    return n_rows


class Counting(NamedTuple):
    """How calls are counted."""

    n_columns: int  # 11, or 10 without one of strands
    threshold: float  # natural log-likelihood ratio that a call needs
    per_site: bool  # for each of its motifs
    split: bool  # groups are taken apart
    stranded: bool  # the reverse strand is counted apart, too, for which there must be a column of strands
    masks_forward: NDArray[np.uint8]  # of the motif, see `f5py.core.motifs.MotifCodes`
    masks_reverse: NDArray[np.uint8]


class Listed(NamedTuple):
    """Single sites of calls, in the order of the rows."""

    contig: NDArray[np.int32]  # index of the name
    start: NDArray[np.int64]  # 0-based position of the motif's first base
    reverse: NDArray[np.bool_]
    ratio: NDArray[np.float64]  # natural log-likelihood ratio of the call
    size: NDArray[np.int32]  # motifs of the call


@inner
def _row_numbers(text, starts, ends, n_columns, odd_ratio, has_odd_ratio):
    """Parse start, end, number of motifs and ratio of a row; also return whether all of them are plain numbers."""
    at = n_columns - 9
    position = natural(text, starts[at], ends[at], MAX_INT)
    last = natural(text, starts[at + 1], ends[at + 1], MAX_INT)
    number = natural(text, starts[n_columns - 2], ends[n_columns - 2], MAX_INT)
    ratio, plain = odd_ratio, True
    if not has_odd_ratio:
        ratio, plain = decimal(text, starts[at + 3], ends[at + 3])
    return position, last, number, ratio, plain and position >= 0 and last >= 0 and number >= 0


@exact_kernel
def count_rows(text, end, counting, odd_ratio, has_odd_ratio, state, sites, names):
    """Count the calls in ``text[state[AT]:end]``, which are whole lines; return `DONE`, `FULL` or `UNUSUAL`.

    Parameters
    ----------
    text : uint8
        With `PADDING` more bytes behind `end`.
    end : int
    counting : Counting
    odd_ratio : float
        Replaces the first row's ratio if `has_odd_ratio`, for numbers that only Python reads.
    state : int64, shape (STATE_SIZE,)
        Updated to the line at which the function stopped; ``state[NOTABLE]`` counts the split groups with another
        number of motifs than their row says.
    sites : Sites
    names : Names
    """
    n_columns, threshold, per_site, split, stranded, masks_forward, masks_reverse = counting
    starts, ends = np.empty(MAX_COLUMNS, np.int64), np.empty(MAX_COLUMNS, np.int64)
    with_strand = n_columns - 10
    places = np.empty(_FIRST_PLACES, np.int64)
    slots, site_names, spans, group_sizes, called, methylated, text_starts, text_sizes, texts = sites[:9]
    called_reverse, methylated_reverse = sites.called_reverse, sites.methylated_reverse
    name_slots, name_ends, name_text = names
    at, line, n_sites, n_names = state[AT], state[LINE], state[N_SITES], state[N_NAMES]
    text_end = text_starts[n_sites]
    name, site = np.int64(-1), np.int64(-1)
    status = DONE
    block, separators = at - LANES, np.uint64(0)
    while at < end:
        columns, newline, block, separators = next_row(text, at, block, separators, starts, ends)
        if columns != n_columns:
            status = UNUSUAL
            break
        position, last, number, ratio, plain = _row_numbers(text, starts, ends, n_columns, odd_ratio, has_odd_ratio)
        if not plain:
            status = UNUSUAL
            break
        needed_ratio = threshold * number if per_site else threshold
        if not abs(ratio) < needed_ratio:  # not-a-number is kept
            first, stop = starts[n_columns - 1], ends[n_columns - 1]
            is_group = split and number > 1
            if is_group and position + stop - first > MAX_INT:
                status = UNUSUAL
                break
            needed = stop - first + 1 if is_group else 1
            if (
                (n_sites + needed) * SLOTS_PER_ENTRY > slots.shape[0]
                or (n_names + 1) * SLOTS_PER_ENTRY > name_slots.shape[0]
                or text_end + stop - first > texts.shape[0]
                or name_ends[n_names] + ends[0] - starts[0] > name_text.shape[0]
            ):
                state[NEEDED] = needed
                status = FULL
                break
            if name < 0 or not same_text(name_text, name_ends[name], name_ends[name + 1], text, starts[0], ends[0]):
                name = find_name(name_slots, name_ends, name_text, n_names, text, starts[0], ends[0])
                n_names = max(n_names, name + 1)
            is_methylated = ratio > 0.0
            is_reverse = with_strand and text[starts[1]] == MINUS
            if is_group:
                masks = masks_reverse if is_reverse else masks_forward
                if needed > places.shape[0]:
                    places = np.empty(2 * needed, np.int64)
                n_found = group_sites(text, first, stop, position, last, number, masks, places, 0)
                for place in places[:n_found]:
                    site = find_site(slots, site_names, spans, n_sites, site + 1, name, place << 32 | place)
                    if site == n_sites:
                        n_sites += 1
                        group_sizes[site] = 1
                        called[site] = methylated[site] = 0
                        text_starts[n_sites] = text_end
                        text_sizes[site] = 0
                    called[site] += 1
                    methylated[site] += is_methylated
                    if stranded and is_reverse:
                        called_reverse[site] += 1
                        methylated_reverse[site] += is_methylated
                state[NOTABLE] += n_found != number
            else:
                site = find_site(slots, site_names, spans, n_sites, site + 1, name, position << 32 | last)
                if site == n_sites:
                    n_sites += 1
                    group_sizes[site] = number
                    called[site] = methylated[site] = 0
                    for i in range(stop - first):
                        texts[text_end + i] = text[first + i]
                    text_sizes[site] = stop - first
                    text_end += stop - first
                    text_starts[n_sites] = text_end
                called[site] += number
                methylated[site] += number * is_methylated
                if stranded and is_reverse:
                    called_reverse[site] += number
                    methylated_reverse[site] += number * is_methylated
        has_odd_ratio = False
        line += 1
        at = newline + 1
    state[AT], state[LINE], state[N_SITES], state[N_NAMES] = at, line, n_sites, n_names
    return status


@exact_kernel
def list_sites(text, end, counting, odd_ratio, has_odd_ratio, state, names, listed):
    """List the sites of the calls in ``text[state[AT]:end]`` one by one, groups taken apart.

    As `count_rows`, with ``state[N_SITES]`` entries in the arrays of `listed`, which is `Listed`; the threshold does
    not matter. A row whose sequence does not hold as many motifs as it says, or the last one not where it says, stops
    with `OTHER_SITES`; see `group_sites`.

    Parameters
    ----------
    text, end, counting, odd_ratio, has_odd_ratio, state, names
        See `count_rows`.
    listed : Listed
        Filled; with room for a motif at every letter of a row.
    """
    n_columns, masks_forward, masks_reverse = counting.n_columns, counting.masks_forward, counting.masks_reverse
    contig, start, reverse, ratios, sizes = listed
    starts, ends = np.empty(MAX_COLUMNS, np.int64), np.empty(MAX_COLUMNS, np.int64)
    with_strand = n_columns - 10
    width = masks_forward.shape[0]
    name_slots, name_ends, name_text = names
    at, line, n_sites, n_names = state[AT], state[LINE], state[N_SITES], state[N_NAMES]
    name = np.int64(-1)
    status = DONE
    block, separators = at - LANES, np.uint64(0)
    while at < end:
        columns, newline, block, separators = next_row(text, at, block, separators, starts, ends)
        if columns != n_columns:
            status = UNUSUAL
            break
        position, last, number, ratio, plain = _row_numbers(text, starts, ends, n_columns, odd_ratio, has_odd_ratio)
        first, stop = starts[n_columns - 1], ends[n_columns - 1]
        if not plain or position + stop - first > MAX_INT:
            status = UNUSUAL
            break
        is_reverse = False
        if with_strand:
            strand = text[starts[1]]
            is_reverse = strand == MINUS
            if ends[1] - starts[1] != 1 or (strand != MINUS and strand != PLUS):
                status = UNUSUAL
                break
        if (
            n_sites + stop - first + 1 > start.shape[0]
            or (n_names + 1) * SLOTS_PER_ENTRY > name_slots.shape[0]
            or name_ends[n_names] + ends[0] - starts[0] > name_text.shape[0]
        ):
            state[NEEDED] = stop - first + 1
            status = FULL
            break
        if name < 0 or not same_text(name_text, name_ends[name], name_ends[name + 1], text, starts[0], ends[0]):
            name = find_name(name_slots, name_ends, name_text, n_names, text, starts[0], ends[0])
            n_names = max(n_names, name + 1)
        masks = masks_reverse if is_reverse else masks_forward
        n_found = group_sites(text, first, stop, position, last, number, masks, start, n_sites)
        # the sequence may show neighbours that were called on their own
        if number == 1 and (n_found > 0 or 2 * width > stop - first + 1):
            n_found = np.int64(1)
            start[n_sites] = position
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
        at = newline + 1
    state[AT], state[LINE], state[N_SITES], state[N_NAMES] = at, line, n_sites, n_names
    return status
