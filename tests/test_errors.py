"""Messages about optional packages."""

from __future__ import annotations

import pytest

from f5py.errors import unavailable


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (ModuleNotFoundError("No module named 'pod5'", name="pod5"), "POD5 needs pod5; install it: pip install pod5"),
        (
            ModuleNotFoundError("No module named 'lib_pod5'", name="lib_pod5"),
            "POD5 needs pod5, which is installed but cannot be loaded: No module named 'lib_pod5'",
        ),
        (
            ImportError("libarrow.so.2: cannot open\nshared object file"),
            "POD5 needs pod5, which is installed but cannot be loaded: libarrow.so.2: cannot open shared object file",
        ),
    ],
)
def test_missing_and_broken_packages_are_told_apart(problem: ImportError, words: str):
    assert str(unavailable(problem, "POD5 needs", "pod5", "pod5")) == words
