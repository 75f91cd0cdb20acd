"""Simulated nanopore reads of known methylation."""
