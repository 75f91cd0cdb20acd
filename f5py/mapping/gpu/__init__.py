"""Mapping on GPUs: chains, alignments between anchors, exact matches as seeds, and tiles."""
