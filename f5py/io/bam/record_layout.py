"""Layout of a BAM record (SAM specification, section 4.2)."""

#: Bytes of a record before its name.
FIXED_SIZE = 36
#: Maximum bytes of a read name, without the terminating zero.
LONGEST_NAME = 254
