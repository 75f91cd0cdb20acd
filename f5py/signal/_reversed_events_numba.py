"""Jitted loops that put the events of a read into the opposite order."""

from f5py.core._turns_numba import counter, own_turns
from f5py.jit.kernel import exact_kernel


@exact_kernel
def _reverse(values):
    n = values.shape[0]
    for i in range(n // 2):
        values[i], values[n - 1 - i] = values[n - 1 - i], values[i]


@exact_kernel
def reverse_all_events(turn, reads, events):
    """Put the events of `reads` into the opposite order.

    Parameters
    ----------
    events : f5py.core.batch.Events
        Changed.
    """
    for i in own_turns(counter(turn), reads.shape[0]):
        first = events.offsets[reads[i]]
        end = events.offsets[reads[i] + 1]
        _reverse(events.start[first:end])
        _reverse(events.length[first:end])
        _reverse(events.mean[first:end])
        _reverse(events.stdv[first:end])
