"""Kernels that copy between a batch and the GPU's pinned buffers."""

from f5py.jit.c_memory import address_of_data
from f5py.jit.kernel import inner, kernel
from f5py.jit.streaming_stores import BLOCK, end_stream, stream_block
from f5py.jit.work_queue import claimed_indices, work_counter


@inner
def _copy(values, to):
    """Copy an array; a slice assignment takes ten times as long to compile."""
    for i in range(values.shape[0]):
        to[i] = values[i]


@inner
def _stream(values, to):
    """Copy with non-temporal stores, for data that only the device reads."""
    n = values.shape[0]
    first = min(n, -address_of_data(to) & (BLOCK - 1))
    end = n - (n - first) % BLOCK
    _copy(values[:first], to[:first])
    for i in range(first, end, BLOCK):
        stream_block(to, i, values, i)
    _copy(values[end:], to[end:])
    end_stream()


@kernel
def gather(queue, reads, offsets, values, gathered_offsets, gathered):
    """Concatenate the bytes of `reads`.

    ``values[offsets[read]:offsets[read + 1]]`` goes to ``gathered[gathered_offsets[i]:]`` for read ``reads[i]``.

    Parameters
    ----------
    offsets : int64, shape (n_reads + 1,)
        Of all reads of the batch, in bytes.
    values : uint8, shape (offsets[-1],)
    gathered_offsets : int64, shape (len(reads) + 1,)
    gathered : uint8, shape (>= gathered_offsets[-1],)
        Filled.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        first = offsets[reads[i]]
        n = offsets[reads[i] + 1] - first
        to = gathered_offsets[i]
        _stream(values[first : first + n], gathered[to : to + n])


@kernel
def scatter(queue, reads, gathered_offsets, gathered, offsets, values):
    """Undo `gather`.

    Parameters
    ----------
    values : uint8, shape (offsets[-1],)
        Filled for `reads`.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        first = offsets[reads[i]]
        n = offsets[reads[i] + 1] - first
        from_ = gathered_offsets[i]
        _copy(gathered[from_ : from_ + n], values[first : first + n])


@kernel
def scatter_maps(queue, reads, k, p, gathered, base_map):
    """Copy the base-to-event maps of `reads` back; -1 for the last k - 1 bases of each read.

    Parameters
    ----------
    p : int64, shape (len(reads) + 1,)
        Offsets of the reads' bases in `gathered`.
    gathered : f5py.core.batch.BaseMap
        Of `reads`, concatenated.
    base_map : f5py.core.batch.BaseMap
        Of the batch; filled for `reads`.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        n_kmers = p[i + 1] - p[i] - k + 1
        first = base_map.offsets[reads[i]]
        _copy(gathered.first_event[p[i] : p[i] + n_kmers], base_map.first_event[first : first + n_kmers])
        _copy(gathered.last_event[p[i] : p[i] + n_kmers], base_map.last_event[first : first + n_kmers])
        base_map.first_event[first + n_kmers : first + n_kmers + k - 1] = -1
        base_map.last_event[first + n_kmers : first + n_kmers + k - 1] = -1
