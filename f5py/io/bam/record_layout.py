"""The layout of a BAM record (SAM specification, section 4.2), as far as Python and compiled code both need it."""

#: Bytes of a record before its name.
FIXED_SIZE = 36
