"""Mapping of reads to a reference: minimizers, chains, base alignment, as minimap2 2.24 does it."""
