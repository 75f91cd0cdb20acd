"""Fixtures of the tests of GPUs."""

from ...compute.conftest import device, pool

__all__ = ["device", "pool"]
