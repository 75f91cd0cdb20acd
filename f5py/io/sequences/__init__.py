"""Reads and contigs from FASTA, FASTQ and alignment files, and the index of reads written from them."""
