"""Chains of anchors."""
