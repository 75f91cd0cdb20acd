"""CIGAR operations as in BAM: length << 4 | operation (SAM specification, section 4.2)."""

MATCH, INSERTION, DELETION, REFERENCE_SKIP, SOFT_CLIP, HARD_CLIP, PADDING, EQUAL, MISMATCH = range(9)


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


# Bit sets, tested by ``SET >> operation & 1``, which compiles faster than ``operation in (...)``.
ALIGNED = _bits(MATCH, EQUAL, MISMATCH)
#: Consume the reference.
OF_REFERENCE = ALIGNED | _bits(DELETION, REFERENCE_SKIP)
#: Consume the record's sequence.
OF_RECORD = ALIGNED | _bits(INSERTION, SOFT_CLIP)
#: Consume the whole read.
OF_READ = OF_RECORD | _bits(HARD_CLIP)
