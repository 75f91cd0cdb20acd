"""Drawing reads: the signal of one with its events and bases, or the calls of all over a locus."""

import os

from f5py.errors import UsageError

#: File formats of figures, which are also the endings of the files' names.
FORMATS = ("png", "svg", "pdf", "html")


def format_of(output: str) -> str:
    """The format that the name of a figure says; `UsageError` if it is none of `FORMATS`."""
    kind = os.path.splitext(output)[1][1:].lower()
    if kind not in FORMATS:
        raise UsageError(f"-o {output}: does not end in .{', .'.join(FORMATS)}")
    return kind
