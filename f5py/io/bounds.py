"""Numbers from files, held to the range that they are computed with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError

#: A position has fewer bits, so that it can be packed with the number of its contig.
POSITION_BITS = 40


def check_bounds(values: NDArray, least: float, most: float, shown: str, column: str) -> None:
    """Raise `InputFileError` unless all values of a column are numbers from `least` to `most`.

    Parameters
    ----------
    values : numbers
    shown : str
        Name of the file.
    """
    fits = (values >= least) & (values <= most)
    if not fits.all():
        wrong = values[np.flatnonzero(~fits)[0]]
        raise InputFileError(
            f"{shown}: a row has {wrong} as {column}, which must be from {least:,} to {most:,}; make the table again"
        )


def check_positions(values: NDArray[np.int64], shown: str, column: str) -> None:
    """Raise `InputFileError` unless all values of a column can be positions."""
    check_bounds(values, 0, (1 << POSITION_BITS) - 1, shown, column)
