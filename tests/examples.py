"""Number of Hypothesis's examples: fewer than a developer may want who changes what a property is about."""

from __future__ import annotations

import os

#: ``F5PY_EXAMPLES=1`` tries as many as the tests name, and more than 1 that many times as many.
SHARE = float(os.environ.get("F5PY_EXAMPLES", "0.4"))


def examples(n: int) -> int:
    """Return how many of `n` examples to try."""
    return max(round(n * SHARE), 5)
