"""Compute stages of a batch on CPU threads and GPUs, with their counts."""
