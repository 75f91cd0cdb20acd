"""Kernels for the sequences in BAM records."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._turns_numba import counter, own_turns
from f5py.core.cigar import HARD_CLIP, OF_READ
from f5py.io.bam._bam_numba import FLAGS, IS_REVERSE, N_BASES, cigar_of, sequence_begins, signed32, unsigned16
from f5py.jit.kernel import exact_kernel

#: Letters by their four-bit codes.
_LETTERS = np.frombuffer(b"=ACMGRSVTWYHKDBN", np.uint8)
#: Reversed bits code the complement.
_COMPLEMENT_LETTERS = _LETTERS[[int(f"{i:04b}"[::-1], 2) for i in range(16)]]
#: Set in all letters but "=".
_BIT_OF_BASES = np.uint8(0x40)


def _bits_of_letters() -> NDArray[np.uint8]:
    """Make a table of htslib's four-bit codes of letters and of their complements; shape (2, 256)."""
    bits = np.full(256, 15, np.uint8)
    for code, letter in enumerate(_LETTERS.tolist()[1:], 1):
        bits[[letter, letter + 32]] = code
    bits[list(b"Uu")] = bits[ord("T")]
    return np.stack([bits, np.array([int(f"{code:04b}"[::-1], 2) for code in bits], np.uint8)])


_BITS_OF_LETTERS = _bits_of_letters()
#: Possible bases of each code; "=" may be any.
_BASES_OF_CODE = np.array([15, *range(1, 16)], np.uint8)


@exact_kernel
def whole_lengths(data, starts, chosen, lengths):
    """Fill the bases of each chosen record, 0 for hard-clipped ones.

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


class PendingSequences(NamedTuple):
    """Sequences of reads with incomplete records."""

    row: NDArray[np.int64]  # shape (n,): sequence of each chosen record's read; -1: the record's own
    bases: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class ReadSequences(NamedTuple):
    """Sequences of n reads, as sequenced."""

    bases: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # shape (n + 1,)
    is_short: NDArray[np.bool_]  # shape (1,): a record contains "=", the reference's base


@exact_kernel
def copy_sequences(turn, reads, data, starts, chosen, held, made):
    """Fill the bases of the chosen records' reads.

    Parameters
    ----------
    turn, reads
        See `f5py.threads.pool.WorkerPool.run`; indices of `chosen`.
    data, starts, chosen
        See `f5py.io.bam._bam_numba.decode`.
    held : PendingSequences
    made : ReadSequences
        Filled.
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


@exact_kernel
def mark_other_bases(turn, reads, data, starts, chosen, bases, offsets, is_other):
    """Mark reads that differ from their records in bases or length.

    Letters that may stand for the same base are equal. Records without a sequence are compared by length; empty reads
    and records without bases never differ.

    Parameters
    ----------
    turn, reads
        See `f5py.threads.pool.WorkerPool.run`; indices of `chosen`.
    data, starts, chosen
        See `f5py.io.bam._bam_numba.decode`.
    bases, offsets
        Letters of the reads as sequenced.
    is_other : bool, shape (n,)
        Filled.
    """
    for turn_of in own_turns(counter(turn), reads.shape[0]):
        i = reads[turn_of]
        size = offsets[i + 1] - offsets[i]
        at = starts[chosen[i]]
        begin, n_operations = cigar_of(data, at, starts[chosen[i] + 1])
        length = np.int64(0)
        clip = np.int64(0)  # hard-clipped bases before the sequence
        clips = np.int64(0)
        for j in range(n_operations):
            operation = np.uint32(signed32(data, begin + 4 * j))
            if OF_READ >> (operation & 15) & 1:
                n = np.int64(operation >> 4)
                if operation & 15 == HARD_CLIP:
                    clips += n
                    if length == 0:
                        clip = n
                length += n
        is_other[i] = length != size and length > 0 and size > 0
        n_bases = signed32(data, at + N_BASES)
        if is_other[i] or n_bases == 0 or n_bases + clips != size:
            continue
        at_bases = sequence_begins(data, at)
        reverse = unsigned16(data, at + FLAGS) & IS_REVERSE != 0
        bits = _BITS_OF_LETTERS[1 if reverse else 0]
        place = offsets[i + 1] - 1 - clip if reverse else offsets[i] + clip
        step = -1 if reverse else 1
        n_other = np.int64(0)
        for j in range(n_bases >> 1):
            pair = data[at_bases + j]
            n_other += bits[bases[place]] & _BASES_OF_CODE[pair >> 4] == 0
            n_other += bits[bases[place + step]] & _BASES_OF_CODE[pair & 15] == 0
            place += 2 * step
        if n_bases & 1 == 1:
            n_other += bits[bases[place]] & _BASES_OF_CODE[data[at_bases + (n_bases >> 1)] >> 4] == 0
        is_other[i] = n_other > 0
