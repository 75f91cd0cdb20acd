"""Alignment of a read's events to the reference."""
