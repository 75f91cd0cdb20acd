"""Jitted search for the site groups of a read; see `f5py.methylation.calls`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import closest_event, segment_of
from f5py.core.cigar import ALIGNED, OF_READ, OF_REFERENCE
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter

#: Bases of a window before the first site and after the first base of the last site.
FLANK = 10
_MAX_SPAN = 200
_MIN_EVENTS = 10  # exclusive


class Groups(NamedTuple):
    """Site groups of a read.

    `first` and `last` are the starts of the first and last site in the segment. `begin` and `end` are the first and
    last event of the window, in reference order.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    sites: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]


@inner
def is_site(segment, position, motif):
    """Return whether a recognition site starts at `position`.

    Parameters
    ----------
    segment : uint8
        Letters of the forward strand.
    position : int
        0-based, in the segment.
    motif : f5py.core.motifs.MotifCodes
    """
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


class AlignedBlocks(NamedTuple):
    """Non-empty runs of aligned bases that start usable k-mers, in reference order."""

    # begin, end: reference positions
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    read: NDArray[np.int64]  # the read's base at `begin`


class SiteScratch(NamedTuple):
    """Scratch space of a thread, reused for all of its reads."""

    bits: NDArray[np.uint8]  # of the letters of a segment, see `MotifCodes`
    fits: NDArray[np.uint8]  # 1 where a site starts
    sites: NDArray[np.int32]  # where sites start
    blocks: AlignedBlocks


@inner
def site_scratch(n_bases, n_operations):
    """Allocate scratch space for the numbers of bases and CIGAR operations."""
    blocks = np.empty((3, n_operations + 1), np.int64)
    return SiteScratch(
        np.empty(n_bases, np.uint8), np.empty(n_bases, np.uint8), np.empty(n_bases + 1, np.int32),
        AlignedBlocks(blocks[0], blocks[1], blocks[2]),
    )  # fmt: skip


@inner
def enlarged_scratch(scratch, n_bases, n_operations):
    """Return the scratch space, or a larger one if it is too small."""
    most_bases, most_operations = scratch.bits.shape[0], scratch.blocks.begin.shape[0] - 1
    if n_bases <= most_bases and n_operations <= most_operations:
        return scratch
    return site_scratch(max(n_bases, most_bases), max(n_operations, most_operations))


@inner
def find_sites(segment, motif, scratch):
    """List the start positions of recognition sites, like `is_site`; return their number.

    Each step is a loop without branches, which would often be mispredicted.

    Parameters
    ----------
    segment, motif
        See `is_site`.
    scratch : SiteScratch
        Its sites are filled.
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
    n_sites, sites = find_sites(segment, motif, scratch), scratch.sites
    groups = min(n_sites, 1)
    for i in range(1, n_sites):
        groups += sites[i] - sites[i - 1] > motif.separation
    return groups, n_sites


@inner
def _list_blocks(cigar, reference_start, read_length, k, blocks):
    """Fill `blocks`, of up to one per CIGAR operation; return their number."""
    reference, read = np.int64(reference_start), np.int64(0)
    count = 0
    for c in range(cigar.shape[0]):
        operation = cigar[c] & 15
        length = np.int64(cigar[c] >> 4)
        first, end = max(k - read, 0), min(read_length - k - read, length)
        blocks.begin[count], blocks.end[count], blocks.read[count] = reference + first, reference + end, read + first
        count += (ALIGNED >> operation & 1) & (first < end)
        reference += length * (OF_REFERENCE >> operation & 1)
        read += length * (OF_READ >> operation & 1)
    return count


@inner
def _block_until(blocks, count, block, position):
    """Return the first block, from `block` on, that ends after a position; `count` for none."""
    while block < count and blocks.end[block] <= position:
        block += 1
    return block


@inner
def _read_base(blocks, block, position):
    """Return the read's base at the block's first position not before `position`."""
    return blocks.read[block] + max(position - blocks.begin[block], 0)


@inner
def window_length(segment, first, last):
    """Return the number of bases of the window of a group with these first and last sites."""
    return min(last + FLANK + 1, segment.shape[0]) - (first - FLANK)


@inner
def find_groups(read, k, motif, groups, scratch):
    """List the callable site groups of one read; return their number.

    Parameters
    ----------
    read : f5py.core._read_view_numba.ReadView
    k : int
    motif : f5py.core.motifs.MotifCodes
    groups : Groups
        Large enough for all groups of sites.
    scratch : SiteScratch
        Large enough for the read.
    """
    segment, reference_start, cigar, reverse, first_event, read_length = read
    blocks = scratch.blocks
    n_blocks = _list_blocks(cigar, reference_start, read_length, k, blocks)
    if n_blocks == 0:
        return 0
    # index of a base's k-mer in the event map, which is in sequencing order
    turn, sign = (read_length - k, -1) if reverse else (0, 1)
    last_base = blocks.read[n_blocks - 1] + blocks.end[n_blocks - 1] - blocks.begin[n_blocks - 1] - 1
    if closest_event(first_event, turn + sign * blocks.read[0]) == closest_event(first_event, turn + sign * last_base):
        return 0

    n_sites, sites = find_sites(segment, motif, scratch), scratch.sites
    count = 0
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
        if begin < blocks.begin[0]:
            continue
        e1 = closest_event(first_event, turn + sign * _read_base(blocks, block_a, begin))
        e2 = closest_event(first_event, turn + sign * _read_base(blocks, block_b, end))
        if e1 < 0 or e2 < 0 or abs(e2 - e1) <= _MIN_EVENTS:
            continue
        groups.first[count] = first
        groups.last[count] = last
        groups.sites[count] = next_site - first_site
        groups.begin[count] = e1
        groups.end[count] = e2
        count += 1
    return count


@inner
def first_groups(groups, count):
    """Return the first `count` of `groups`."""
    return Groups(
        groups.first[:count], groups.last[:count], groups.sites[:count], groups.begin[:count], groups.end[:count]
    )


@inner
def groups_from(groups, first):
    """Return `groups` from number `first` on."""
    return Groups(
        groups.first[first:], groups.last[first:], groups.sites[first:], groups.begin[first:], groups.end[first:]
    )


@inner
def radix_sort_pass(key, shift, n_digits, order, result):
    """Fill `result` with `order`, sorted stably by a 32-bit digit of the key.

    The digits, below `n_digits`, are the bits of ``key[order]`` from `shift` on. Two passes replace `np.argsort`, which
    takes two seconds to compile.
    """
    starts = np.zeros(n_digits + 1, np.int64)
    for g in range(key.shape[0]):
        starts[(key[g] >> shift & 0xFFFFFFFF) + 1] += 1
    for d in range(n_digits):
        starts[d + 1] += starts[d]
    for i in range(order.shape[0]):
        d = key[order[i]] >> shift & 0xFFFFFFFF
        result[starts[d]] = order[i]
        starts[d] += 1


class GroupBatch(NamedTuple):
    """Site groups of several reads."""

    read: NDArray[np.int64]  # shape (n,): of the batch
    groups: Groups  # in the segments and among the events of their reads


@inner
def first_listed(listed, count):
    """Return the first `count` groups."""
    return GroupBatch(listed.read[:count], first_groups(listed.groups, count))


@inner
def order_groups(alignments, listed, order_key):
    """Order groups by the numbers of bases and events of their windows.

    `order_key` (int64) is filled with bases times 2 ** 32 plus events, group by group.
    """
    groups = listed.groups
    count = order_key.shape[0]
    max_events = np.int64(0)
    max_bases = np.int64(0)
    for g in range(count):
        n_events = abs(groups.end[g] - groups.begin[g]) + 1
        n_bases = window_length(segment_of(alignments, listed.read[g]), groups.first[g], groups.last[g])
        order_key[g] = (n_bases << 32) + n_events
        max_events = max(max_events, n_events)
        max_bases = max(max_bases, n_bases)
    orders = np.empty((3, count), np.int64)
    for g in range(count):
        orders[0, g] = g
    # literal shifts would compile the pass twice
    radix_sort_pass(order_key, np.int64(0), max_events + 1, orders[0], orders[1])
    radix_sort_pass(order_key, np.int64(32), max_bases + 1, orders[1], orders[2])
    return orders[2], max_bases, max_events


@kernel
def count_all(queue, reads, alignments, motifs, n_groups, n_sites):
    """Apply `count_groups` to `reads`.

    Parameters
    ----------
    alignments : f5py.core.batch.Alignments
    motifs : pair of MotifCodes
        Of forward and of reverse reads.
    n_groups, n_sites : int64, shape (n_reads,)
    """
    scratch = site_scratch(0, 0)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        segment = segment_of(alignments, read)
        scratch = enlarged_scratch(scratch, segment.shape[0], 0)
        n_groups[read], n_sites[read] = count_groups(segment, motifs[1 if alignments.reverse[read] else 0], scratch)
