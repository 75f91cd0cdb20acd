"""Mapping and overlaps as Darwin does them: seeds counted on diagonals, and alignment in tiles."""
