"""Jitted rows of the call table; see `f5py.outputs.calls_writer`."""

from __future__ import annotations

import numpy as np

from f5py.accelerate import kernel
from f5py.text._format_numba import NEWLINE, TAB, append_bytes, append_fixed, append_int

_PLUS = np.uint8(ord("+"))
_MINUS = np.uint8(ord("-"))
_ONE = np.uint8(ord("1"))


@kernel
def format_calls(
    out, contig, name, reverse, with_strand, k, segment, segment_start, inside, first, last, sites, methylated,
    unmethylated,
):  # fmt: skip
    """Write one row per call that is `inside` into `out`; return the number of bytes."""
    at = 0
    for call in range(first.shape[0]):
        if not inside[call]:
            continue
        at = append_bytes(out, at, contig)
        out[at] = TAB
        at += 1
        if with_strand:
            out[at] = _MINUS if reverse else _PLUS
            out[at + 1] = TAB
            at += 2
        at = append_int(out, at, first[call])
        out[at] = TAB
        at = append_int(out, at + 1, last[call])
        out[at] = TAB
        at = append_bytes(out, at + 1, name)
        out[at] = TAB
        at = append_fixed(out, at + 1, np.float64(methylated[call]) - np.float64(unmethylated[call]), 2)
        out[at] = TAB
        at = append_fixed(out, at + 1, np.float64(methylated[call]), 2)
        out[at] = TAB
        at = append_fixed(out, at + 1, np.float64(unmethylated[call]), 2)
        out[at] = TAB
        out[at + 1] = _ONE
        out[at + 2] = TAB
        at = append_int(out, at + 3, sites[call])
        out[at] = TAB
        begin = max(first[call] - segment_start - k + 1, 0)
        end = last[call] - segment_start + k
        at = append_bytes(out, at + 1, segment[begin:end])
        out[at] = NEWLINE
        at += 1
    return at
