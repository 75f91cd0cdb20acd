"""Alignment records sorted by their places on the reference, and the index of what is written."""
