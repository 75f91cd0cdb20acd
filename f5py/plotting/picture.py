"""Pictures that the commands that draw return to Python: to be shown, saved, or drawn on."""

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
    """A picture of a read or of a locus. A notebook shows it as a page that can be zoomed.

    Parameters
    ----------
    write : function of (binary file, format)
        Writes it in one of `f5py.plotting.FORMATS`.
    draw : function
        Draws it with matplotlib.
    height : int
        Of the page in a notebook, in pixels.
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
        """Return the page, complete in itself, as HTML."""
        file = io.BytesIO()
        self._write(file, "html")
        return file.getvalue().decode()

    def figure(self) -> Figure:
        """Draw it as a new `matplotlib.figure.Figure`, which can be changed before it is saved.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        return self._draw()

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file, whose ending says the format: png, svg, pdf or html.

        Raises
        ------
        UsageError
            The ending is another one.
        MissingDependencyError
            matplotlib is not installed, and the format needs it.
        OutputFileError
            The file cannot be written.
        """
        name = fspath(path)
        kind = format_of(name)
        with complete_output(name) as file:
            self._write(file, kind)
