"""Seeds that are maximal exact matches, found in an index of all suffixes of the reference."""
