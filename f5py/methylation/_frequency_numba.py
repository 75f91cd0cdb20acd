"""Jitted loops behind `f5py.methylation.frequency`: call rows to counts per site, and counts to rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.accelerate import exact_kernel, kernel
from f5py.io._byte_masks_numba import LANES, lowest_bit, where_is
from f5py.io._format_numba import NEWLINE, TAB, append_bytes, append_int

#: What `count_rows` stopped for: the end of the text, too little room in a table, a row for Python to judge.
DONE, FULL, UNUSUAL = 0, 1, 2

#: Positions in the state array of `count_rows`.
AT, LINE, N_SITES, N_NAMES, NEEDED_SITES = range(5)
STATE_SIZE = 5

#: Tables are kept less full than this share of their slots, 1 / 2.
SLOTS_PER_ENTRY = 2

#: Bytes behind the text that are read, whatever they hold.
PADDING = LANES + 1

MAX_COLUMNS = 11
MAX_INT = 2**31 - 1
_MAX_DIGITS = 15  # as many decimal digits always fit into a double without rounding
_MINUS = np.uint8(ord("-"))
_PLUS = np.uint8(ord("+"))
_POINT = np.uint8(ord("."))
_ZERO = np.uint8(ord("0"))
_C = np.uint8(ord("C"))
_G = np.uint8(ord("G"))
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_POWERS_OF_TEN = 10.0 ** np.arange(_MAX_DIGITS + 1)
_SPLIT_TEXT = np.frombuffer(b"split-group", np.uint8)

#: More than the numbers and separators of an output row need.
FIXED_COLUMNS = 7 * 20 + len(_SPLIT_TEXT)


class Sites(NamedTuple):
    """Counts per key (chromosome, start, end) in the order in which the keys came, and a hash table of the keys."""

    slots: NDArray[np.int32]  # entry + 1, or 0; a power of two long
    name: NDArray[np.int32]  # chromosome
    span: NDArray[np.int64]  # start << 32 | end
    group_size: NDArray[np.int32]  # motifs in the first group with this key
    called: NDArray[np.int64]
    methylated: NDArray[np.int64]
    text_ends: NDArray[np.int64]  # entry i's sequence is texts[text_ends[i] : text_ends[i + 1]]; empty: was split
    texts: NDArray[np.uint8]


class Names(NamedTuple):
    """Chromosome names in the order in which they came, and a hash table of them."""

    slots: NDArray[np.int32]
    ends: NDArray[np.int64]
    text: NDArray[np.uint8]


@kernel
def _site_slot(name, span, n_slots):
    mixed = (np.uint64(span) ^ (np.uint64(name) << np.uint64(17))) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MULTIPLIER
    return np.int64((mixed >> np.uint64(32)) & np.uint64(n_slots - 1))


@kernel
def _name_slot(text, start, end, n_slots):
    mixed = np.uint64(end - start)
    for i in range(start, end):
        mixed = (mixed ^ np.uint64(text[i])) * _MULTIPLIER
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(n_slots - 1))


@kernel
def _same_text(a, a_start, a_end, b, b_start, b_end):
    if a_end - a_start != b_end - b_start:
        return False
    for i in range(a_end - a_start):  # noqa: SIM110 - any() over a generator is not compiled
        if a[a_start + i] != b[b_start + i]:
            return False
    return True


# The helpers below get arrays, not the named tuples: taking an array out of a tuple costs an atomic count of
# references, which here would take longer than the work.


@kernel
def _find_name(slots, name_ends, name_text, n_names, text, start, end):
    """Index of a name, which is ``n_names`` if it was new and has been added."""
    slot = _name_slot(text, start, end, slots.shape[0])
    while slots[slot] != 0:
        which = np.int64(slots[slot]) - 1
        if _same_text(name_text, name_ends[which], name_ends[which + 1], text, start, end):
            return which
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot] = n_names + 1
    begin = name_ends[n_names]
    for i in range(end - start):
        name_text[begin + i] = text[start + i]
    name_ends[n_names + 1] = begin + end - start
    return n_names


@kernel
def _find_site(slots, names, spans, n_sites, name, span):
    """Index of a key, which is ``n_sites`` if it was new and has been added."""
    slot = _site_slot(name, span, slots.shape[0])
    while slots[slot] != 0:
        site = np.int64(slots[slot]) - 1
        if spans[site] == span and names[site] == name:
            return site
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot] = n_sites + 1
    names[n_sites] = name
    spans[n_sites] = span
    return n_sites


@kernel
def _natural(text, start, end):
    """A number of plain digits from 0 to 2**31 - 1, or -1 for anything else."""
    if end - start > 10:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(start, end):
        digit = np.int64(text[i]) - 48
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = value * 10 + digit
    if value > MAX_INT:
        return np.int64(-1)
    return value


@exact_kernel
def _decimal(text, start, end):
    """A plain decimal number as the nearest double, and whether it was one.

    Digits that fit into a double exactly, divided by a power of ten that does, round once: to the nearest.
    """
    at = start
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    digits = np.int64(0)
    n_digits = 0
    decimals = 0
    point = False
    while at < end:
        digit = np.int64(text[at]) - 48
        if 0 <= digit <= 9:
            digits = digits * 10 + digit
            n_digits += 1
            if point:
                decimals += 1
            if n_digits > _MAX_DIGITS:
                return 0.0, False
        elif text[at] == _POINT and not point:
            point = True
        else:
            return 0.0, False
        at += 1
    value = np.float64(digits) / _POWERS_OF_TEN[decimals]
    return -value if negative else value, n_digits > 0


@exact_kernel
def count_rows(text, end, n_columns, threshold, split, odd_ratio, has_odd_ratio, state, sites, names):
    """Count the calls in ``text[state[AT]:end]``, which consists of whole lines; `PADDING` more bytes must follow.

    `state` is updated to the line at which the function stopped. `odd_ratio` replaces the first row's ratio
    if `has_odd_ratio`, for numbers that only Python reads. Returns `DONE`, `FULL` or `UNUSUAL`.
    """
    starts = np.empty(MAX_COLUMNS, np.int64)
    ends = np.empty(MAX_COLUMNS, np.int64)
    with_strand = n_columns - 10
    slots, site_names, spans, group_sizes, called, methylated, text_ends, texts = sites
    name_slots, name_ends, name_text = names
    at = state[AT]
    line = state[LINE]
    n_sites = state[N_SITES]
    n_names = state[N_NAMES]
    name = np.int64(-1)
    status = DONE
    block = at - LANES
    separators = np.uint64(0)  # those behind the present one in the block
    while at < end:
        # columns; every line ends with a newline, so there is no test for the end of the text
        columns = 0
        start = at
        while True:
            while separators == 0:
                block += LANES
                separators = where_is(text, block, TAB) | where_is(text, block, NEWLINE)
            here = block + lowest_bit(separators)
            separators &= separators - np.uint64(1)
            if here > start:
                if columns < MAX_COLUMNS:
                    starts[columns] = start
                    ends[columns] = here
                columns += 1
            start = here + 1
            if text[here] == NEWLINE:
                break
        if columns != n_columns:
            status = UNUSUAL
            break
        position = _natural(text, starts[with_strand + 1], ends[with_strand + 1])
        last = _natural(text, starts[with_strand + 2], ends[with_strand + 2])
        number = _natural(text, starts[n_columns - 2], ends[n_columns - 2])
        if has_odd_ratio:
            ratio, plain = odd_ratio, True
        else:
            ratio, plain = _decimal(text, starts[with_strand + 4], ends[with_strand + 4])
        if position < 0 or last < 0 or number < 0 or not plain:
            status = UNUSUAL
            break
        if not abs(ratio) < threshold:  # not-a-number is kept
            first, behind = starts[n_columns - 1], ends[n_columns - 1]
            is_group = split and number > 1
            if is_group and position + behind - first > MAX_INT:
                status = UNUSUAL
                break
            needed = (behind - first) // 2 if is_group else 1
            if (
                (n_sites + needed) * SLOTS_PER_ENTRY > slots.shape[0]
                or (n_names + 1) * SLOTS_PER_ENTRY > name_slots.shape[0]
                or text_ends[n_sites] + behind - first > texts.shape[0]
                or name_ends[n_names] + ends[0] - starts[0] > name_text.shape[0]
            ):
                state[NEEDED_SITES] = needed
                status = FULL
                break
            if name < 0 or not _same_text(name_text, name_ends[name], name_ends[name + 1], text, starts[0], ends[0]):
                name = _find_name(name_slots, name_ends, name_text, n_names, text, starts[0], ends[0])
                n_names = max(n_names, name + 1)
            is_methylated = ratio > 0.0
            if is_group:
                origin = np.int64(-1)
                for window in range(first, behind - 1, LANES):
                    found = where_is(text, window, _C) & where_is(text, window + 1, _G)
                    while found != 0:
                        cytosine = window + lowest_bit(found)
                        found &= found - np.uint64(1)
                        if cytosine >= behind - 1:
                            break
                        if origin < 0:
                            origin = cytosine
                        place = position + cytosine - origin
                        site = _find_site(slots, site_names, spans, n_sites, name, place << 32 | place)
                        if site == n_sites:
                            n_sites += 1
                            group_sizes[site] = 1
                            called[site] = methylated[site] = 0
                            text_ends[n_sites] = text_ends[site]
                        called[site] += 1
                        methylated[site] += is_methylated
            else:
                site = _find_site(slots, site_names, spans, n_sites, name, position << 32 | last)
                if site == n_sites:
                    n_sites += 1
                    group_sizes[site] = number
                    called[site] = methylated[site] = 0
                    begin = text_ends[site]
                    for i in range(behind - first):
                        texts[begin + i] = text[first + i]
                    text_ends[n_sites] = begin + behind - first
                called[site] += number
                methylated[site] += number * is_methylated
        has_odd_ratio = False
        line += 1
        at = here + 1
    state[AT] = at
    state[LINE] = line
    state[N_SITES] = n_sites
    state[N_NAMES] = n_names
    return status


@exact_kernel
def fill_site_slots(slots, name, span, n_sites):
    """Enter all keys into an empty hash table."""
    for site in range(n_sites):
        slot = _site_slot(np.int64(name[site]), span[site], slots.shape[0])
        while slots[slot] != 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = site + 1


@exact_kernel
def fill_name_slots(slots, ends, text, n_names):
    """Enter all names into an empty hash table."""
    for name in range(n_names):
        slot = _name_slot(text, ends[name], ends[name + 1], slots.shape[0])
        while slots[slot] != 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = name + 1


@exact_kernel
def append_share(out, at, share):
    """Write a number from 0 to 1 as printf's ``%.3f`` does: the exact binary value, rounded half to even."""
    mantissa, exponent = math.frexp(share)
    scaled = np.int64(mantissa * 2.0**53) * 1000  # below 2**63
    shift = 53 - exponent
    thousandths = np.int64(0)
    if shift < 64:  # otherwise below a half
        thousandths = np.int64(np.uint64(scaled) >> np.uint64(shift))
        rest = np.uint64(scaled) - (np.uint64(thousandths) << np.uint64(shift))
        half = np.uint64(1) << np.uint64(shift - 1)
        if rest > half or (rest == half and thousandths % 2 == 1):
            thousandths += 1
    out[at] = _ZERO + np.uint8(thousandths // 1000)
    out[at + 1] = _POINT
    out[at + 2] = _ZERO + np.uint8(thousandths // 100 % 10)
    out[at + 3] = _ZERO + np.uint8(thousandths // 10 % 10)
    out[at + 4] = _ZERO + np.uint8(thousandths % 10)
    return at + 5


@exact_kernel
def format_rows(out, order, sites, names):
    """Write the rows of the sites in `order`; return the number of bytes."""
    at = np.int64(0)
    for site in order:
        name = sites.name[site]
        at = append_bytes(out, at, names.text[names.ends[name] : names.ends[name + 1]])
        out[at] = TAB
        at = append_int(out, at + 1, sites.span[site] >> 32)
        out[at] = TAB
        at = append_int(out, at + 1, sites.span[site] & MAX_INT)
        out[at] = TAB
        at = append_int(out, at + 1, np.int64(sites.group_size[site]))
        out[at] = TAB
        at = append_int(out, at + 1, sites.called[site])
        out[at] = TAB
        at = append_int(out, at + 1, sites.methylated[site])
        out[at] = TAB
        at = append_share(out, at + 1, sites.methylated[site] / sites.called[site])
        out[at] = TAB
        begin, end = sites.text_ends[site], sites.text_ends[site + 1]
        if begin == end:
            at = append_bytes(out, at + 1, _SPLIT_TEXT)
        else:
            at = append_bytes(out, at + 1, sites.texts[begin:end])
        out[at] = NEWLINE
        at += 1
    return at
