"""Processes that share the work of a run: one for each GPU."""
