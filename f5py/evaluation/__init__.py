"""Calls as a whole: how their ratios are distributed, and how well they agree with what is known."""
