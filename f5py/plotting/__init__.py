"""Plots of a read's signal with events and bases, and of the calls of reads over a locus."""

import os

from f5py.errors import UsageError
from f5py.options.output_names import kind_of_several

#: File formats and extensions of figures.
FORMATS = ("png", "svg", "pdf", "html")


def format_of(output: str) -> str:
    """Return the format of a figure by its file name, or raise `UsageError`."""
    return kind_of_several("-o", output, FORMATS)


def file_stem(read: str) -> str:
    """Return a read's name for the name of its picture; raise `UsageError` for an unusable one."""
    if os.path.basename(read) != read:
        raise UsageError(f"the name of the read, {read}, is no file name; name a file with -o")
    return read
