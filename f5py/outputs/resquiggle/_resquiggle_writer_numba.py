"""Kernel of `f5py.outputs.resquiggle.resquiggle_writer`."""

import numpy as np

from f5py.jit.kernel import kernel
from f5py.outputs.resquiggle._signal_strings_numba import kmer_interval
from f5py.text._format_numba import NEWLINE, TAB, append_bytes, append_int

_NONE = np.frombuffer(b".\t.", np.uint8)

#: Bytes of a row besides the read's name: three numbers of int32's size, four separators.
MAX_ROW = 3 * 11 + 4


@kernel
def format_kmers(out, names, name_offsets, n_kmers, base_map, events, rna):
    """Write a row for every k-mer of every read, in the order of the signal.

    Stops before the first k-mer with an empty range of samples. Returns the bytes written, and the read and k-mer at
    which it stopped, -1 if none.

    Parameters
    ----------
    out : uint8
        Filled; of `MAX_ROW` bytes and the name for each k-mer.
    names : uint8
    name_offsets : int64, shape (n + 1,)
    n_kmers : int64, shape (n,)
    base_map : f5py.core.batch.BaseMap
    events : f5py.core.batch.Events
        Both with `offsets` of these reads.
    """
    base_offsets, first_event, last_event = base_map.offsets, base_map.first_event, base_map.last_event
    event_offsets, event_start, event_length = events.offsets, events.start, events.length
    at = 0
    for read in range(n_kmers.shape[0]):
        n = n_kmers[read]
        name = names[name_offsets[read] : name_offsets[read + 1]]
        event_first = event_offsets[read]
        for walked in range(n):
            index = n - 1 - walked if rna else walked
            kmer = base_offsets[read] + index
            row = at
            at = append_bytes(out, at, name)
            out[at] = TAB
            at = append_int(out, at + 1, index)
            out[at] = TAB
            at += 1
            if first_event[kmer] < 0:
                at = append_bytes(out, at, _NONE)
            else:
                start, end = kmer_interval(
                    event_first + first_event[kmer], event_first + last_event[kmer], event_start, event_length, rna
                )
                if start >= end:
                    return row, read, index
                at = append_int(out, at, start)
                out[at] = TAB
                at = append_int(out, at + 1, end)
            out[at] = NEWLINE
            at += 1
    return at, -1, -1
