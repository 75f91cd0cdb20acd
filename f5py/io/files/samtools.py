"""Commands of samtools, as pysam has them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any


def run_samtools(command: Callable[..., Any], *arguments: str, target: str) -> None:
    """Run a command of samtools; pysam keeps what it says in temporary files, which may be anywhere.

    Parameters
    ----------
    command : callable
        Of pysam.
    arguments : str
    target : str
        What the command writes. If the folder for temporary files refuses them, they are in this one's.

    Raises
    ------
    pysam.SamtoolsError
        The command has failed.
    OSError
        There can be no temporary files in either folder.
    """
    try:
        command(*arguments)
    except OSError:
        before = tempfile.tempdir
        tempfile.tempdir = os.path.dirname(os.path.abspath(target))
        try:
            command(*arguments)
        finally:
            tempfile.tempdir = before
