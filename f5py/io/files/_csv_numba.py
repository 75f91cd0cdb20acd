"""Kernel of `f5py.io.files.table_output`."""

from __future__ import annotations

from f5py.jit.kernel import exact_kernel

_TAB, _LINE_FEED, _RETURN, _QUOTE, _COMMA = 9, 10, 13, 34, 44


@exact_kernel
def quote_fields(rows, out):
    """Convert tab-separated rows to CSV; return the number of bytes.

    Parameters
    ----------
    rows : uint8, shape (n,)
    out : uint8
        Filled; large enough for two quotes around each field and every quote doubled.
    """
    n = rows.shape[0]
    size = 0
    begin = 0
    while begin <= n:
        end = begin
        is_quoted = False
        while end < n and rows[end] != _TAB and rows[end] != _LINE_FEED:
            is_quoted |= rows[end] == _COMMA or rows[end] == _QUOTE or rows[end] == _RETURN
            end += 1
        if is_quoted:
            out[size] = _QUOTE
            size += 1
        for i in range(begin, end):
            if rows[i] == _QUOTE:
                out[size] = _QUOTE
                size += 1
            out[size] = rows[i]
            size += 1
        if is_quoted:
            out[size] = _QUOTE
            size += 1
        if end < n:
            out[size] = _COMMA if rows[end] == _TAB else _LINE_FEED
            size += 1
        begin = end + 1
    return size
