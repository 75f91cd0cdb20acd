"""RecordFilter of alignment records by flags, quality and duplicates, and their division into batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.io.bam._bam_numba import (
    DUPLICATE,
    FLAGS,
    IS_REVERSE,
    KEPT,
    NAME_LENGTH,
    NO_BASES,
    ULTRA,
    cigar_of,
    unsigned16,
)
from f5py.io.bam.alignments import AlignmentFile, RecordCounts
from f5py.io.bam.headers import FIXED_SIZE
from f5py.io.bam.record_reads import RecordReads
from f5py.io.reads.read_index import ReadIndex
from f5py.jit.kernel import exact_inner, exact_kernel

_FIRST_SLOTS = 1 << 12

#: FNV-1a of 64 bits, and the same from another begin with another prime.
_BASIS = np.array([0xCBF29CE484222325, 0x84222325CBF29CE4], np.uint64)
_PRIME = np.array([0x100000001B3, 0x9E3779B97F4A7C15], np.uint64)
_SHIFT = np.uint64(29)
_IS_DUPLICATE = 1024
#: Contig and position.
_PLACE = (4, 12)


class BatchLimits(NamedTuple):
    """Limits of a batch."""

    batch_size: int  # most reads
    max_bases: int  # bases from which on a batch is closed
    ultra_threshold: int  # of reads longer than that, if it is not negative, the kind becomes `ULTRA`
    counts_left_out: bool  # close a batch also when it has as many records that are left out as reads may be in it


@exact_kernel
def cut(kinds, lengths, first, n, limits, state):
    """Find the end of a batch that continues with record `first`.

    Parameters
    ----------
    kinds, lengths : uint8, int64, shape (n,)
        Classification of each record, changed of very long reads, see `BatchLimits`; bases of each read.
    state : int64, shape (4,)
        Reads, skipped records and bases of the batch so far, and whether it is closed; updated.
    """
    batch_size, max_bases, ultra_threshold, counts_left_out = limits
    i = first
    while i < n:
        kind = kinds[i]
        if kind == KEPT and 0 <= ultra_threshold < lengths[i]:
            kinds[i] = kind = ULTRA
        i += 1
        if kind == KEPT:
            state[0] += 1
            state[2] += lengths[i - 1]
        elif counts_left_out:
            state[1] += 1
        if max(state[0], state[1]) >= batch_size or state[2] >= max_bases:
            state[3] = 1
            break
    return i


def classified(
    alignments: AlignmentFile,
    reads: ReadIndex | RecordReads,
    seen: SeenRecords | None,
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    n: int,
    counts: RecordCounts,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Classify `n` records. Return their kinds, uint8, rows in the index of the reads, and read lengths, int64."""
    index = reads.held.index if isinstance(reads, RecordReads) else reads.index
    kinds, rows = alignments.classify(data, starts, n, index)
    if isinstance(reads, RecordReads):
        lengths, rows = reads.look_up(data, starts, n, kinds == KEPT)
        kinds[(kinds == KEPT) & (lengths == 0)] = NO_BASES
    else:
        lengths = reads.lengths_of(rows)
    if seen is not None:
        seen.mark(data, starts, n, kinds)
    counts.add(kinds)
    return kinds, rows, lengths


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
    """
    key = np.empty(2, np.uint64)
    for i in range(old.shape[0]):
        if old[i, 0] != 0:
            key[:] = old[i]
            new[_slot_of(new, key)] = key


class SeenRecords:
    """Find records flagged as duplicates, and repeated ones.

    Repeated records share read name, contig, position, strand and CIGAR, as after merging a file with itself. The set
    has a 128-bit hash of every record, in some 40 bytes.
    """

    def __init__(self) -> None:
        self._table = np.zeros((_FIRST_SLOTS, 2), np.uint64)
        self._n = 0

    def mark(self, data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, kinds: NDArray[np.uint8]) -> None:
        """Mark duplicates among the kept ones of `n` records in `kinds`."""
        n_slots = len(self._table)
        while n_slots < 2 * (self._n + n):
            n_slots *= 2
        if n_slots > len(self._table):
            larger = np.zeros((n_slots, 2), np.uint64)
            move_all(self._table, larger)
            self._table = larger
        self._n += mark_duplicates(data, starts, n, kinds, self._table)
