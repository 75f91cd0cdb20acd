"""Kernels that list calls of sites from base modification tags; see `modified_sites`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.cigar import ALIGNED, DELETION, OF_RECORD, OF_REFERENCE
from f5py.io.bam._bam_numba import (
    CONTIG,
    FLAGS,
    IS_REVERSE,
    IS_SECONDARY,
    IS_UNMAPPED,
    N_BASES,
    N_CIGAR,
    POSITION,
    cigar_of,
    sequence_begins,
    signed32,
    unsigned16,
)
from f5py.io.bam.modifications._tags_numba import (
    BITS_OF_LETTER,
    COMPLEMENT,
    UNKNOWN,
    first_bases,
    new_bases,
    places_of_tags,
    read_tags,
)
from f5py.jit.kernel import exact_inner, exact_kernel

#: States of calls; the last three have no call: deleted base, other base, no entry.
CANONICAL, MODIFIED, OTHER, FAILED, DELETED, DIFFERENT, MISSING = range(7)
#: Indices of counts.
N_RECORDS, N_WITHOUT, N_DAMAGED, N_LISTED, N_NOT_ALIGNED, N_NOT_AT_SITE = range(6)
#: Bases as bits by BAM code; 0 for ambiguous ones.
_BITS_OF_CODE = np.array([0, 1, 2, 0, 4, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0], np.uint8)


class SiteFilter(NamedTuple):
    """Selection of calls."""

    names: tuple[NDArray[np.uint8], NDArray[np.uint8]]  # the modification's code and number, as texts
    least: float  # probability of a call
    letter: np.uint8  # bit of the modified base
    offsets: tuple[int, int]  # from a site's first base to the modified one, forward and reverse
    masks: tuple[NDArray[np.uint8], NDArray[np.uint8]]  # see `f5py.core.motifs.MotifCodes`; forward and reverse
    without_call: bool  # with a reference: also list sites without a call, on each record's strand


class ReferenceSegments(NamedTuple):
    """Reference letters around records; empty if the reads define the sites."""

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # shape (n_records + 1,)
    starts: NDArray[np.int64]  # shape (n_records,): 0-based positions of their first letters


@exact_inner
def _state_of(value, highest, total, least):
    """Return the most probable state of a call, `FAILED` below the least probability."""
    modified = (np.float64(value) + 0.5) / 256.0 if value >= 0 else 0.0
    other = (np.float64(highest) + 0.5) / 256.0 if highest >= 0 else 0.0
    canonical = max(1.0 - modified - np.float64(total), 0.0)
    state, best = CANONICAL, canonical
    if modified > best:
        state, best = MODIFIED, modified
    if other > best:
        state, best = OTHER, other
    return FAILED if best < least else state


@exact_inner
def _is_at_site(bases, first, masks):
    """Return whether the motif is at `first` in bases given as bits."""
    found = first >= 0 and first + masks.shape[0] <= bases.shape[0]
    i = 0
    while found and i < masks.shape[0]:
        found = bases[first + i] & masks[i] != 0
        i += 1
    return found


@exact_inner
def _decode(data, at, bases):
    packed = sequence_begins(data, at)
    for j in range(bases.shape[0]):
        pair = np.int64(data[packed + (j >> 1)])
        bases[j] = _BITS_OF_CODE[pair & 15 if j & 1 else pair >> 4]


@exact_inner
def is_used(data, at):
    """Return whether a record is aligned and not secondary."""
    flags = unsigned16(data, at + FLAGS)
    is_placed = signed32(data, at + CONTIG) >= 0 and signed32(data, at + POSITION) >= 0
    return flags & (IS_UNMAPPED | IS_SECONDARY) == 0 and is_placed and unsigned16(data, at + N_CIGAR) > 0


@exact_kernel
def used_records(data, starts, used):
    """Fill which records are used.

    Parameters
    ----------
    data : uint8
    starts : int64, shape (>= n,)
    used : bool, shape (n,)
        Filled.
    """
    for i in range(used.shape[0]):
        used[i] = is_used(data, starts[i])


@exact_inner
def _on_strand(wanted_sites, is_reverse):
    """Return the modified base's bit, its offset and the motif's masks on a strand."""
    if is_reverse:
        return COMPLEMENT[wanted_sites.letter], wanted_sites.offsets[1], wanted_sites.masks[1]
    return wanted_sites.letter, wanted_sites.offsets[0], wanted_sites.masks[0]


@exact_inner
def _list_of_strand(record, is_reverse, bases, wanted_sites, segment, n_found, columns, counts):
    """List the calls at sites of one reference strand; return the new total.

    `segment` has reference bases as bits, or none, and the position of the first.
    """
    contig, position, reverse, state, value, _ = columns
    bits, wanted, highest, total = bases
    canonical, offset, masks = _on_strand(wanted_sites, is_reverse)
    reference, reference_start = segment
    begin, n_operations = cigar_of(record, 0, record.shape[0])
    place = np.int64(0)
    on_reference = signed32(record, POSITION)
    for j in range(n_operations):
        operation = np.uint32(signed32(record, begin + 4 * j))
        kind, length = operation & 15, np.int64(operation >> 4)
        is_aligned = ALIGNED >> kind & 1 != 0
        if OF_RECORD >> kind & 1:
            for i in range(place, min(place + length, bits.shape[0])):
                if wanted[i] == UNKNOWN or bits[i] != canonical:
                    continue
                counts[N_LISTED] += wanted[i] >= 0
                if not is_aligned:
                    counts[N_NOT_ALIGNED] += wanted[i] >= 0
                    continue
                site = on_reference + i - place - offset
                if reference.shape[0]:
                    is_there = _is_at_site(reference, site - reference_start, masks)
                else:
                    is_there = _is_at_site(bits, i - offset, masks)
                if not is_there or site < 0:
                    counts[N_NOT_AT_SITE] += wanted[i] >= 0
                    continue
                contig[n_found] = signed32(record, CONTIG)
                position[n_found] = site
                reverse[n_found] = is_reverse
                state[n_found] = _state_of(wanted[i], highest[i], total[i], wanted_sites.least)
                value[n_found] = wanted[i]
                n_found += 1
            place += length
        if OF_REFERENCE >> kind & 1:
            on_reference += length
    return n_found


@exact_inner
def _list_without_call(record, is_reverse, bases, wanted_sites, segment, n_found, columns):
    """List reference sites without a call on the read's strand; see `_list_of_strand`."""
    contig, position, reverse, state, value, _ = columns
    bits, wanted = bases.bits, bases.wanted
    canonical, offset, masks = _on_strand(wanted_sites, is_reverse)
    reference, reference_start = segment
    begin, n_operations = cigar_of(record, 0, record.shape[0])
    place = np.int64(0)
    on_reference = signed32(record, POSITION)
    for j in range(n_operations):
        operation = np.uint32(signed32(record, begin + 4 * j))
        kind, length = operation & 15, np.int64(operation >> 4)
        is_aligned = ALIGNED >> kind & 1 != 0
        if is_aligned or kind == DELETION:
            for i in range(length):
                what = DELETED
                if is_aligned:
                    if place + i >= bits.shape[0]:  # a record without its sequence
                        continue
                    is_canonical = bits[place + i] == canonical
                    if is_canonical and wanted[place + i] != UNKNOWN:
                        continue
                    what = MISSING if is_canonical else DIFFERENT
                site = on_reference + i - offset
                if site < 0 or not _is_at_site(reference, site - reference_start, masks):
                    continue
                contig[n_found] = signed32(record, CONTIG)
                position[n_found] = site
                reverse[n_found] = is_reverse
                state[n_found] = what
                value[n_found] = UNKNOWN
                n_found += 1
        if OF_RECORD >> kind & 1:
            place += length
        if OF_REFERENCE >> kind & 1:
            on_reference += length
    return n_found


@exact_kernel
def list_sites(data, starts, n, wanted, segments, columns, counts):
    """List the calls of `n` records at the sites of a motif; return their number.

    Parameters
    ----------
    data, starts, n
        Records, from `f5py.io.bam._bam_numba.list_records`.
    wanted : SiteFilter
    segments : ReferenceSegments
    columns : ModifiedSites
        Filled; large enough for every base and, for sites without a call, every reference base.
    counts : int64, shape (6,)
        Added to.
    """
    room = np.int64(1) << 12
    all_bases = new_bases(room)
    n_found = np.int64(0)
    for i in range(n):
        at, end = starts[i], starts[i + 1]
        if not is_used(data, at):
            continue
        counts[N_RECORDS] += 1
        n_bases = signed32(data, at + N_BASES)
        text_begin, text_end, ml_begin, ml_end, fits = places_of_tags(data, at, end, n_bases)
        if not fits:
            counts[N_DAMAGED] += 1
            continue
        if n_bases > room:
            room = 2 * n_bases
            all_bases = new_bases(room)
        bases = first_bases(all_bases, n_bases)
        _decode(data, at, bases.bits)
        is_reverse = unsigned16(data, at + FLAGS) & IS_REVERSE != 0
        reference, reference_start = bases.bits[:0], np.int64(0)
        if segments.offsets.shape[0]:
            reference = BITS_OF_LETTER[segments.letters[segments.offsets[i] : segments.offsets[i + 1]]]
            reference_start = segments.starts[i]
        before, of_record = n_found, np.int64(0)
        n_listed, n_not_aligned, n_not_at_site = counts[N_LISTED], counts[N_NOT_ALIGNED], counts[N_NOT_AT_SITE]
        is_sound = True
        for is_minus in (False, True):
            bases.wanted[:], bases.highest[:], bases.total[:] = UNKNOWN, -1, 0.0
            n_entries = read_tags(
                data[text_begin:text_end], data[ml_begin:ml_end], wanted.names, is_minus,
                COMPLEMENT[wanted.letter] if is_minus else wanted.letter, is_reverse, bases,
            )  # fmt: skip
            is_sound = is_sound and n_entries >= 0
            if not is_sound:
                break
            if wanted.without_call and not is_minus:
                n_found = _list_without_call(
                    data[at:end], is_reverse, bases, wanted, (reference, reference_start), n_found, columns
                )
            if n_entries == 0:
                continue
            of_record += n_entries
            n_found = _list_of_strand(
                data[at:end], is_reverse != is_minus, bases, wanted, (reference, reference_start), n_found, columns,
                counts,
            )  # fmt: skip
        if not is_sound:
            n_found = before
            counts[N_LISTED], counts[N_NOT_ALIGNED], counts[N_NOT_AT_SITE] = n_listed, n_not_aligned, n_not_at_site
            counts[N_DAMAGED] += 1
            continue
        counts[N_WITHOUT] += of_record == 0
        columns[5][before:n_found] = i
    return n_found
