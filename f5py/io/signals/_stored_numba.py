"""Kernels that expand stored samples, of which some are compressed."""

from f5py.io.signals.slow5._svb_numba import expand_svb_zd
from f5py.jit.c_memory import address_of_data
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter


@exact_inner
def expand_pieces(stored, read, out, to):
    """Write the samples of a read to an array, from `to` on."""
    for piece in range(stored.pieces[read], stored.pieces[read + 1]):
        place, n = stored.places[piece], stored.n_samples[piece]
        if stored.is_packed[piece]:
            expand_svb_zd(address_of_data(stored.values) + place, out, to, n)
        else:
            for j in range(n):  # compiled ten times faster than an assignment to a slice
                out[to + j] = stored.values[place + j]
        to += n


@exact_kernel
def copy_samples(queue, reads, stored, places, samples):
    """Expand the samples of `reads` to their offsets in `samples`.

    Parameters
    ----------
    stored : f5py.core.batch.StoredSamples
    places : int64, shape (len(reads),)
        Offsets of the reads in `samples`.
    samples : int16
        Filled there.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        expand_pieces(stored, reads[i], samples, places[i])
