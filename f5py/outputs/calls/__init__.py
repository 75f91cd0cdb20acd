"""Outputs of ``call-methylation``: tables of calls, and tags of alignments."""
