"""Alignments as BAM records and PAF lines."""
