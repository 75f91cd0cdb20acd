"""Files in, and files out as bytes; no algorithms."""
