"""Pools of threads, ordered work, and interrupts."""
