"""Jitted parts of `f5py.io.reads.read_files`: lines of a read name, a tab and a path."""

import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.text._format_numba import NEWLINE, TAB

_SLASH = np.uint8(ord("/"))


@exact_inner
def _compare(text, begin, end, other, other_begin, other_end):
    """-1, 0 or 1, as one name is before, the same as or after another one, by their bytes."""
    for i in range(min(end - begin, other_end - other_begin)):
        if text[begin + i] != other[other_begin + i]:
            return -1 if text[begin + i] < other[other_begin + i] else 1
    return np.sign((end - begin) - (other_end - other_begin))


@exact_kernel
def check_lines(text, relative):
    """Read all lines.

    Parameters
    ----------
    text : uint8
    relative : int64
        Filled with places of relative paths, as many as there is room for; each differs from the one before it.

    Returns
    -------
    n_lines, bad_line : int
        The latter is the 1-based number of the first line without a name or without a tab, or 0.
    is_sorted : bool
        Whether each name is after that of the line before.
    n_relative : int
    """
    size = text.shape[0]
    at = n_lines = n_relative = 0
    before = before_end = relative_end = 0
    is_sorted = True
    while at < size:
        begin = at
        while at < size and text[at] != TAB and text[at] != NEWLINE:
            at += 1
        is_tab = at < size and text[at] == TAB
        if not is_tab or at == begin:
            return n_lines, n_lines + 1, is_sorted, n_relative
        if n_lines > 0 and is_sorted:
            is_sorted = _compare(text, before, before_end, text, begin, at) < 0
        before, before_end = begin, at
        at += 1
        path = at
        while at < size and text[at] != NEWLINE:
            at += 1
        if path < at and text[path] != _SLASH and n_relative < relative.shape[0]:
            last = relative[max(n_relative - 1, 0)]
            if n_relative == 0 or _compare(text, last, relative_end, text, path, at) != 0:
                relative[n_relative] = path
                relative_end = at
                n_relative += 1
        n_lines += 1
        at += 1
    return n_lines, 0, is_sorted, n_relative


@exact_kernel
def find_paths(text, names, offsets, begins, ends):
    """Find where in sorted lines the paths of the names ``names[offsets[i]:offsets[i + 1]]`` begin and end, or -1.

    Parameters
    ----------
    text : uint8
        As for `check_lines`, whose lines are sorted.
    names : uint8
    offsets : int64, shape (n + 1,)
    begins, ends : int64, shape (n,)
        Filled with places in `text`.
    """
    for i in range(begins.shape[0]):
        begins[i] = ends[i] = -1
        low, high = 0, text.shape[0]  # where lines begin
        while low < high:
            begin = (low + high) // 2
            while begin > low and text[begin - 1] != NEWLINE:
                begin -= 1
            tab = begin
            while text[tab] != TAB:
                tab += 1
            end = tab + 1
            while end < text.shape[0] and text[end] != NEWLINE:
                end += 1
            order = _compare(names, offsets[i], offsets[i + 1], text, begin, tab)
            if order == 0:
                begins[i], ends[i] = tab + 1, end
                break
            if order < 0:
                high = begin
            else:
                low = min(end + 1, high)
