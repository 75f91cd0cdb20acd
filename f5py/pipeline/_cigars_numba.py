"""Kernels on the CIGARs of a batch."""

import numpy as np

from f5py.core.cigar import ALIGNED, HARD_CLIP, OF_READ, OF_REFERENCE, REFERENCE_SKIP
from f5py.jit.kernel import exact_kernel


@exact_kernel
def prepare(cigar, offsets, hard_clips):
    """Clear hard clips unless they count; return the first spliced read, or -1.

    Parameters
    ----------
    cigar : uint32, shape (offsets[n],)
        Length times 16 plus operation; changed.
    offsets : int64, shape (n + 1,)
    hard_clips : bool
        Whether they count.
    """
    spliced = -1
    for read in range(offsets.shape[0] - 1):
        for i in range(offsets[read], offsets[read + 1]):
            operation = cigar[i] & 15
            if operation == HARD_CLIP:
                if not hard_clips:
                    cigar[i] = HARD_CLIP
            elif operation == REFERENCE_SKIP and spliced < 0:
                spliced = read
    return spliced


@exact_kernel
def count_columns(alignments, bases, base_offsets, codes, columns):
    """Count the aligned columns of reads, and those with equal bases.

    Columns with an A of the reference are skipped, as unknown bases become A, and so are reads with another number of
    bases than their alignment.

    Parameters
    ----------
    alignments : f5py.core.batch.Alignments
    bases, base_offsets
        Letters of the reads as sequenced.
    codes : uint8, shape (256,)
        See `f5py.core.kmers.base_codes`.
    columns : int64, shape (n, 2)
        Added to, of the first n reads.
    """
    for read in range(columns.shape[0]):
        first, end = alignments.cigar_offsets[read], alignments.cigar_offsets[read + 1]
        n_bases = np.int64(0)
        for i in range(first, end):
            if OF_READ >> (alignments.cigar[i] & 15) & 1:
                n_bases += np.int64(alignments.cigar[i] >> 4)
        if n_bases != base_offsets[read + 1] - base_offsets[read]:
            continue
        place = alignments.reference_offsets[read]
        base, step = (base_offsets[read + 1] - 1, -1) if alignments.reverse[read] else (base_offsets[read], 1)
        for i in range(first, end):
            operation = alignments.cigar[i] & 15
            n = np.int64(alignments.cigar[i] >> 4)
            if ALIGNED >> operation & 1:
                for j in range(n):
                    expected = codes[alignments.reference[place + j]]
                    code = codes[bases[base + step * j]]
                    columns[read, 0] += expected > 0
                    columns[read, 1] += expected > 0 and expected == (3 - code if step < 0 else code)
            if OF_REFERENCE >> operation & 1:
                place += n
            if OF_READ >> operation & 1:
                base += step * n
