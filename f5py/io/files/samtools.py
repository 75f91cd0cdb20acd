"""Runner of pysam's samtools commands."""

import os
import tempfile
from collections.abc import Callable
from typing import Any


def run_samtools(command: Callable[..., Any], *arguments: str, target: str) -> None:
    """Run a samtools command of pysam, which captures its messages in temporary files.

    They go to the folder of `target`, the command's output, if the system's temporary folder fails. Raises
    `pysam.SamtoolsError`, or `OSError` if neither folder can be written.
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
