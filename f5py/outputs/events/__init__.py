"""Outputs of ``eventalign``."""
