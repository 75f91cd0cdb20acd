"""Jitted loops over the sequences in BAM records."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._turns_numba import counter, own_turns
from f5py.core.cigar import HARD_CLIP
from f5py.io.bam._bam_numba import FLAGS, IS_REVERSE, N_BASES, cigar_of, sequence_begins, signed32, unsigned16
from f5py.jit.kernel import exact_kernel

#: Letters by the four bits that BAM stores.
_LETTERS = np.frombuffer(b"=ACMGRSVTWYHKDBN", np.uint8)
#: The complement of a base is its four bits in the reverse order.
_COMPLEMENT_LETTERS = _LETTERS[[int(f"{i:04b}"[::-1], 2) for i in range(16)]]
#: A bit that all of these have but "=".
_BIT_OF_BASES = np.uint8(0x40)


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


class Held(NamedTuple):
    """Sequences of reads whose records have not got all of them."""

    row: NDArray[np.int64]  # shape (n,): which of these each chosen record's read has; -1: that of the record
    bases: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class Sequences(NamedTuple):
    """Sequences of n reads, as sequenced."""

    bases: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # shape (n + 1,)
    is_short: NDArray[np.bool_]  # shape (1,): a record has "=", the reference's base, in it


@exact_kernel
def copy_sequences(turn, reads, data, starts, chosen, held, made):
    """Fill in the bases of some of the chosen records' reads.

    Parameters
    ----------
    turn, reads
        See `f5py.threads.pool.WorkerPool.run`; which of `chosen`.
    data, starts, chosen
        See `f5py.io.bam._bam_numba.decode`.
    held : Held
    made : Sequences
        Its bases are filled, and `is_short` is set if that is so.
    """
    common = np.uint8(255)  # bits that all letters have
    for turn_of in own_turns(counter(turn), reads.shape[0]):
        i = reads[turn_of]
        to = made.offsets[i]
        size = made.offsets[i + 1] - to
        if held.row[i] >= 0:
            first = held.offsets[held.row[i]]
            for j in range(size):
                made.bases[to + j] = held.bases[first + j]
            continue
        at = starts[chosen[i]]
        begin = sequence_begins(data, at)
        reverse = unsigned16(data, at + FLAGS) & IS_REVERSE != 0
        letters = _COMPLEMENT_LETTERS if reverse else _LETTERS
        place = to + size - 1 if reverse else to
        step = -1 if reverse else 1
        for j in range(size >> 1):
            pair = data[begin + j]
            first_letter, second_letter = letters[pair >> 4], letters[pair & 15]
            common &= first_letter & second_letter
            made.bases[place] = first_letter
            made.bases[place + step] = second_letter
            place += 2 * step
        if size & 1 == 1:
            letter = letters[data[begin + (size >> 1)] >> 4]
            common &= letter
            made.bases[place] = letter
    if common & _BIT_OF_BASES == 0:
        made.is_short[0] = True
