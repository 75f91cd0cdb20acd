"""Jitted gathering of text for Arrow string columns; see `f5py.io.arrow_table`."""

from __future__ import annotations

from f5py.accelerate import kernel


@kernel
def gather(text, starts, sizes, out):
    """Copy the pieces of `text` to `out`, one behind the other."""
    at = 0
    for piece in range(starts.shape[0]):
        begin = starts[piece]
        for i in range(sizes[piece]):
            out[at] = text[begin + i]
            at += 1
