"""POD5 files."""
