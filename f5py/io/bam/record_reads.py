"""Basecalled reads from alignment records."""

from collections.abc import Generator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from f5py.core.cigar import HARD_CLIP, OF_READ
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.io.bam._bam_numba import (
    FLAGS,
    IS_REVERSE,
    LETTER_PAIRS,
    LETTERS,
    N_BASES,
    cigar_of,
    sequence_begins,
    signed32,
    unsigned16,
)
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_blocks import N_THREADS
from f5py.io.bam.bam_records import fixed_numbers, record_names
from f5py.io.reads.read_index import reads_in_memory
from f5py.jit.c_memory import address_of_data, load_uint16
from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.messages import console
from f5py.threads.pool import CallingThread, WorkerPool

#: Reversed bits code the complement.
_COMPLEMENT_LETTERS = LETTERS[[int(f"{i:04b}"[::-1], 2) for i in range(16)]]


def _bits_of_letters() -> NDArray[np.uint8]:
    """Make a table of htslib's four-bit codes of letters and of their complements; shape (2, 256)."""
    bits = np.full(256, 15, np.uint8)
    for code, letter in enumerate(LETTERS.tolist()[1:], 1):
        bits[[letter, letter + 32]] = code
    bits[list(b"Uu")] = bits[ord("T")]
    return np.stack([bits, np.array([int(f"{code:04b}"[::-1], 2) for code in bits], np.uint8)])


_BITS_OF_LETTERS = _bits_of_letters()
#: Letters of the two bases of a byte as sequenced, forward and reverse, in their order in memory.
_PAIRS = np.stack([LETTER_PAIRS, LETTER_PAIRS[[int(f"{i:08b}"[::-1], 2) for i in range(256)]]])
#: Possible bases of each code; "=" may be any.
_BASES_OF_CODE = np.array([15, *range(1, 16)], np.uint8)


@exact_kernel
def whole_lengths(data, starts, chosen, lengths):
    """Count the bases of each chosen record, 0 for hard-clipped ones.

    Parameters
    ----------
    lengths : int64
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
def copy_sequences(queue, reads, data, starts, chosen, held, bases, offsets):
    """Fill the bases of the chosen records' reads.

    Parameters
    ----------
    held : tuple of arrays
        Sequence of each chosen record's read, -1 for the record's own; letters and offsets of these sequences.
    """
    held_row, held_bases, held_offsets = held
    for turn_of in claimed_indices(work_counter(queue), reads.shape[0]):
        i = reads[turn_of]
        to = offsets[i]
        size = offsets[i + 1] - to
        if held_row[i] >= 0:
            first = held_offsets[held_row[i]]
            for j in range(size):
                bases[to + j] = held_bases[first + j]
            continue
        at = starts[chosen[i]]
        begin = sequence_begins(data, at)
        reverse = unsigned16(data, at + FLAGS) & IS_REVERSE != 0
        letters = _COMPLEMENT_LETTERS if reverse else LETTERS
        place = to + size - 1 if reverse else to
        step = -1 if reverse else 1
        for j in range(size >> 1):
            pair = data[begin + j]
            bases[place], bases[place + step] = letters[pair >> 4], letters[pair & 15]
            place += 2 * step
        if size & 1 == 1:
            bases[place] = letters[data[begin + (size >> 1)] >> 4]


@exact_kernel
def mark_other_bases(queue, reads, data, starts, chosen, bases, offsets, is_other):
    """Mark reads that differ from their records in bases or length.

    Letters that may stand for the same base are equal. Records without a sequence are compared by length; empty reads
    and records without bases never differ.

    Parameters
    ----------
    bases, offsets : uint8, int64
        Letters of the reads as sequenced.
    """
    for turn_of in claimed_indices(work_counter(queue), reads.shape[0]):
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
        bits, pairs = _BITS_OF_LETTERS[1 if reverse else 0], _PAIRS[1 if reverse else 0]
        place = offsets[i + 1] - 1 - clip if reverse else offsets[i] + clip
        step = -1 if reverse else 1
        address = address_of_data(bases) + place - (1 if reverse else 0)
        differ = np.uint16(0)  # in letters; most reads do not
        for j in range(n_bases >> 1):
            differ |= load_uint16(address + 2 * step * j) ^ pairs[data[at_bases + j]]
        n_other = np.int64(0)
        # all bases, or only one that is not in a pair
        for j in range(0 if differ else n_bases & ~1, n_bases):
            code = data[at_bases + (j >> 1)] >> (0 if j & 1 else 4) & 15
            n_other += bits[bases[place + step * j]] & _BASES_OF_CODE[code] == 0
        is_other[i] = n_other > 0


#: Flags of other than mapped primary records.
_NOT_PRIMARY = 0x4 | 0x100 | 0x800


class RecordReads:
    """Reads with their bases in alignment records.

    Hard-clipped and sequence-less secondary records get the bases of the read's primary record; for these the file is
    read twice more, with `n_threads`. On standard input they have none.
    """

    def __init__(self, alignments: AlignmentFile, n_threads: int = N_THREADS) -> None:
        self._alignments = alignments
        self._n_threads = n_threads
        #: Bases of reads with incomplete records.
        self.held = reads_in_memory(Names.of([]), np.empty(0, np.uint8), np.zeros(1, np.int64), alignments.name)
        self._has_searched = alignments.is_pipe

    def first_names(self, n: int) -> list[str]:
        """Return the read names of the first n records; none for a pipe."""
        if self._alignments.is_pipe:
            return []
        for data, starts, n_records in all_chunks(self._alignments):
            return list(record_names(data, starts, np.arange(min(n, n_records))))
        return []

    def look_up(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, wanted: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find the bases of the reads of `n` records, of which the `wanted` ones matter.

        Returns their numbers, 0 if unavailable, and their rows in `held`, or -1: they are in the record.
        """
        lengths = whole_lengths_of(data, starts, np.arange(n))
        rows = np.full(n, -1)
        incomplete = np.flatnonzero(wanted & (lengths == 0))
        if len(incomplete):
            if not self._has_searched:
                self._search()
            found = self.held.index.rows_of(record_names(data, starts, incomplete))
            rows[incomplete] = found
            if len(self.held):
                lengths[incomplete] = np.where(found >= 0, self.held.index.length[found], 0)
        return lengths, rows

    def sequences(
        self,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        chosen: NDArray[np.int64],
        rows: NDArray[np.int64],
        pool: WorkerPool | None = None,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the bases of the reads, as sequenced, and their offsets; `rows` as from `look_up`."""
        held_at = np.flatnonzero(rows >= 0)
        held, held_offsets = self.held.sequences_of(rows[held_at], pool)
        sizes = whole_lengths_of(data, starts, chosen)
        sizes[held_at] = np.diff(held_offsets)
        held_row = np.full(len(chosen), -1)
        held_row[held_at] = np.arange(len(held_at))
        return copy_read_sequences(data, starts, chosen, sizes, (held_row, held, held_offsets), pool)

    def close(self) -> None:
        self.held.close()

    def _search(self) -> None:
        """Load the bases of reads with incomplete records."""
        self._has_searched = True
        console.info("load_reads", "hard-clipped records get their bases from the primary ones, which are searched")
        wanted: list[Names] = []
        for data, starts, n in all_chunks(self._alignments, self._n_threads):
            lengths = whole_lengths_of(data, starts, np.arange(n))
            wanted.append(record_names(data, starts, np.flatnonzero(lengths == 0)))
        names = Names.joined(wanted)
        is_wanted = reads_in_memory(names, np.empty(0, np.uint8), np.zeros(len(names) + 1, np.int64), "").index
        found_names: list[Names] = []
        found: list[tuple[NDArray[np.uint8], NDArray[np.int64]]] = []
        for data, starts, n in all_chunks(self._alignments, self._n_threads):
            lengths = whole_lengths_of(data, starts, np.arange(n))
            flags = fixed_numbers(data, starts[:n], FLAGS, np.uint16)
            candidates = np.flatnonzero((flags & _NOT_PRIMARY == 0) & (lengths > 0))
            of_candidates = record_names(data, starts, candidates)
            chosen = candidates[is_wanted.rows_of(of_candidates) >= 0]
            found_names.append(record_names(data, starts, chosen))
            found.append(self.sequences(data, starts, chosen, np.full(len(chosen), -1)))
        bases = np.concatenate([np.empty(0, np.uint8), *(part for part, _ in found)])
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(offsets) for _, offsets in found)])
        self.held = reads_in_memory(Names.joined(found_names), bases, offsets_of(sizes), self._alignments.name)


def copy_read_sequences(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    chosen: NDArray[np.int64],
    sizes: NDArray[np.int64],
    held: tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]] | None = None,
    pool: WorkerPool | None = None,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Copy sequences from the records, or from `held`; return the letters and their offsets."""
    if held is None:
        held = np.full(len(chosen), -1), np.empty(0, np.uint8), np.zeros(1, np.int64)
    offsets = offsets_of(sizes)
    bases = np.empty(offsets[-1], np.uint8)
    (pool or CallingThread()).run(copy_sequences, np.arange(len(chosen)), data, starts, chosen, held, bases, offsets)
    return bases, offsets


def differ_from_records(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    chosen: NDArray[np.int64],
    bases: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    compared: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return which of the `compared` reads differ from their chosen records in bases or length."""
    is_other = np.zeros(len(chosen), np.bool_)
    CallingThread().run(mark_other_bases, np.flatnonzero(compared), data, starts, chosen, bases, offsets, is_other)
    return is_other


def all_chunks(
    alignments: AlignmentFile, n_threads: int = N_THREADS
) -> Generator[tuple[NDArray[np.uint8], NDArray[np.int64], int], None, None]:
    """Yield all records of a reopened file as `AlignmentFile.chunks`, inflated in `n_threads`."""
    with closing(alignments.reopened(n_threads)) as again:
        yield from again.chunks()


def whole_lengths_of(
    data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the bases of records, 0 for hard-clipped ones."""
    lengths = np.empty(len(chosen), np.int64)
    whole_lengths(data, starts, chosen, lengths)
    return lengths
