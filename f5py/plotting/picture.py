"""Pictures that plotting commands return to Python."""

from __future__ import annotations

import io
from collections.abc import Callable
from html import escape
from os import PathLike, fspath
from typing import TYPE_CHECKING, BinaryIO

from f5py.io.files.complete_file import complete_output
from f5py.plotting import format_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Picture:
    """Picture of a read or a locus, shown by notebooks as a page to zoom in.

    Parameters
    ----------
    write : function of (binary file, format)
        Writes the picture in one of `f5py.plotting.FORMATS`.
    draw : function
        Draws the picture with matplotlib.
    height : int
        Height of the page in a notebook, in pixels.
    """

    def __init__(self, title: str, write: Callable[[BinaryIO, str], None], draw: Callable[[], Figure], height: int):
        self._title = title
        self._write = write
        self._draw = draw
        self._height = height

    def __repr__(self) -> str:
        return f"<Picture of {self._title}>"

    def _repr_html_(self) -> str:
        page = escape(self.page(), quote=True)
        return (
            f'<iframe srcdoc="{page}" title="{escape(self._title, quote=True)}" width="100%" height="{self._height}" '
            'style="border: 0"></iframe>'
        )

    def page(self) -> str:
        """Return the picture as a self-contained HTML page."""
        file = io.BytesIO()
        self._write(file, "html")
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
            self._write(file, kind)
