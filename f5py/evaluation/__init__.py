"""Evaluation of calls: distribution and errors of ratios, agreement with known sites."""
