"""Mapping and overlaps as Darwin does them: a filter that counts seeds on diagonals, and alignment in tiles."""
