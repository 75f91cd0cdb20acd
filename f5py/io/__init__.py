"""Files in and out; no algorithms."""
