"""Estimation of k-mer levels from reads of known methylation."""
