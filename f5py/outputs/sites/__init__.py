"""Counts of sites: bedMethyl, tracks for genome browsers, and Arrow tables."""
