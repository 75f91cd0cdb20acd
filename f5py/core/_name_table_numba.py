"""Kernels for hash tables of names, and for copies of slices of a text."""

import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel

#: FNV-1a, 64 bits.
_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_SHIFT = np.uint64(29)


@exact_inner
def _slot(text, begin, end, n_slots):
    """Return the first slot of a name's search; `n_slots` is a power of two."""
    value = _BASIS
    for i in range(begin, end):
        value = (value ^ np.uint64(text[i])) * _PRIME
    value ^= value >> _SHIFT
    return np.int64(value & np.uint64(n_slots - 1))


@exact_inner
def find_name(text, begin, end, names, name_begin, name_end, table):
    """Return the row of the name ``text[begin:end]`` in a `f5py.core.names.NameTable`'s arrays, or -1."""
    n_slots = table.shape[0]
    slot = _slot(text, begin, end, n_slots)
    while table[slot] >= 0:
        row = table[slot]
        first = name_begin[row]
        if name_end[row] - first == end - begin:
            same = True
            for i in range(end - begin):
                if names[first + i] != text[begin + i]:
                    same = False
                    break
            if same:
                return row
        slot = (slot + 1) & (n_slots - 1)
    return np.int64(-1)


@exact_inner
def free_slot(text, begin, end, table):
    """Return the slot for a name that is not in a table."""
    slot = _slot(text, begin, end, table.shape[0])
    while table[slot] >= 0:
        slot = (slot + 1) & (table.shape[0] - 1)
    return slot


@exact_kernel
def fill_table(names, name_begin, name_end, table):
    """Enter all rows into a table of -1 with spare slots; of equal names the first row counts. Return the rows entered.

    Parameters
    ----------
    names, name_begin, name_end : uint8, int64, int64
        Row i of n is named ``names[name_begin[i]:name_end[i]]``.
    """
    n = 0
    for row in range(name_begin.shape[0]):
        if find_name(names, name_begin[row], name_end[row], names, name_begin, name_end, table) < 0:
            table[free_slot(names, name_begin[row], name_end[row], table)] = row
            n += 1
    return n


@exact_kernel
def find_names(text, offsets, names, name_begin, name_end, table, rows):
    """Fill the rows of the names ``text[offsets[i]:offsets[i + 1]]``, or -1.

    Parameters
    ----------
    text, offsets, rows : uint8, int64, int64
    """
    for i in range(rows.shape[0]):
        rows[i] = find_name(text, offsets[i], offsets[i + 1], names, name_begin, name_end, table)


@exact_kernel
def gather(text, starts, sizes, out):
    """Concatenate slices of `text`.

    Parameters
    ----------
    text, starts, sizes, out : uint8, int64, int64, uint8
    """
    at = 0
    for piece in range(starts.shape[0]):
        begin = starts[piece]
        for i in range(sizes[piece]):
            out[at] = text[begin + i]
            at += 1
