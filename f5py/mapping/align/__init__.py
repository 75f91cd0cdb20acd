"""Base alignment of chains."""
