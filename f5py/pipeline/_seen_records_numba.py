"""Kernels of a hash set of alignments; see `f5py.pipeline.seen_records`."""

import numpy as np

from f5py.io.bam._bam_numba import DUPLICATE, FLAGS, IS_REVERSE, KEPT, NAME_LENGTH, cigar_of, unsigned16
from f5py.io.bam.record_layout import FIXED_SIZE
from f5py.jit.kernel import exact_inner, exact_kernel

#: FNV-1a of 64 bits, and the same from another begin with another prime.
_BASIS = np.array([0xCBF29CE484222325, 0x84222325CBF29CE4], np.uint64)
_PRIME = np.array([0x100000001B3, 0x9E3779B97F4A7C15], np.uint64)
_SHIFT = np.uint64(29)
_IS_DUPLICATE = 1024
#: Contig and position.
_PLACE = (4, 12)


@exact_inner
def _with_bytes(data, begin, end, key):
    for k in range(2):
        value = key[k]
        for i in range(begin, end):
            value = (value ^ np.uint64(data[i])) * _PRIME[k]
            value ^= value >> _SHIFT
        key[k] = value


@exact_inner
def _key_of(data, at, end, key):
    """Hash a record's name, place, strand and CIGAR twice."""
    key[:] = _BASIS
    name_end = at + FIXED_SIZE + np.int64(data[at + NAME_LENGTH])
    _with_bytes(data, at + FIXED_SIZE, name_end, key)
    _with_bytes(data, at + _PLACE[0], at + _PLACE[1], key)
    begin, n = cigar_of(data, at, end)
    _with_bytes(data, begin, begin + 4 * n, key)
    key[0] ^= np.uint64(unsigned16(data, at + FLAGS) & IS_REVERSE)
    key[0] |= np.uint64(1)  # 0 is an empty slot


@exact_inner
def _slot_of(table, key):
    """Find a key's slot in the table, or the empty one for it."""
    n_slots = table.shape[0]
    slot = np.int64(key[1] & np.uint64(n_slots - 1))
    while table[slot, 0] != 0 and (table[slot, 0] != key[0] or table[slot, 1] != key[1]):
        slot = (slot + 1) & (n_slots - 1)
    return slot


@exact_kernel
def mark_duplicates(data, starts, n, kinds, table):
    """Mark `KEPT` records as `DUPLICATE` if flagged or seen before; return the number of new ones.

    Parameters
    ----------
    data, starts, n
        See `f5py.io.bam._bam_numba.list_records`.
    kinds : uint8, shape (n,)
        Changed.
    table : uint64, shape (2 ** m, 2)
        Keys, with room for `n` more; changed.
    """
    key = np.empty(2, np.uint64)
    n_new = 0
    for i in range(n):
        if kinds[i] != KEPT:
            continue
        at = starts[i]
        if unsigned16(data, at + FLAGS) & _IS_DUPLICATE != 0:
            kinds[i] = DUPLICATE
            continue
        _key_of(data, at, starts[i + 1], key)
        slot = _slot_of(table, key)
        if table[slot, 0] != 0:
            kinds[i] = DUPLICATE
        else:
            table[slot, 0], table[slot, 1] = key[0], key[1]
            n_new += 1
    return n_new


@exact_kernel
def move_all(old, new):
    """Copy a table into a larger one of zeros.

    Parameters
    ----------
    old, new : uint64, shape (2 ** m, 2)
        See `mark_duplicates`.
    """
    key = np.empty(2, np.uint64)
    for i in range(old.shape[0]):
        if old[i, 0] != 0:
            key[:] = old[i]
            new[_slot_of(new, key)] = key
