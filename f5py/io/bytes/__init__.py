"""Bytes in and out: plain, gzip, BGZF, pipes."""
