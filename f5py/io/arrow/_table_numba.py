"""Jitted loops over Arrow columns; see `f5py.io.arrow.table`."""

from __future__ import annotations

from f5py.jit.kernel import kernel


@kernel
def gather(text, starts, sizes, out):
    """Copy the pieces of `text` to `out`, one after the other."""
    at = 0
    for piece in range(starts.shape[0]):
        begin = starts[piece]
        for i in range(sizes[piece]):
            out[at] = text[begin + i]
            at += 1


@kernel
def renumber(indices, out, number_of, values):
    """Renumber the different `indices` in the order of their first occurrence; return how many there are.

    `out` gets the new number of every element, `values` the index for every new number. `number_of` has an element for
    every index that there may be, -1 at first.
    """
    n_values = 0
    for i in range(indices.shape[0]):
        index = indices[i]
        if number_of[index] < 0:
            number_of[index] = n_values
            values[n_values] = index
            n_values += 1
        out[i] = number_of[index]
    return n_values
