"""Kernels of `f5py.outputs.stage_tables`."""

import numpy as np

from f5py.jit.kernel import kernel
from f5py.text._format_numba import COMMA, MAX_NUMBER, NEWLINE, TAB, append_fixed, append_int

_OPEN = np.uint8(ord("{"))
_CLOSE = np.uint8(ord("}"))
_DECIMALS = 6


@kernel
def format_events(start, length, mean, stdv):
    """Format events as ``{start,length,mean,stdv}`` and a tab each, then a newline; uint8.

    Parameters
    ----------
    start, length : int32, shape (n,)
        In samples.
    mean, stdv : float32, shape (n,)
        In pA.
    """
    out = np.empty(start.shape[0] * 4 * MAX_NUMBER + 1, np.uint8)
    at = 0
    for e in range(start.shape[0]):
        out[at] = _OPEN
        at = append_int(out, at + 1, start[e])
        out[at] = COMMA
        at = append_fixed(out, at + 1, np.float64(length[e]), _DECIMALS)
        out[at] = COMMA
        at = append_fixed(out, at + 1, np.float64(mean[e]), _DECIMALS)
        out[at] = COMMA
        at = append_fixed(out, at + 1, np.float64(stdv[e]), _DECIMALS)
        out[at] = _CLOSE
        out[at + 1] = TAB
        at += 2
    out[at] = NEWLINE
    return out[: at + 1]


@kernel
def format_pairs(pairs):
    """Format pairs as ``{k-mer,event}`` and a tab each, then a newline; uint8.

    Parameters
    ----------
    pairs : int32, shape (n, 2)
        0-based numbers of k-mer and event in the read.
    """
    out = np.empty(pairs.shape[0] * 2 * MAX_NUMBER + 1, np.uint8)
    at = 0
    for p in range(pairs.shape[0]):
        out[at] = _OPEN
        at = append_int(out, at + 1, pairs[p, 0])
        out[at] = COMMA
        at = append_int(out, at + 1, pairs[p, 1])
        out[at] = _CLOSE
        out[at + 1] = TAB
        at += 2
    out[at] = NEWLINE
    return out[: at + 1]
