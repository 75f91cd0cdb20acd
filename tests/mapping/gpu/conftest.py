"""Fixtures of the tests of GPUs."""

from ...compute.conftest import device

__all__ = ["device"]
