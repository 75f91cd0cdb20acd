"""Operations of a CIGAR as BAM stores them: length times 16 plus operation (SAM specification, section 4.2)."""

from __future__ import annotations

MATCH, INSERTION, DELETION, REFERENCE_SKIP, SOFT_CLIP, HARD_CLIP, PADDING, EQUAL, MISMATCH = range(9)


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


# Sets of operations, a bit for each: those for which ``SET >> operation & 1`` is 1. Kernels compile that in a tenth of
# the time of ``operation in (...)``.
#: A base of the read stands opposite to one of the reference.
ALIGNED = _bits(MATCH, EQUAL, MISMATCH)
#: Takes bases of the reference.
OF_REFERENCE = ALIGNED | _bits(DELETION, REFERENCE_SKIP)
#: Takes bases of the sequence in the record.
OF_RECORD = ALIGNED | _bits(INSERTION, SOFT_CLIP)
#: Takes bases of the whole read.
OF_READ = OF_RECORD | _bits(HARD_CLIP)
