"""Foundations of all rooms: batches, names, k-mers, motifs, windows, CIGAR."""
