"""Figures of matplotlib as files: the same drawing gives the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Formats of files.
KINDS = ("png", "svg", "pdf")
#: Settings of matplotlib.
RC = {"svg.hashsalt": "f5py", "svg.fonttype": "path", "pdf.fonttype": 42, "path.simplify": True}
_NO_DATE: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def has_matplotlib() -> bool:
    """Whether the library is installed."""
    import importlib.util

    return importlib.util.find_spec("matplotlib") is not None


def save_figure(figure: Figure, file: BinaryIO, kind: str, dots_per_inch: int = 150) -> None:
    """Write a figure, which was drawn with `RC`, without the date; `kind` is one of `KINDS`."""
    figure.savefig(file, format=kind, dpi=dots_per_inch, metadata=_NO_DATE[kind])
