"""Plots of a read's signal with events and bases, and of the calls of reads over a locus."""
