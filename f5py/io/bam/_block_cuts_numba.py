"""Kernels that cut records into BGZF blocks as described in `f5py.io.bam.bam_output`."""

import numpy as np

from f5py.io.bam._bam_numba import signed32
from f5py.jit.kernel import exact_inner, exact_kernel


@exact_kernel
def cut_blocks(data, walked, block_size, ends):
    """Cut text into blocks; return the number of full ones.

    Parameters
    ----------
    data : uint8
        Begins with a block.
    walked : int
        Offset of the first whole record; no block ends before it.
    block_size : int
    ends : int64
        Filled with the ends of full blocks; needs two entries per block size and two more.
    """
    begin = np.int64(0)
    at = np.int64(walked)
    n_full = 0
    while at < data.shape[0]:
        end = at + 4 + signed32(data, at)
        begin, n_full = _cut_before(begin, at, end, block_size, (ends, n_full))
        at = end
    return n_full


@exact_kernel
def cut_records(offsets, block_size, ends):
    """Cut records of known sizes into blocks as `cut_blocks`; return the number of full ones.

    Parameters
    ----------
    offsets : int64, shape (n + 1,)
        Of adjacent records, in bytes.
    block_size, ends
        See `cut_blocks`.
    """
    begin = np.int64(0)
    n_full = 0
    for i in range(offsets.shape[0] - 1):
        begin, n_full = _cut_before(begin, offsets[i], offsets[i + 1], block_size, (ends, n_full))
    return n_full


@exact_inner
def _cut_before(begin, at, end, block_size, cuts):
    """End blocks before and within a record; return the last one's start and the number of full ones."""
    ends, n_full = cuts
    if at > begin and end - begin > block_size:
        ends[n_full] = begin = at
        n_full += 1
    while end - begin > block_size:
        begin += block_size
        ends[n_full] = begin
        n_full += 1
    return begin, n_full
