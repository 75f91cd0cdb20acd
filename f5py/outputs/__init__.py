"""Outputs of batches: rows and records, and the files that they go to."""
