"""Jitted loops over the sequences in BAM records."""

import numpy as np

from f5py.core.cigar import HARD_CLIP
from f5py.io.bam._bam_numba import FLAGS, N_BASES, cigar_of, sequence_begins, signed32, unsigned16
from f5py.jit.kernel import exact_kernel

_IS_REVERSE = 16
#: Letters by the four bits that BAM stores.
_LETTERS = np.frombuffer(b"=ACMGRSVTWYHKDBN", np.uint8)
#: The complement of a base is its four bits in the reverse order.
_COMPLEMENT_LETTERS = _LETTERS[[int(f"{i:04b}"[::-1], 2) for i in range(16)]]
_EQUALS = _LETTERS[0]


@exact_kernel
def whole_lengths(data, starts, chosen, lengths):
    """Fill the number of bases of each of the chosen records, 0 for one that has not all bases of its read.

    Parameters
    ----------
    data, starts, chosen
        See `f5py.io.bam._bam_numba.decode`.
    lengths : int64, shape (n,)
        Filled.
    """
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        lengths[i] = signed32(data, at + N_BASES)
        begin, n_operations = cigar_of(data, at, starts[chosen[i] + 1])
        if n_operations > 0:
            last = begin + 4 * (n_operations - 1)
            if data[begin] & 15 == HARD_CLIP or data[last] & 15 == HARD_CLIP:
                lengths[i] = 0


@exact_kernel
def copy_sequences(data, starts, chosen, held_row, held, held_offsets, offsets, out):
    """Fill `out` with the reads' bases as sequenced; return whether a record has "=", the reference's base, in it.

    Parameters
    ----------
    chosen : int64, shape (n,)
        The records.
    held_row : int64, shape (n,)
        Which of the sequences in `held`, with `held_offsets`, a record's read has; -1: that of the record.
    offsets : int64, shape (n + 1,)
        Of the reads in `out`.
    """
    lowest = np.uint8(255)
    for i in range(chosen.shape[0]):
        to = offsets[i]
        size = offsets[i + 1] - to
        if held_row[i] >= 0:
            first = held_offsets[held_row[i]]
            for j in range(size):
                out[to + j] = held[first + j]
            continue
        at = starts[chosen[i]]
        begin = sequence_begins(data, at)
        reverse = unsigned16(data, at + FLAGS) & _IS_REVERSE != 0
        letters = _COMPLEMENT_LETTERS if reverse else _LETTERS
        place = to + size - 1 if reverse else to
        step = -1 if reverse else 1
        for j in range(size):
            pair = np.int64(data[begin + (j >> 1)])
            letter = letters[pair & 15 if j & 1 == 1 else pair >> 4]
            lowest = min(lowest, letter ^ _EQUALS)
            out[place + step * j] = letter
    return lowest == 0
