"""What ``call-methylation`` writes for each read: tables of calls, and tags of alignments."""
