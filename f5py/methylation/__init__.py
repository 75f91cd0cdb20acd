"""Motifs, site groups, the hidden Markov model and methylation frequencies."""
