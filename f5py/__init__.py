"""Nanopore methylation calling with adaptive banded event alignment."""

__version__ = "0.1.0"
