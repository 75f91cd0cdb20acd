"""Adaptive banded event alignment."""
