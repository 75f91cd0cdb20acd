"""Jitted copies between a batch and the GPU's pinned buffers; they release the GIL, so that threads share the work."""

from __future__ import annotations

from f5py.accelerate import kernel
from f5py.core._turns_numba import next_turn


@kernel
def gather(turn, reads, offsets, values, gathered_offsets, gathered):
    """Copy the elements of each of `reads` to where they stand one read after another.

    ``values[offsets[read]:offsets[read + 1]]`` goes to ``gathered[gathered_offsets[i]:]`` for read ``reads[i]``.
    """
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        of_read = values[offsets[reads[i]] : offsets[reads[i] + 1]]
        copy = gathered[gathered_offsets[i] : gathered_offsets[i] + of_read.shape[0]]
        for j in range(of_read.shape[0]):  # an assignment of arrays takes ten times as long to compile
            copy[j] = of_read[j]


@kernel
def scatter(turn, reads, gathered_offsets, gathered, offsets, values):
    """The way back of `gather`."""
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        of_read = values[offsets[reads[i]] : offsets[reads[i] + 1]]
        copy = gathered[gathered_offsets[i] : gathered_offsets[i] + of_read.shape[0]]
        for j in range(of_read.shape[0]):
            of_read[j] = copy[j]


@kernel
def scatter_maps(turn, reads, k, p, gathered, base_map):
    """Copy the base-to-event maps of `reads` back; the k - 1 entries of a read without k-mer become -1."""
    while True:
        i = next_turn(turn)
        if i >= reads.shape[0]:
            break
        n_kmers = p[i + 1] - p[i] - k + 1
        first = base_map.offsets[reads[i]]
        for j in range(n_kmers):
            base_map.first_event[first + j] = gathered.first_event[p[i] + j]
            base_map.last_event[first + j] = gathered.last_event[p[i] + j]
        base_map.first_event[first + n_kmers : first + n_kmers + k - 1] = -1
        base_map.last_event[first + n_kmers : first + n_kmers + k - 1] = -1
