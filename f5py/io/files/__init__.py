"""Files that appear when they are complete, and other outputs."""
