"""Headers of alignment files from their text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from f5py.errors import InputFileError

if TYPE_CHECKING:
    import pysam


def header_of_text(text: str) -> pysam.AlignmentHeader:
    """Make a header from its lines.

    Raises `InputFileError` if a line lacks a field that it must have, or its field is not of the right form.

    Parameters
    ----------
    text : str
        Free text need not be UTF-8: other bytes are surrogates, and come out as they went in.
    """
    import pysam

    handler = pysam.set_encoding_error_handler("surrogateescape")
    try:
        return pysam.AlignmentHeader.from_text(text)
    except (ValueError, KeyError) as problem:
        why = " ".join(str(problem.args[0] if problem.args else problem).split())
        raise InputFileError(f"the header of the alignments is damaged ({why}); make the alignments again") from None
    finally:
        pysam.set_encoding_error_handler(handler)
