"""Jitted copies between a batch and the GPU's pinned buffers; they release the GIL, so that threads share the work."""

from __future__ import annotations

from f5py.accelerate import kernel


@kernel
def pack_reads(first, end, reads, base_offsets, bases, p, bases_out, event_offsets, event_mean, q, event_mean_out):
    """Copy the bases and event means of ``reads[first:end]`` to their places, given by `p` and `q`."""
    for i in range(first, end):
        read = reads[i]
        bases_out[p[i] : p[i + 1]] = bases[base_offsets[read] : base_offsets[read + 1]]
        event_mean_out[q[i] : q[i + 1]] = event_mean[event_offsets[read] : event_offsets[read + 1]]


@kernel
def unpack_reads(first, end, reads, k, p, first_event, last_event, base_offsets, first_event_out, last_event_out):
    """Copy the base-to-event maps of ``reads[first:end]`` back; the k - 1 entries of a read without k-mer become -1."""
    for i in range(first, end):
        n_kmers = p[i + 1] - p[i] - k + 1
        target = base_offsets[reads[i]]
        first_event_out[target : target + n_kmers] = first_event[p[i] : p[i] + n_kmers]
        last_event_out[target : target + n_kmers] = last_event[p[i] : p[i] + n_kmers]
        first_event_out[target + n_kmers : target + n_kmers + k - 1] = -1
        last_event_out[target + n_kmers : target + n_kmers + k - 1] = -1
