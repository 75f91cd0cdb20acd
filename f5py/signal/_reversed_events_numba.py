"""Jitted loops that put the events of a read into the opposite order."""

from f5py.jit.kernel import exact_inner


@exact_inner
def _reverse(values):
    n = values.shape[0]
    for i in range(n // 2):
        values[i], values[n - 1 - i] = values[n - 1 - i], values[i]


@exact_inner
def reverse_events(events, read):
    """Put the events of a read into the opposite order; starts in samples stay what they are."""
    first = events.offsets[read]
    end = events.offsets[read + 1]
    _reverse(events.start[first:end])
    _reverse(events.length[first:end])
    _reverse(events.mean[first:end])
    _reverse(events.stdv[first:end])
