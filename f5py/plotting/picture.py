"""Pictures: reproducible files of matplotlib figures, and pages to zoom in."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, BinaryIO

from f5py.errors import unavailable
from f5py.io.files.complete_file import complete_output
from f5py.options.output_names import kind_of_several

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Formats of matplotlib's files, and of all pictures; their extensions.
KINDS = ("png", "svg", "pdf")
FORMATS = (*KINDS, "html")
#: Settings of matplotlib.
RC = {"svg.hashsalt": "f5py", "svg.fonttype": "path", "pdf.fonttype": 42, "path.simplify": True}
_NO_DATE: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def format_of(output: str) -> str:
    """Return the format of a picture by its file name, or raise `UsageError`."""
    return kind_of_several("-o", output, FORMATS)


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


def write_caption(figure: Figure, lines: Sequence[str], left: float, distance: float) -> None:
    """Write a title and smaller lines below it; `left` and `distance` of lines are in inches."""
    width, height = figure.get_size_inches()
    for i, words in enumerate(lines):
        figure.text(
            left / width, 1 - (0.24 + distance * i) / height, words, fontsize=9.5 if i else 12,
            fontweight="normal" if i else "bold", va="center", parse_math=False,
        )  # fmt: skip


class Picture:
    """Picture of a read or a locus, shown by notebooks as a page of a height in pixels to zoom in."""

    def __init__(
        self, title: str, write_page: Callable[[BinaryIO], None], draw: Callable[[], Figure], height: int = 0
    ) -> None:
        self._title, self._height = title, height
        self._write_page, self._draw = write_page, draw

    def __repr__(self) -> str:
        return f"<Picture of {self._title}>"

    def _repr_html_(self) -> str:
        page = escape(self.page(), quote=True)
        return (
            f'<iframe srcdoc="{page}" title="{escape(self._title, quote=True)}" width="100%" height="{self._height}" '
            'style="border: 0"></iframe>'
        )

    def write(self, file: BinaryIO, kind: str) -> None:
        """Write the picture in one of `FORMATS`."""
        if kind == "html":
            self._write_page(file)
        else:
            save_figure(self._draw(), file, kind)

    def page(self) -> str:
        """Return the picture as a self-contained HTML page."""
        file = io.BytesIO()
        self._write_page(file)
        return file.getvalue().decode()

    def figure(self) -> Figure:
        """Draw the picture as a new `matplotlib.figure.Figure`."""
        return self._draw()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a .png, .svg, .pdf or .html file.

        Raises
        ------
        UsageError
            The extension is another one.
        MissingDependencyError
            The format needs matplotlib, which is not installed.
        OutputFileError
            The file cannot be written.
        """
        name = fspath(path)
        kind = format_of(name)
        with complete_output(name) as file:
            self.write(file, kind)
