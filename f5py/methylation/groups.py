"""Search for the site groups of reads; see `f5py.methylation.calls`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import closest_event, read_view, segment_of
from f5py.core.cigar import ALIGNED, OF_READ, OF_REFERENCE
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter

#: Bases of a window before the first site and after the first base of the last site.
FLANK = 10
_MAX_SPAN = 200
_MIN_EVENTS = 10  # exclusive


class GroupWindows(NamedTuple):
    """Windows of groups, with the indices of a batch's calls; shape (n,) each."""

    window: NDArray[np.int32]  # start in the reference segment
    n_bases: NDArray[np.int32]
    begin: NDArray[np.int32]  # first and last event, in reference order
    end: NDArray[np.int32]


@inner
def is_site(segment, position, motif):
    """Return whether a site of `MotifCodes` starts at a position of a forward segment."""
    masks = motif.masks
    same = position + masks.shape[0] <= segment.shape[0]
    i = 0
    while same and i < masks.shape[0]:
        same = motif.letter_bits[segment[position + i]] & masks[i] != 0
        i += 1
    return same


@inner
def sites_per_kmer(modified, k):
    """Return the largest number of modified bases within `k` bases."""
    greatest = 0
    first = 0
    for i in range(modified.shape[0]):
        while modified[i] - modified[first] >= k:
            first += 1
        greatest = max(greatest, i - first + 1)
    return greatest


class SiteScratch(NamedTuple):
    """Scratch space of a thread, reused for all of its reads.

    Threads that allocate for every read wait for each other.
    """

    bits: NDArray[np.uint8]  # of the letters of a segment, see `MotifCodes`
    fits: NDArray[np.uint8]  # 1 where a site starts
    sites: NDArray[np.int32]  # where sites start
    blocks: NDArray[np.int64]  # shape (3, n): see `_list_blocks`


@inner
def site_scratch(n_bases, n_operations):
    """Allocate scratch space for the numbers of bases and CIGAR operations."""
    return SiteScratch(
        np.empty(n_bases, np.uint8), np.empty(n_bases, np.uint8), np.empty(n_bases + 1, np.int32),
        np.empty((3, n_operations + 1), np.int64),
    )  # fmt: skip


@inner
def _enlarged_scratch(scratch, n_bases, n_operations):
    """Return the scratch space, or a larger one if it is too small."""
    most_bases, most_operations = scratch.bits.shape[0], scratch.blocks.shape[1] - 1
    if n_bases <= most_bases and n_operations <= most_operations:
        return scratch
    return site_scratch(max(n_bases, most_bases), max(n_operations, most_operations))


@inner
def _find_sites(segment, motif, scratch):
    """List the starts of recognition sites in the scratch space; return their number.

    Each step is a loop without branches, which would often be mispredicted.
    """
    masks = motif.masks
    bits, fits, sites, _ = scratch
    n = segment.shape[0] - masks.shape[0] + 1
    for i in range(segment.shape[0]):
        bits[i] = motif.letter_bits[segment[i]]
    for i in range(n):
        fits[i] = 1
    for m in range(masks.shape[0]):
        mask, later = masks[m], bits[m:]
        for i in range(n):
            fits[i] = fits[i] if later[i] & mask else np.uint8(0)
    count = 0
    for i in range(n):
        sites[count] = i
        count += fits[i]
    return count


@inner
def count_groups(segment, motif, scratch):
    """Count all site groups, callable or not, and all sites of a reference segment."""
    n_sites, sites = _find_sites(segment, motif, scratch), scratch.sites
    groups = min(n_sites, 1)
    for i in range(1, n_sites):
        groups += sites[i] - sites[i - 1] > motif.separation
    return groups, n_sites


@inner
def _list_blocks(cigar, reference_start, read_length, k, blocks):
    """List the runs of aligned bases that start usable k-mers; return their number.

    A column of `blocks` has begin and end on the reference, and the read's base at the begin.
    """
    reference, read = np.int64(reference_start), np.int64(0)
    count = 0
    for c in range(cigar.shape[0]):
        operation = cigar[c] & 15
        length = np.int64(cigar[c] >> 4)
        first, end = max(k - read, 0), min(read_length - k - read, length)
        blocks[0, count], blocks[1, count], blocks[2, count] = reference + first, reference + end, read + first
        count += (ALIGNED >> operation & 1) & (first < end)
        reference += length * (OF_REFERENCE >> operation & 1)
        read += length * (OF_READ >> operation & 1)
    return count


@inner
def _block_until(blocks, count, block, position):
    """Return the first block, from `block` on, that ends after a position; `count` for none."""
    while block < count and blocks[1, block] <= position:
        block += 1
    return block


@inner
def _read_base(blocks, block, position):
    """Return the read's base at the block's first position not before `position`."""
    return blocks[2, block] + max(position - blocks[0, block], 0)


@inner
def _list_groups(read, k, motif, slot, calls, windows, scratch):
    """List the callable site groups of one read, from a slot of the calls on; return their number."""
    segment, reference_start, cigar, reverse, first_event, read_length = read
    blocks = scratch.blocks
    n_blocks = _list_blocks(cigar, reference_start, read_length, k, blocks)
    if n_blocks == 0:
        return 0
    # index of a base's k-mer in the event map, which is in sequencing order
    turn, sign = (read_length - k, -1) if reverse else (0, 1)
    last_base = blocks[2, n_blocks - 1] + blocks[1, n_blocks - 1] - blocks[0, n_blocks - 1] - 1
    if closest_event(first_event, turn + sign * blocks[2, 0]) == closest_event(first_event, turn + sign * last_base):
        return 0

    n_sites, sites = _find_sites(segment, motif, scratch), scratch.sites
    # outside the loop, as each use changes an array's reference count, shared by all threads
    _, _, first_sites, last_sites, site_counts, _, _ = calls
    starts, n_bases, begins, ends = windows
    at = slot
    block_a = block_b = 0
    next_site = 0
    while next_site < n_sites:
        first_site = next_site
        next_site += 1
        while next_site < n_sites and sites[next_site] - sites[next_site - 1] <= motif.separation:
            next_site += 1
        first, last = np.int64(sites[first_site]), np.int64(sites[next_site - 1])
        if first - FLANK <= motif.separation or last - first > _MAX_SPAN:
            continue
        begin, end = reference_start + first - FLANK, reference_start + last + FLANK
        block_a = _block_until(blocks, n_blocks, block_a, begin)
        block_b = _block_until(blocks, n_blocks, block_b, end)
        if block_b == n_blocks:
            break
        if begin < blocks[0, 0]:
            continue
        e1 = closest_event(first_event, turn + sign * _read_base(blocks, block_a, begin))
        e2 = closest_event(first_event, turn + sign * _read_base(blocks, block_b, end))
        if e1 < 0 or e2 < 0 or abs(e2 - e1) <= _MIN_EVENTS:
            continue
        first_sites[at], last_sites[at] = reference_start + first, reference_start + last
        site_counts[at] = next_site - first_site
        starts[at], n_bases[at] = first - FLANK, min(last + FLANK + 1, segment.shape[0]) - (first - FLANK)
        begins[at], ends[at] = e1, e2
        at += 1
    return at - slot


@kernel
def count_all(queue, reads, alignments, motifs, n_groups, n_sites):
    """Count groups and sites of `reads`; see `count_groups`.

    Parameters
    ----------
    n_groups, n_sites : int64, shape (n_reads,)
    """
    scratch = site_scratch(0, 0)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        segment = segment_of(alignments, read)
        scratch = _enlarged_scratch(scratch, segment.shape[0], 0)
        n_groups[read], n_sites[read] = count_groups(segment, motifs[1 if alignments.reverse[read] else 0], scratch)


@kernel
def list_all(queue, reads, batch, k, motifs, calls, windows):
    """List the callable site groups of `reads`.

    Parameters
    ----------
    calls, windows : f5py.core.batch.Calls, GroupWindows
        Filled except for the log-likelihoods.
    """
    scratch = site_scratch(0, 0)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        view = read_view(batch, read, k)
        scratch = _enlarged_scratch(scratch, view.segment.shape[0], view.cigar.shape[0])
        motif = motifs[1 if view.reverse else 0]
        calls.n[read] = _list_groups(view, k, motif, calls.offsets[read], calls, windows, scratch)
