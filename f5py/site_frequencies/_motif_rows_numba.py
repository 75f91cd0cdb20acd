"""Jitted choice of rows; see `f5py.site_frequencies.motif_rows`."""

from __future__ import annotations

from f5py.accelerate import exact_kernel
from f5py.text._format_numba import NEWLINE, TAB


@exact_kernel
def keep_rows(text, name, out):
    """Copy the rows whose last column is `name`, without that column; return the number of bytes.

    Parameters
    ----------
    text : uint8
        Whole lines.
    """
    at = begin = 0
    n = name.shape[0]
    for i in range(text.shape[0]):
        if text[i] != NEWLINE:
            continue
        fits = i - n > begin and text[i - n - 1] == TAB
        for j in range(n):
            fits = fits and text[i - n + j] == name[j]
        if fits:
            for j in range(begin, i - n - 1):
                out[at] = text[j]
                at += 1
            out[at] = NEWLINE
            at += 1
        begin = i + 1
    return at
