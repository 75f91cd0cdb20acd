"""SAM, BAM and CRAM."""
