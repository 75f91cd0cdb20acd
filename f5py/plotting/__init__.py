"""Drawing reads: the signal of one with its events and bases, or the calls of all over a locus."""

import os

from f5py.errors import UsageError
from f5py.options.output_names import kind_of_several

#: File formats of figures, which are also the endings of the files' names.
FORMATS = ("png", "svg", "pdf", "html")


def format_of(output: str) -> str:
    """Return the format that the name of a figure says; `UsageError` if it is none of `FORMATS`."""
    return kind_of_several("-o", output, FORMATS)


def file_stem(read: str) -> str:
    """Return the name of a read for the name of its picture; raise `UsageError` if it cannot be part of one."""
    if os.path.basename(read) != read:
        raise UsageError(f"the name of the read, {read}, is no file name; name a file with -o")
    return read
