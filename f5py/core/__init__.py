"""What all rooms share: the batch, the worker threads, windows, motifs, options."""
