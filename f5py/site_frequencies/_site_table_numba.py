"""Jitted parts that all tables of sites share: reading rows, hash tables of sites and names, writing rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.bits import lowest_bit
from f5py.jit.kernel import exact_inner, exact_kernel, inner
from f5py.text._byte_masks_numba import LANES, where_is
from f5py.text._format_numba import MINUS, NEWLINE, PLUS, POINT, TAB, ZERO, append_bytes, append_int

#: What a loop over rows stopped for: the end of the text, too little room in a table, a row for Python to judge.
DONE, FULL, UNUSUAL = 0, 1, 2

#: Positions in the state array of a loop over rows. The last counts what a loop wants its caller to know.
AT, LINE, N_SITES, N_NAMES, NEEDED, NOTABLE = range(6)
STATE_SIZE = 6

#: Tables are kept less full than this share of their slots, 1 / 2.
SLOTS_PER_ENTRY = 2

#: More than the bases of the longest motif.
MAX_MOTIF = 16

#: Bytes after the text that are read, whatever they hold.
PADDING = LANES + MAX_MOTIF

MAX_COLUMNS = 12
MAX_INT = 2**31 - 1
MAX_COUNT = 2**62
_MAX_DIGITS = 15  # as many decimal digits always fit into a double without rounding
#: Bases of a stretch that stays together in the hash table of sites, and bases per slot in it, as powers of two.
_STRETCH_BITS, _SLOT_BITS = 10, 4
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_POWERS_OF_TEN = 10.0 ** np.arange(_MAX_DIGITS + 1)
SPLIT_TEXT = np.frombuffer(b"split-group", np.uint8)

#: More than the numbers and separators of an output row need.
FIXED_COLUMNS = 11 * 20 + len(SPLIT_TEXT)


class Sites(NamedTuple):
    """Counts per key (chromosome, start, end) in the order in which the keys came, and a hash table of the keys."""

    slots: NDArray[np.int32]  # entry + 1, or 0; a power of two long
    name: NDArray[np.int32]  # chromosome
    span: NDArray[np.int64]  # start << 32 | end
    group_size: NDArray[np.int32]  # motifs in the group
    called: NDArray[np.int64]
    methylated: NDArray[np.int64]
    text_start: NDArray[np.int64]  # where the sequence is in `texts`
    text_size: NDArray[np.int32]  # 0: the group was split
    texts: NDArray[np.uint8]  # begins with `SPLIT_TEXT`
    called_reverse: NDArray[np.int64]  # those of them on the reverse strand; zeros unless strands are counted apart
    methylated_reverse: NDArray[np.int64]


class Names(NamedTuple):
    """Chromosome names in the order in which they came, and a hash table of them."""

    slots: NDArray[np.int32]
    ends: NDArray[np.int64]
    text: NDArray[np.uint8]


@inner
def _site_slot(name, span, n_slots):
    """Choose the slot where the search for a key begins.

    Neighbours on a chromosome are neighbours in the table, because they come one after the other: a stretch of it
    begins at a random slot, and its sites follow in their order.
    """
    stretch = np.uint64(span) >> np.uint64(32 + _STRETCH_BITS)
    mixed = (stretch ^ (np.uint64(name) << np.uint64(24))) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MULTIPLIER
    within = (np.uint64(span) >> np.uint64(32 + _SLOT_BITS)) & np.uint64((1 << (_STRETCH_BITS - _SLOT_BITS)) - 1)
    return np.int64(((mixed >> np.uint64(32)) + within) & np.uint64(n_slots - 1))


@inner
def _name_slot(text, start, end, n_slots):
    mixed = np.uint64(end - start)
    for i in range(start, end):
        mixed = (mixed ^ np.uint64(text[i])) * _MULTIPLIER
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(n_slots - 1))


@inner
def same_text(a, a_start, a_end, b, b_start, b_end):
    """Return whether two pieces of text are equal."""
    if a_end - a_start != b_end - b_start:
        return False
    for i in range(a_end - a_start):  # noqa: SIM110 - any() over a generator is not compiled
        if a[a_start + i] != b[b_start + i]:
            return False
    return True


# The functions below get arrays, not the named tuples: taking an array out of a tuple costs an atomic count of
# references, which here would take longer than the work.


@inner
def find_name(slots, name_ends, name_text, n_names, text, start, end):
    """Index of a name, which is ``n_names`` if it was new and has been added.

    Parameters
    ----------
    slots, name_ends, name_text
        See `Names`; added to.
    n_names : int
    text : uint8
    start, end : int
        Where the name is in `text`.
    """
    slot = _name_slot(text, start, end, slots.shape[0])
    while slots[slot] != 0:
        which = np.int64(slots[slot]) - 1
        if same_text(name_text, name_ends[which], name_ends[which + 1], text, start, end):
            return which
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot] = n_names + 1
    begin = name_ends[n_names]
    for i in range(end - start):
        name_text[begin + i] = text[start + i]
    name_ends[n_names + 1] = begin + end - start
    return n_names


@inner
def find_site(slots, names, spans, n_sites, guess, name, span):
    """Index of a key, which is ``n_sites`` if it was new and has been added.

    `guess` is tried first: sites mostly come in the order of earlier reads or files, and then neither the hash
    table nor any other far place of memory is touched.
    """
    if guess < n_sites and spans[guess] == span and names[guess] == name:
        return guess
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


@exact_kernel
def fill_site_slots(slots, name, span, n_sites):
    """Enter all keys into an empty hash table.

    Parameters
    ----------
    slots : int32
        Zeros; a power of two long. Filled.
    name, span, n_sites
        See `Sites`.
    """
    for site in range(n_sites):
        slot = _site_slot(np.int64(name[site]), span[site], slots.shape[0])
        while slots[slot] != 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = site + 1


@exact_kernel
def fill_name_slots(slots, ends, text, n_names):
    """Enter all names into an empty hash table.

    Parameters
    ----------
    slots : int32
        Zeros; a power of two long. Filled.
    ends, text, n_names
        See `Names`.
    """
    for name in range(n_names):
        slot = _name_slot(text, ends[name], ends[name + 1], slots.shape[0])
        while slots[slot] != 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = name + 1


@inner
def next_row(text, at, block, separators, starts, ends):
    """Find the columns of the line at `at`; runs of tabs count as one.

    Returns the number of columns, the index of the newline, and the two arguments for the next line: the block of
    text that was looked at last, and the separators in it that were not used yet. At first, they are
    ``at - LANES`` and 0. Every line ends with a newline, so there is no test for the end of the text.
    """
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
            return columns, here, block, separators


@inner
def natural(text, start, end, limit):
    """Parse a number of plain digits from 0 to `limit`, or -1 for anything else."""
    if end - start > 19:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(start, end):
        digit = np.int64(text[i]) - 48
        if digit < 0 or digit > 9 or value > MAX_COUNT // 10:
            return np.int64(-1)
        value = value * 10 + digit
    if value > limit:
        return np.int64(-1)
    return value


@exact_inner
def decimal(text, start, end):
    """Parse a plain decimal number as the nearest double; also return whether it was one.

    Digits that fit into a double exactly, divided by a power of ten that does, round once: to the nearest.
    """
    at = start
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
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
        elif text[at] == POINT and not point:
            point = True
        else:
            return 0.0, False
        at += 1
    value = np.float64(digits) / _POWERS_OF_TEN[decimals]
    return -value if negative else value, n_digits > 0


@exact_inner
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
    out[at] = ZERO + np.uint8(thousandths // 1000)
    out[at + 1] = POINT
    out[at + 2] = ZERO + np.uint8(thousandths // 100 % 10)
    out[at + 3] = ZERO + np.uint8(thousandths // 10 % 10)
    out[at + 4] = ZERO + np.uint8(thousandths % 10)
    return at + 5


@exact_kernel
def format_rows(out, order, sites, names, stranded):
    """Write the rows of the sites in `order`, with the counts of both strands if `stranded`; return their bytes.

    Parameters
    ----------
    out : uint8
        With room.
    order : int64
        Indices of sites.
    sites : Sites
    names : Names
    stranded : bool
    """
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
        begin, size = sites.text_start[site], sites.text_size[site]
        if size == 0:
            at = append_bytes(out, at + 1, SPLIT_TEXT)
        else:
            at = append_bytes(out, at + 1, sites.texts[begin : begin + size])
        if stranded:
            n_reverse, m_reverse = sites.called_reverse[site], sites.methylated_reverse[site]
            for count in (sites.called[site] - n_reverse, sites.methylated[site] - m_reverse, n_reverse, m_reverse):
                out[at] = TAB
                at = append_int(out, at + 1, count)
        out[at] = NEWLINE
        at += 1
    return at
