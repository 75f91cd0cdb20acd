"""Tables of methylated sites: count, merge, read."""
