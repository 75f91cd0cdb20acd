"""Jitted loop of `f5py.site_frequencies.frequency_merge`."""

import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.site_frequencies._site_table_numba import (
    AT,
    DONE,
    FULL,
    LINE,
    MAX_COLUMNS,
    MAX_COUNT,
    MAX_INT,
    N_NAMES,
    N_SITES,
    NEEDED,
    NOTABLE,
    SLOTS_PER_ENTRY,
    SPLIT_TEXT,
    UNUSUAL,
    find_name,
    find_site,
    natural,
    next_row,
    same_text,
)
from f5py.text._byte_masks_numba import LANES

N_COLUMNS, N_STRANDED_COLUMNS = 8, 12
_CHROMOSOME, _START, _END, _SIZE, _CALLED, _METHYLATED, _SHARE, _SEQUENCE = range(N_COLUMNS)
#: Counts of either strand: calls, and methylated ones.
_FORWARD, _REVERSE = N_COLUMNS, N_COLUMNS + 2


@exact_inner
def _counts_of_strand(text, starts, ends, column):
    """Parse the calls of a strand and the methylated ones among them, or twice -1 for what cannot be."""
    called = natural(text, starts[column], ends[column], MAX_COUNT)
    methylated = natural(text, starts[column + 1], ends[column + 1], MAX_COUNT)
    if called < 0 or methylated < 0 or methylated > called:
        return np.int64(-1), np.int64(-1)
    return called, methylated


@exact_kernel
def merge_rows(text, end, stranded, state, sites, names):
    """Add the counts of the rows in ``text[state[AT]:end]``, which are whole lines. Empty lines are passed over.

    Returns `DONE`, `FULL` or `UNUSUAL`.

    Parameters
    ----------
    text : uint8
        With `PADDING` more bytes behind `end`.
    end : int
    stranded : bool
        The rows have the counts of both strands, too.
    state : int64, shape (STATE_SIZE,)
        Updated to the line at which the function stopped; ``state[NOTABLE]`` is the number of rows with another
        sequence than an earlier row of the same key.
    sites : Sites
    names : Names
    """
    starts, ends = np.empty(MAX_COLUMNS, np.int64), np.empty(MAX_COLUMNS, np.int64)
    slots, site_names, spans, group_sizes, called, methylated, text_starts, text_sizes, texts = sites[:9]
    n_columns = N_STRANDED_COLUMNS if stranded else N_COLUMNS
    name_slots, name_ends, name_text = names
    at, line, n_sites, n_names = state[AT], state[LINE], state[N_SITES], state[N_NAMES]
    text_end = text_starts[n_sites]
    name, site = np.int64(-1), np.int64(-1)
    status = DONE
    block, separators = at - LANES, np.uint64(0)
    while at < end:
        columns, newline, block, separators = next_row(text, at, block, separators, starts, ends)
        if columns == 0:
            line += 1
            at = newline + 1
            continue
        if columns != n_columns:
            status = UNUSUAL
            break
        start = natural(text, starts[_START], ends[_START], MAX_INT)
        last = natural(text, starts[_END], ends[_END], MAX_INT)
        size = natural(text, starts[_SIZE], ends[_SIZE], MAX_INT)
        n_called = natural(text, starts[_CALLED], ends[_CALLED], MAX_COUNT)
        n_methylated = natural(text, starts[_METHYLATED], ends[_METHYLATED], MAX_COUNT)
        if start < 0 or last < 0 or size < 0 or n_called < 0 or n_methylated < 0 or n_methylated > n_called:
            status = UNUSUAL
            break
        n_reverse = m_reverse = np.int64(0)
        if stranded:
            n_forward, m_forward = _counts_of_strand(text, starts, ends, _FORWARD)
            n_reverse, m_reverse = _counts_of_strand(text, starts, ends, _REVERSE)
            adds_up = n_forward + n_reverse == n_called and m_forward + m_reverse == n_methylated
            if n_forward < 0 or n_reverse < 0 or not adds_up:
                status = UNUSUAL
                break
        first, stop = starts[_SEQUENCE], ends[_SEQUENCE]
        if (
            (n_sites + 1) * SLOTS_PER_ENTRY > slots.shape[0]
            or (n_names + 1) * SLOTS_PER_ENTRY > name_slots.shape[0]
            or text_end + stop - first > texts.shape[0]
            or name_ends[n_names] + ends[0] - starts[0] > name_text.shape[0]
        ):
            state[NEEDED] = 1
            status = FULL
            break
        if name < 0 or not same_text(name_text, name_ends[name], name_ends[name + 1], text, starts[0], ends[0]):
            name = find_name(name_slots, name_ends, name_text, n_names, text, starts[0], ends[0])
            n_names = max(n_names, name + 1)
        site = find_site(slots, site_names, spans, n_sites, site + 1, name, start << 32 | last)
        is_split = same_text(text, first, stop, SPLIT_TEXT, 0, SPLIT_TEXT.shape[0])
        length = np.int64(0 if is_split else stop - first)
        begin, known = text_starts[site], np.int64(0)
        replace = site == n_sites
        if replace:
            n_sites += 1
            called[site] = methylated[site] = 0
        elif length > 0:
            known = np.int64(text_sizes[site])
            if known == 0:
                replace = True  # "split-group" only says that the sequence was not kept
            elif not same_text(text, first, stop, texts, begin, begin + known):
                state[NOTABLE] += 1
                replace = length > known
        if replace:
            group_sizes[site] = size
            text_starts[site] = text_end
            text_sizes[site] = length
            for i in range(length):
                texts[text_end + i] = text[first + i]
            text_end += length
        text_starts[n_sites] = text_end
        if n_called > MAX_COUNT - called[site]:
            status = UNUSUAL
            break
        called[site] += n_called
        methylated[site] += n_methylated
        if stranded:
            sites.called_reverse[site] += n_reverse
            sites.methylated_reverse[site] += m_reverse
        line += 1
        at = newline + 1
    state[AT], state[LINE], state[N_SITES], state[N_NAMES] = at, line, n_sites, n_names
    return status
