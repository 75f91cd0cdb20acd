"""Sorting and indexing of alignment records."""
