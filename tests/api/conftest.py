"""Fixtures of the tests of the Python functions."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def messages_on_standard_error() -> None:
    """Not here: messages go to the logger."""
