"""Drawing reads: the signal of one with its events and bases, or the calls of all over a locus."""

from f5py.options.output_names import kind_of_several

#: File formats of figures, which are also the endings of the files' names.
FORMATS = ("png", "svg", "pdf", "html")


def format_of(output: str) -> str:
    """The format that the name of a figure says; `UsageError` if it is none of `FORMATS`."""
    return kind_of_several("-o", output, FORMATS)
