"""Stored chunks of fast5 signals: length checks and inflation of plain gzip.

HDF5 does not compare a chunk's length with the needed one and returns memory beyond it. ISA-L takes half the time of
HDF5's zlib.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from h5py import h5d, h5p, h5t, h5z
from isal import isal_zlib
from numpy.typing import NDArray

from f5py.io.signals.source import UnreadableError

#: VBZ (variable-byte integers and zstd) in the HDF Group's registry.
VBZ_FILTER = 32020
_TOO_SHORT = "has damaged signal data (a chunk is too short)"
_CHECKSUM_BYTES = 4
#: VBZ begins with the decoded length.
_LENGTH_BYTES = 4
#: Errors for a missing or damaged chunk, which HDF5 reads as fill values or rejects.
_PROBLEMS = (OSError, RuntimeError, ValueError, TypeError, KeyError, MemoryError, isal_zlib.error)


def filters_of(created: h5p.PropDCID) -> list[int]:
    """Return the numbers of a dataset's filters in the order of application."""
    return [created.get_filter(i)[0] for i in range(created.get_nfilters())]


def read_chunks(dataset: h5d.DatasetID) -> NDArray[np.int16] | None:
    """Return the samples of a one-dimensional dataset, or None if HDF5 must read them.

    Chunks may exceed the signal; a stored chunk needs only the samples left. Raises `UnreadableError` if one has fewer.
    """
    created = dataset.get_create_plist()
    if created.get_layout() != h5d.CHUNKED or not hasattr(dataset, "read_direct_chunk"):
        return None
    filters = filters_of(created)
    kind = dataset.get_type()
    size = kind.get_size()
    (n,), (length,) = dataset.shape, created.get_chunk()
    if not filters:  # HDF5 returns no stored lengths then
        if dataset.get_storage_size() < (dataset.get_num_chunks() * length - -n % length) * size:
            raise UnreadableError(_TOO_SHORT)
        return None
    is_shuffled = len(filters) == 2 and filters[0] == h5z.FILTER_SHUFFLE and tuple(created.get_filter(0)[2]) == (size,)
    is_plain_gzip = filters[-1] == h5z.FILTER_DEFLATE and (len(filters) == 1 or is_shuffled)
    needs_hdf5 = not is_plain_gzip or not kind.equal(h5t.STD_I16LE) or sys.byteorder != "little"
    chunks = [np.empty(0, np.int16)]
    for begin in range(0, n, length):
        n_samples = min(length, n - begin)
        try:
            left_out, stored = dataset.read_direct_chunk((begin,))
            applied = [number for i, number in enumerate(filters) if not left_out >> i & 1]
            needs_hdf5 |= applied != filters
            n_bytes, expanded = _expand(stored, applied, n_samples * size)
        except _PROBLEMS:
            needs_hdf5 = True
            continue
        if n_bytes is not None and n_bytes < n_samples * size:
            raise UnreadableError(_TOO_SHORT)
        if not needs_hdf5:
            samples = _unshuffle(expanded) if is_shuffled else np.frombuffer(expanded, np.int16, n_samples)
            chunks.append(samples[:n_samples])
    if needs_hdf5:
        return None
    return chunks[1] if len(chunks) == 2 else np.concatenate(chunks)


def _expand(stored: bytes, filters: Sequence[int], n_bytes: int) -> tuple[int | None, bytes]:
    """Undo the filters of a chunk, except VBZ and shuffling, given its expected length.

    Returns
    -------
    n_bytes : int or None
        Length without filters; None if it depends on an unknown filter.
    expanded : bytes
    """
    for number in reversed(filters):
        if number == h5z.FILTER_FLETCHER32:
            stored = stored[:-_CHECKSUM_BYTES]
        elif number == h5z.FILTER_DEFLATE:
            stored = isal_zlib.decompress(stored, isal_zlib.MAX_WBITS, n_bytes)
        elif number == VBZ_FILTER and number == filters[0]:
            return int.from_bytes(stored[:_LENGTH_BYTES], "little"), stored
        elif number != h5z.FILTER_SHUFFLE:
            return None, stored
    return len(stored), stored


def _unshuffle(text: bytes) -> NDArray[np.int16]:
    """Undo HDF5's byte shuffling of samples."""
    n = len(text) // 2
    return np.frombuffer(text, np.uint8, 2 * n).reshape(2, n).T.copy().view(np.int16).ravel()
