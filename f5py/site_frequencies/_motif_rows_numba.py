"""Jitted choice of rows; see `f5py.site_frequencies.motif_rows`."""

from f5py.jit.kernel import exact_kernel
from f5py.text._format_numba import NEWLINE, TAB


@exact_kernel
def keep_rows(text, name, n_columns, out, lines):
    """Copy the rows whose last column is `name`, without that column, and rows with another number of columns.

    Parameters
    ----------
    text : uint8
        Whole lines.
    name : uint8
    n_columns : int
        Of the table.
    out : uint8
        As long as `text`.
    lines : int64
        Which lines of `text` the rows are.

    Returns
    -------
    n_bytes, n_rows, n_lines : int
        Bytes and rows of `out`, and lines of `text`.
    """
    at = begin = 0
    n_tabs = n_rows = n_lines = 0
    n = name.shape[0]
    for i in range(text.shape[0]):
        n_tabs += text[i] == TAB
        if text[i] != NEWLINE:
            continue
        fits = i - n > begin and text[i - n - 1] == TAB
        for j in range(n):
            fits = fits and text[i - n + j] == name[j]
        is_whole = n_tabs == n_columns - 1
        if fits or not is_whole:
            for j in range(begin, i - n - 1 if is_whole else i):
                out[at] = text[j]
                at += 1
            out[at] = NEWLINE
            at += 1
            lines[n_rows] = n_lines
            n_rows += 1
        n_lines += 1
        n_tabs = 0
        begin = i + 1
    return at, n_rows, n_lines
