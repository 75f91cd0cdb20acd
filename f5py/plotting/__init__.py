"""Drawing reads: the signal of one with its events and bases, or the calls of all over a locus."""

import os

from f5py.errors import UsageError
from f5py.options.output_names import kind_of_several

#: File formats of figures, which are also the endings of the files' names.
FORMATS = ("png", "svg", "pdf", "html")


def format_of(output: str) -> str:
    """Return the format that the name of a figure says; `UsageError` if it is none of `FORMATS`."""
    return kind_of_several("-o", output, FORMATS)


def default_output(read: str) -> str:
    """Name the file of a read's picture unless another name is given."""
    output = f"{read}.{FORMATS[0]}"
    if os.path.basename(output) != output:
        raise UsageError(f"the name of the read, {read}, is no file name; name a file with -o")
    return output
