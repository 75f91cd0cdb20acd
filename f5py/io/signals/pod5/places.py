"""Where the pieces of signals lie in POD5 files, as a process beside this one finds them.

Only the tables are left to the library, which may crash over damage: the pieces are read and expanded by threads of the
process that needs them (`PlacedSource`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from f5py.io.signals.pod5.reader import Pod5Reader

if TYPE_CHECKING:
    from f5py.io.signals.pod5._pod5_file import Pod5File, StoredRead

#: Numbers of 64 bits for each piece, and elements of samples that these take.
N_NUMBERS = 3
N_ELEMENTS = N_NUMBERS * np.dtype(np.int64).itemsize // np.dtype(np.int16).itemsize


class PlacesReader(Pod5Reader):
    """Reads, in place of samples, where they are: `N_NUMBERS` numbers of 64 bits for a read and for each of its pieces.

    The first ones of a read are its number of samples and zeros; those of a piece are where it begins and ends in the
    file and its number of samples. They are zeros where the tables do not say, or where pieces are not as usual.
    """

    def _size_of(self, read: StoredRead) -> int:
        return N_ELEMENTS * (1 + len(read.pieces)) if read.n_samples else 0

    def _fill(self, file: Pod5File, read: StoredRead, samples: NDArray[np.int16]) -> None:
        numbers = np.zeros((1 + len(read.pieces), N_NUMBERS), np.int64)
        numbers[0, 0] = read.n_samples
        file.find_pieces(read, numbers[1:])
        samples[:] = numbers.ravel().view(np.int16)
