"""Reads and references: FASTA, FASTQ, and indexes of reads."""
