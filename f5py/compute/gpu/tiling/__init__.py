"""Alignments in tiles on GPUs."""
