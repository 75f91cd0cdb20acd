"""Estimate the levels of k-mers from reads whose methylation is known."""
