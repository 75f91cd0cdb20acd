"""Reproducible files of matplotlib figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from f5py.errors import unavailable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Formats of files.
KINDS = ("png", "svg", "pdf")
#: Settings of matplotlib.
RC = {"svg.hashsalt": "f5py", "svg.fonttype": "path", "pdf.fonttype": 42, "path.simplify": True}
_NO_DATE: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def require_matplotlib(need: str) -> None:
    """Raise `MissingDependencyError` without matplotlib; `need` is the subject and verb of the message."""
    try:
        import matplotlib  # noqa: F401 - to fail early
    except ImportError as problem:
        raise unavailable(problem, need, "matplotlib", "plot") from problem


@contextmanager
def settings() -> Iterator[None]:
    """Apply fixed settings of matplotlib instead of the user's."""
    from matplotlib.style import context

    with context(["default", RC]):
        yield


def save_figure(figure: Figure, file: BinaryIO, kind: str, dots_per_inch: int = 150) -> None:
    """Write a figure in one of `KINDS`, without the date."""
    with settings():
        figure.savefig(file, format=kind, dpi=dots_per_inch, metadata=_NO_DATE[kind])
