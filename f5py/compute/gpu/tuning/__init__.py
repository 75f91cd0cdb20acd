"""Advice on GPU runs, and options chosen by themselves."""
