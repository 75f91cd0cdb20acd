"""Compute batches: the stages on CPU threads and GPUs, and what they count."""
