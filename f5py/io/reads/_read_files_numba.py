"""Kernels of `f5py.io.reads.read_files`: lines of a read name, a tab and a path."""

import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.text._format_numba import NEWLINE, TAB

_SLASH = np.uint8(ord("/"))


@exact_inner
def _compare(text, begin, end, other, other_begin, other_end):
    """Compare two names by their bytes: -1, 0 or 1."""
    for i in range(min(end - begin, other_end - other_begin)):
        if text[begin + i] != other[other_begin + i]:
            return -1 if text[begin + i] < other[other_begin + i] else 1
    return np.sign((end - begin) - (other_end - other_begin))


@exact_kernel
def check_lines(text, relative):
    """Check and count the lines of a ``.readdb``.

    Parameters
    ----------
    text : uint8
    relative : int64
        Filled with offsets of relative paths, up to its size; each differs from the one before.

    Returns
    -------
    n_lines, bad_line : int
        The 1-based number of the first line without a name or a tab, or 0.
    is_sorted : bool
        Names are strictly ascending.
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
    """Find the paths of the names ``names[offsets[i]:offsets[i + 1]]`` in sorted lines.

    Parameters
    ----------
    text : uint8
        Sorted lines, see `check_lines`.
    names : uint8
    offsets : int64, shape (n + 1,)
    begins, ends : int64, shape (n,)
        Filled with offsets in `text`, -1 for missing names.
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
