"""Runs of the mapper: stages, flow and report."""
