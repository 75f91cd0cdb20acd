"""SLOW5 and BLOW5 files."""
