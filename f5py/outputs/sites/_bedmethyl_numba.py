"""Kernels of bedMethyl and bedGraph rows; see `f5py.outputs.sites.bedmethyl` and `site_tracks`."""

import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.text._format_numba import (
    COMMA,
    MINUS,
    NEWLINE,
    PLUS,
    POINT,
    TAB,
    ZERO,
    append_bytes,
    append_fixed,
    append_int,
)


@exact_inner
def _append_base(out, at, name, position):
    """Append name, start, end and a tab."""
    at = append_bytes(out, at, name)
    out[at] = TAB
    at = append_int(out, at + 1, position)
    out[at] = TAB
    at = append_int(out, at + 1, position + 1)
    out[at] = TAB
    return at + 1


@exact_inner
def _append_percent(out, at, part, whole):
    """Append a percentage in single precision, so that the last digit agrees with modkit."""
    share = np.float32(part) / np.float32(whole) * np.float32(100.0)
    return append_fixed(out, at, np.float64(share), 2)


@exact_kernel
def format_sites(out, names, name_ends, code, combined, totals):
    """Write one row per site with valid calls; return the number of bytes.

    Parameters
    ----------
    out : uint8
        With room.
    names, name_ends : uint8, int64, shape (n_contigs + 1,)
    code : uint8
        Modification code, as text.
    combined : bool
        The counts are of both strands.
    totals : f5py.site_frequencies.site_counts.SiteTotals
    """
    contig, position, reverse, methylated, canonical, failed, other, deleted, different, missing = totals
    at = np.int64(0)
    for site in range(contig.shape[0]):
        valid = methylated[site] + canonical[site] + other[site]
        if valid == 0:
            continue
        name = contig[site]
        at = _append_base(out, at, names[name_ends[name] : name_ends[name + 1]], position[site])
        at = append_bytes(out, at, code)
        out[at] = TAB
        at = append_int(out, at + 1, valid)
        out[at] = TAB
        if combined:
            out[at + 1] = POINT
        else:
            out[at + 1] = MINUS if reverse[site] else PLUS
        out[at + 2] = TAB
        at = append_int(out, at + 3, position[site])
        out[at] = TAB
        at = append_int(out, at + 1, position[site] + 1)
        out[at] = TAB
        # from blue, all canonical, to red, all methylated
        red = (np.int64(2) * 255 * methylated[site] + valid) // (np.int64(2) * valid)
        at = append_int(out, at + 1, red)
        out[at] = COMMA
        out[at + 1] = ZERO
        out[at + 2] = COMMA
        at = append_int(out, at + 3, 255 - red)
        out[at] = TAB
        at = append_int(out, at + 1, valid)
        out[at] = TAB
        at = _append_percent(out, at + 1, methylated[site], valid)
        out[at] = TAB
        at = append_int(out, at + 1, methylated[site])
        out[at] = TAB
        at = append_int(out, at + 1, canonical[site])
        for count in (other[site], deleted[site], failed[site], different[site], missing[site]):
            out[at] = TAB
            at = append_int(out, at + 1, count)
        out[at] = NEWLINE
        at += 1
    return at


@exact_kernel
def format_percentages(out, names, name_ends, contig, position, methylated, canonical, other):
    """Write one bedGraph row per site with valid calls; return the number of bytes.

    Parameters
    ----------
    out : uint8
        With room.
    names, name_ends : uint8, int64, shape (n_contigs + 1,)
    contig : int32, position : int64, shape (n,)
        0-based position of the modified base.
    methylated, canonical, other : int64, shape (n,)
        Numbers of calls.
    """
    at = np.int64(0)
    for site in range(contig.shape[0]):
        valid = methylated[site] + canonical[site] + other[site]
        if valid == 0:
            continue
        name = contig[site]
        at = _append_base(out, at, names[name_ends[name] : name_ends[name + 1]], position[site])
        at = _append_percent(out, at, methylated[site], valid)
        out[at] = NEWLINE
        at += 1
    return at
