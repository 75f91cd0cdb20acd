"""Jitted loop of `f5py.event_alignment.kmer_marks`."""

import numpy as np

from f5py.core._turns_numba import counter, own_turns
from f5py.core.cigar import ALIGNED, DELETION, INSERTION, OF_READ, OF_REFERENCE
from f5py.jit.kernel import exact_kernel

_EQUAL, _DIFFERS, _INSERTED, _DELETED, _OUTSIDE = (np.uint8(ord(mark)) for mark in "=XID.")


@exact_kernel
def fill_marks(turn, reads, alignments, bases, base_offsets, letters, kmer, marks):
    """Fill the mark of each k-mer of the reads' references, by its first base.

    Parameters
    ----------
    alignments : f5py.core.batch.Alignments
    bases, base_offsets : uint8, int64
        Of the reads as sequenced.
    letters : uint8, shape (2, 256)
        Of the reference for those of reads on the forward strand and on the reverse one.
    kmer : pair of int
        Bases of a k-mer, and how many of them are hidden at each end.
    marks : uint8, shape (reference_offsets[-1],)
        Filled; at the last k - 1 bases of a reference no k-mer begins.
    """
    k, trim = kmer
    for i in own_turns(counter(turn), reads.shape[0]):
        read = reads[i]
        begin, end = alignments.reference_offsets[read], alignments.reference_offsets[read + 1]
        n_bases = base_offsets[read + 1] - base_offsets[read]
        is_reverse = alignments.reverse[read]
        # The last places of each kind so far; an insertion's is that of the base after it.
        deleted, inserted, different = np.int64(-1), np.int64(-1), np.int64(-1)
        outside = np.int64(-1)
        here = np.int64(0)  # in the read, in the reference's direction
        operation, last = alignments.cigar_offsets[read], alignments.cigar_offsets[read + 1]
        left = np.int64(0)  # of the operation
        what = np.int64(-1)
        for place in range(end - begin):
            while left == 0 and operation < last:
                what, left = np.int64(alignments.cigar[operation] & 15), np.int64(alignments.cigar[operation] >> 4)
                operation += 1
                if OF_REFERENCE >> what & 1 == 0:
                    if what == INSERTION and left > 0:
                        inserted = place
                    if OF_READ >> what & 1:
                        here += left
                    left = 0
            if left == 0:
                outside = place
            else:
                left -= 1
                if what == DELETION:
                    deleted = place
                elif ALIGNED >> what & 1:
                    is_same = here < n_bases
                    if is_same:
                        at = n_bases - 1 - here if is_reverse else here
                        base = letters[np.int64(is_reverse), bases[base_offsets[read] + at]]
                        is_same = base == alignments.reference[begin + place]
                    if not is_same:
                        different = place
                    here += 1
                else:
                    outside = place
            # The k-mer whose last base that is shown is at this place.
            first = place - (k - 2 * trim) + 1
            if first < trim:
                continue
            mark = _EQUAL
            if outside >= first:
                mark = _OUTSIDE
            elif deleted >= first:
                mark = _DELETED
            elif inserted > first:
                mark = _INSERTED
            elif different >= first:
                mark = _DIFFERS
            marks[begin + first - trim] = mark
        for place in range(max(end - begin - k + trim + 1, 0), end - begin):
            marks[begin + place] = _OUTSIDE
