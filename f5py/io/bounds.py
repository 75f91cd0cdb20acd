"""Range checks of numbers from files."""

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError

#: Bits of a position, which is packed with a contig number.
POSITION_BITS = 40


def check_bounds(values: NDArray, least: float, most: float, shown: str, column: str) -> None:
    """Raise `InputFileError` unless all values of a column are within bounds; `shown` names the file."""
    fits = (values >= least) & (values <= most)
    if not fits.all():
        wrong = values[np.flatnonzero(~fits)[0]]
        raise InputFileError(
            f"{shown}: a row has {wrong} as {column}, which must be from {least:,} to {most:,}; make the table again"
        )


def check_positions(values: NDArray[np.int64], shown: str, column: str) -> None:
    """Raise `InputFileError` unless all values of a column can be positions."""
    check_bounds(values, 0, (1 << POSITION_BITS) - 1, shown, column)
