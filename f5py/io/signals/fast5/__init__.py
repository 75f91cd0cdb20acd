"""fast5 files."""
