"""Foundations of all rooms: the batch, the worker threads, windows, motifs, options."""
