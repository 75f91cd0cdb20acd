"""Kernel for lookups in the base-to-event map."""

from f5py.jit.kernel import inner

_LOOK_AROUND = 1000  # k-mers searched for an event


@inner
def closest_event(first_event, kmer):
    """Return the first event of the k-mer, or of the nearest earlier or else later one; or -1.

    The far end of each search is excluded, as in f5c.
    """
    n_kmers = first_event.shape[0]
    if kmer < 0 or kmer >= n_kmers:
        return -1
    for j in range(kmer, max(0, kmer - _LOOK_AROUND), -1):
        if first_event[j] >= 0:
            return first_event[j]
    for j in range(kmer, min(kmer + _LOOK_AROUND, n_kmers - 1)):
        if first_event[j] >= 0:
            return first_event[j]
    return -1
