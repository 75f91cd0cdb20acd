"""What GPUs do in mapping: chains, alignments between anchors, exact matches as seeds, and tiles."""
