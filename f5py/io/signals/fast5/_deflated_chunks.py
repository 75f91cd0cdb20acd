"""Samples that are compressed with deflate, as nearly all of fast5 but VBZ, taken as they are stored and inflated here.

ISA-L takes half the time of the zlib of HDF5, which is two thirds of what a read takes.
"""

from __future__ import annotations

import sys

import numpy as np
from h5py import h5d, h5p, h5z
from isal import isal_zlib
from numpy.typing import NDArray

from f5py.io.signals.source import Unreadable

#: Bytes of a sample.
_SIZE = 2
#: What reading may raise where a chunk is not there or damaged.
_PROBLEMS = (OSError, RuntimeError, ValueError, TypeError, KeyError, MemoryError, isal_zlib.error)


class DeflatedChunks:
    """Reads those signals of a file that are compressed in one of two ways: by deflate, or shuffled and then by it.

    Everything else is left to HDF5, and so are chunks that are damaged: what is said of them is HDF5's to say.
    """

    def __init__(self) -> None:
        # One program has written all signals of a file: once it is another filter, none is asked for any more.
        self._may_be = sys.byteorder == "little" and hasattr(h5d.DatasetID, "read_direct_chunk")

    def read(self, dataset: h5d.DatasetID, n: int, most_bytes: int) -> NDArray[np.int16] | None:
        """Return the samples of a dataset, or None if they are HDF5's to read.

        Raises `Unreadable` if there is less in a chunk than there should be.

        Parameters
        ----------
        dataset : DatasetID
            Of one dimension, of integers of 16 bits with the lower byte first.
        n : int
            Its length.
        most_bytes : int
            No chunk that is longer than that, inflated, is inflated here.
        """
        if not self._may_be or n == 0:
            return None
        try:
            created = dataset.get_create_plist()
            is_shuffled = _is_shuffled(created)
            if is_shuffled is None:
                self._may_be = False
                return None
            (length,) = created.get_chunk()
            if not 0 < length <= most_bytes // _SIZE:
                return None
            chunks = [_chunk(dataset, at, length, is_shuffled) for at in range(0, n, length)]
        except _PROBLEMS:
            return None
        return (chunks[0] if len(chunks) == 1 else np.concatenate(chunks))[:n]


def _is_shuffled(created: h5p.PropDCID) -> bool | None:
    """Return whether chunks were shuffled before they were compressed, None if it is not deflate that did that."""
    n = created.get_nfilters()
    if not 1 <= n <= 2:
        return None
    last, *_ = created.get_filter(n - 1)
    if last != h5z.FILTER_DEFLATE:
        return None
    if n == 1:
        return False
    first, _, values, *_ = created.get_filter(0)
    return True if first == h5z.FILTER_SHUFFLE and tuple(values) == (_SIZE,) else None


def _chunk(dataset: h5d.DatasetID, at: int, length: int, is_shuffled: bool) -> NDArray[np.int16]:
    """Read the chunk of so many samples that begins with the sample `at`. Raises `Unreadable` or one of `_PROBLEMS`."""
    skipped, packed = dataset.read_direct_chunk((at,))
    if skipped:
        raise ValueError("a filter was not applied")
    text = isal_zlib.decompress(packed, isal_zlib.MAX_WBITS, length * _SIZE)
    if len(text) < length * _SIZE:  # HDF5 would leave the rest as it finds it in memory
        raise Unreadable("has damaged signal data (a chunk is too short)")
    if len(text) > length * _SIZE:
        raise ValueError("too long")
    if not is_shuffled:
        return np.frombuffer(text, np.int16)
    # the first bytes of all samples, then the second ones
    return np.frombuffer(text, np.uint8).reshape(_SIZE, length).T.copy().view(np.int16).ravel()
