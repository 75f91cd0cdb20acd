"""Folders of runs that can go on where they were ended."""

from __future__ import annotations

from f5py.errors import UsageError
from f5py.io.files.unfinished_file import is_special

_ENDING = ".f5py-parts"


def folder_beside(output: str | None, advice: str) -> str:
    """Name the folder for ``--resume`` beside an output.

    Parameters
    ----------
    output : str or None
        ``-`` and None are standard output.
    advice : str
        What to do if there is no such folder.

    Raises
    ------
    UsageError
        The output is not a file that stays.
    """
    if output is None or output == "-":
        raise UsageError(f"--resume: the results go to standard output; {advice}")
    if is_special(output):
        raise UsageError(f"--resume: {output} is a device or a pipe; {advice}")
    return f"{output}{_ENDING}"
