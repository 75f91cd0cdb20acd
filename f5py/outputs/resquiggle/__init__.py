"""Outputs of ``resquiggle``, and the strings of samples that SAM and PAF share with it."""
