"""Merging of base modification tags, of several motifs and with those already in the records.

Calls of one modification, such as those of CpG and GpC, which are both of C+m, become one entry: a base called for
both motifs has the call of the first. Of a record's tags, entries of the run's modifications are removed, also from
entries with several codes, and all others stay unchanged.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import gather_slices
from f5py.io.bam._bam_numba import N_BASES, signed32
from f5py.io.bam.bam_records import RawRecords
from f5py.io.bam.modifications._tags_numba import (
    COMMA,
    SEMICOLON,
    codes_end,
    count_calls,
    count_codes,
    find_entry,
    find_letter,
    number_at,
    places_of_tags,
    same_modification,
)
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.text._format_numba import append_bytes, append_int


@exact_inner
def _merge_calls(a, at_a, end_a, ml_a, b, at_b, end_b, ml_b, n_codes, out, at, ml_out):
    """Merge the calls of two entries of one modification by base, the first entry's before equal ones.

    Each call has `n_codes` values in ML. Returns the end of the text, and the number of calls.
    """
    at_a, at_b = find_letter(a, at_a, end_a, COMMA, COMMA), find_letter(b, at_b, end_b, COMMA, COMMA)
    base_a = base_b = np.int64(-1)  # number of the call's base among those of its kind
    i = j = count = np.int64(0)
    last = np.int64(-1)
    has_a = has_b = False
    while True:
        if not has_a and at_a < end_a:
            skipped, at_a = number_at(a, at_a + 1, end_a)
            base_a += skipped + 1
            has_a = True
        if not has_b and at_b < end_b:
            skipped, at_b = number_at(b, at_b + 1, end_b)
            base_b += skipped + 1
            has_b = True
        if not has_a and not has_b:
            return at, count
        take_a = has_a and (not has_b or base_a <= base_b)
        base = base_a if take_a else base_b
        for code in range(n_codes):
            ml_out[count * n_codes + code] = ml_a[i * n_codes + code] if take_a else ml_b[j * n_codes + code]
        out[at] = COMMA
        at = append_int(out, at + 1, base - last - 1)
        last = base
        count += 1
        if has_b and base_b == base:
            has_b = False
            j += 1
        if take_a:
            has_a = False
            i += 1


@exact_inner
def _merge_entries(a, ml_a, b, ml_b, out, ml_out):
    """Join two lists of entries parsed by `n_values`; equal modifications share an entry. Returns both sizes."""
    at = ml_at = np.int64(0)
    begin = ml_begin = np.int64(0)
    while begin < a.shape[0]:
        end = find_letter(a, begin, a.shape[0], SEMICOLON, SEMICOLON)
        n_codes = count_codes(a, begin, end)
        n = count_calls(a, begin, end) * n_codes
        other, ml_other = np.int64(0), np.int64(0)
        while other < b.shape[0]:
            other_end = find_letter(b, other, b.shape[0], SEMICOLON, SEMICOLON)
            if same_modification(a, begin, end, b, other, other_end):
                break
            ml_other += count_calls(b, other, other_end) * count_codes(b, other, other_end)
            other = other_end + 1
        if other < b.shape[0]:
            at = append_bytes(out, at, a[begin : find_letter(a, begin, end, COMMA, COMMA)])
            at, count = _merge_calls(
                a, begin, end, ml_a[ml_begin:], b, other, other_end, ml_b[ml_other:], n_codes, out, at, ml_out[ml_at:]
            )
            ml_at += count * n_codes
        else:
            at = append_bytes(out, at, a[begin:end])
            ml_at = append_bytes(ml_out, ml_at, ml_a[ml_begin : ml_begin + n])
        out[at] = SEMICOLON
        at += 1
        ml_begin += n
        begin = end + 1
    begin = ml_begin = np.int64(0)
    while begin < b.shape[0]:
        end = find_letter(b, begin, b.shape[0], SEMICOLON, SEMICOLON)
        n = count_calls(b, begin, end) * count_codes(b, begin, end)
        if find_entry(a, np.int64(0), a.shape[0], b, begin, end) < 0:
            at = append_bytes(out, at, b[begin:end])
            out[at] = SEMICOLON
            at += 1
            ml_at = append_bytes(ml_out, ml_at, ml_b[ml_begin : ml_begin + n])
        ml_begin += n
        begin = end + 1
    return at, ml_at


@exact_inner
def _is_ours(ours, base, strand, code_begin, code_end, theirs):
    """Return whether `ours` has an entry with that base, strand and code."""
    at = np.int64(0)
    while at < ours.shape[0]:
        end = find_letter(ours, at, ours.shape[0], SEMICOLON, SEMICOLON)
        stop = codes_end(ours, at, end)
        if ours[at] == base and ours[at + 1] == strand and stop - at - 2 == code_end - code_begin:
            same = True
            for i in range(code_end - code_begin):
                same = same and ours[at + 2 + i] == theirs[code_begin + i]
            if same:
                return True
        at = end + 1
    return False


@exact_inner
def _append_others(ours, theirs, ml_theirs, out, at, ml_out, ml_at):
    """Append the entries, parsed by `n_values`, of modifications not in `ours`; return both sizes."""
    begin = ml_begin = np.int64(0)
    end_of_all = theirs.shape[0]
    while begin < end_of_all:
        end = find_letter(theirs, begin, end_of_all, SEMICOLON, SEMICOLON)
        stop = codes_end(theirs, begin, end)
        n_codes = count_codes(theirs, begin, end)
        n = count_calls(theirs, begin, end)
        width = (stop - begin - 2) // n_codes  # 1, or the digits of a number
        kept = np.zeros(n_codes, np.bool_)
        head = at
        at = append_bytes(out, at, theirs[begin : begin + 2])
        for code in range(n_codes):
            first = begin + 2 + code * width
            kept[code] = not _is_ours(ours, theirs[begin], theirs[begin + 1], first, first + width, theirs)
            if kept[code]:
                at = append_bytes(out, at, theirs[first : first + width])
        if kept.any():
            at = append_bytes(out, at, theirs[stop:end])
            out[at] = SEMICOLON
            at += 1
            for i in range(n * n_codes):
                if kept[i % n_codes]:
                    ml_out[ml_at] = ml_theirs[ml_begin + i]
                    ml_at += 1
        else:
            at = head
        ml_begin += n * n_codes
        begin = end + 1
    return at, ml_at


@exact_kernel
def merge_tags(a, b, adds_others, text, text_offsets, probability, probability_offsets):
    """Join two tags of the same reads.

    Parameters
    ----------
    a, b : ModificationTags
    adds_others : bool
        Leave out the modifications of b that a has, instead of merging their calls.
    """
    at = ml_at = np.int64(0)
    for read in range(a.length.shape[0]):
        ours, ml_ours = _of_read(a, read)
        theirs, ml_theirs = _of_read(b, read)
        if adds_others:
            size, ml_size = append_bytes(text[at:], 0, ours), append_bytes(probability[ml_at:], 0, ml_ours)
            size, ml_size = _append_others(ours, theirs, ml_theirs, text[at:], size, probability[ml_at:], ml_size)
        else:
            size, ml_size = _merge_entries(ours, ml_ours, theirs, ml_theirs, text[at:], probability[ml_at:])
        at += size
        ml_at += ml_size
        text_offsets[read + 1] = at
        probability_offsets[read + 1] = ml_at


@exact_inner
def _of_read(tags, read):
    return (
        tags.text[tags.text_offsets[read] : tags.text_offsets[read + 1]],
        tags.probability[tags.probability_offsets[read] : tags.probability_offsets[read + 1]],
    )


@exact_kernel
def find_tags(data, starts, chosen, places, length):
    """Find the base modification tags of the chosen records.

    Parameters
    ----------
    places : int64, shape (4, n)
        Filled with begin and end of MM's text and of ML's values; -1 is the begin of damaged tags.
    length : int64, shape (n,)
        Filled with the numbers of bases.
    """
    for i in range(chosen.shape[0]):
        start = starts[chosen[i]]
        length[i] = signed32(data, start + N_BASES)
        begin, end, ml_begin, ml_end, fits = places_of_tags(data, start, starts[chosen[i] + 1], length[i])
        places[0, i], places[1, i] = begin if fits else -1, end
        places[2, i], places[3, i] = ml_begin, ml_end


class ModificationTags(NamedTuple):
    """Base modification tags of the reads of a batch."""

    text: NDArray[np.uint8]  # offsets `text_offsets`: value of MM; empty for a read without a called base
    text_offsets: NDArray[np.int64]
    # probability: offsets `probability_offsets`: value of ML: N stands for a probability from N/256 up to (N+1)/256
    probability: NDArray[np.uint8]
    probability_offsets: NDArray[np.int64]
    length: NDArray[np.int64]  # shape (n,): value of MN: length of the sequence that the tags refer to


def no_tags() -> ModificationTags:
    """Make the tags of an empty batch."""
    nothing = np.zeros(1, np.int64)
    return ModificationTags(np.empty(0, np.uint8), nothing, np.empty(0, np.uint8), nothing, np.empty(0, np.int64))


def tags_of_motifs(first: ModificationTags, second: ModificationTags, adds_others: bool = False) -> ModificationTags:
    """Join the tags of two motifs; the first one's calls precede where both have one.

    With `adds_others`, only other modifications than those of the first are added to a read.
    """
    text = np.empty(len(first.text) + len(second.text), np.uint8)
    probability = np.empty(len(first.probability) + len(second.probability), np.uint8)
    text_offsets, probability_offsets = np.zeros_like(first.text_offsets), np.zeros_like(first.probability_offsets)
    merge_tags(first, second, adds_others, text, text_offsets, probability, probability_offsets)
    text, probability = text[: text_offsets[-1]], probability[: probability_offsets[-1]]
    return ModificationTags(text, text_offsets, probability, probability_offsets, first.length)


def tags_with_those_of_records(tags: ModificationTags, records: RawRecords) -> ModificationTags:
    """Add the records' tags of other modifications; reads with damaged records get no tags."""
    mine = np.flatnonzero(records.read >= 0)
    mine = mine[np.diff(tags.probability_offsets)[records.read[mine]] > 0]
    of_records, is_damaged = tags_of_records(records.data, records.starts, mine)
    kept, place = np.arange(len(tags.length)), np.full(len(tags.length), -1)
    kept[records.read[mine[is_damaged]]] = -1
    place[records.read[mine]] = np.arange(len(mine))
    return tags_of_motifs(chosen_tags(tags, kept), chosen_tags(of_records, place), adds_others=True)


def tags_of_records(
    data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64]
) -> tuple[ModificationTags, NDArray[np.bool_]]:
    """Parse the chosen records' tags; return a mask of damaged ones, which are empty."""
    places, length = np.empty((4, len(chosen)), np.int64), np.empty(len(chosen), np.int64)
    find_tags(data, starts, chosen, places, length)
    begin, end, ml_begin, ml_end = places
    is_damaged = begin < 0
    begin = np.where(is_damaged, end, begin)
    tags = *gather_slices(data, begin, end - begin), *gather_slices(data, ml_begin, ml_end - ml_begin)
    return ModificationTags(*tags, length), is_damaged


def chosen_tags(tags: ModificationTags, chosen: NDArray[np.int64]) -> ModificationTags:
    """Select the tags of some reads; -1 for a read without."""
    columns: list[NDArray] = []
    for values, offsets in ((tags.text, tags.text_offsets), (tags.probability, tags.probability_offsets)):
        sizes = np.append(np.diff(offsets), 0)  # the last one is of -1
        columns += gather_slices(values, offsets[chosen], sizes[chosen])
    return ModificationTags(columns[0], columns[1], columns[2], columns[3], np.append(tags.length, 0)[chosen])
