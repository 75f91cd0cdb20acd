"""Calls of all modifications in the MM and ML tags of records, one row each.

The tags are those of `f5py.io.bam.modifications.modified_sites`, with the same checks. A base that an entry does not
list has no row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.cigar import ALIGNED, OF_RECORD, OF_REFERENCE
from f5py.io.bam._bam_numba import (
    FLAGS,
    IS_REVERSE,
    N_BASES,
    POSITION,
    cigar_of,
    find_tags,
    sequence_begins,
    signed32,
    unsigned16,
)
from f5py.io.bam.modifications._tags_numba import (
    ANY_BASE,
    BITS_OF_LETTER,
    COMMA,
    COMPLEMENT,
    MINUS,
    SEMICOLON,
    codes_end,
    count_calls,
    count_codes,
    find_letter,
    number_at,
    places_of_tags,
)
from f5py.io.bam.modifications.modified_sites import N_DAMAGED, N_LISTED, N_NOT_ALIGNED, N_RECORDS, N_WITHOUT, is_used
from f5py.jit.kernel import exact_inner, exact_kernel

_FIRST_ROOM = 1 << 12
_NINE = np.uint8(ord("9"))
_LETTER_COMPLEMENTS = np.arange(256, dtype=np.uint8)
_LETTER_COMPLEMENTS[list(b"ACGTU")] = list(b"TGCAA")


class ListedCalls(NamedTuple):
    """Calls in the order of the records; of a record by entry of MM, position and code. Shape (n,) each."""

    record: NDArray[np.int32]  # index among the records
    position: NDArray[np.int32]  # 0-based, on the reference
    reverse: NDArray[np.bool_]  # strand of the reference that has the modified base
    base: NDArray[np.uint8]  # letter of that base, as MM has it
    code: NDArray[np.int64]  # ChEBI number of the modification, or its letter as a negative character code
    value: NDArray[np.uint8]  # of ML


@exact_inner
def _list_bases(data, packed, n_bases, wanted, places):
    """List the places of a base, given as the bit that BAM has for it, in a sequence; return their number."""
    n = np.int64(0)
    for pair in range((n_bases + 1) // 2):  # without branches
        two = data[packed + pair]
        places[n] = 2 * pair
        n += two >> 4 == wanted
        places[n] = 2 * pair + 1
        n += two & 15 == wanted  # 0 after the last base
    return n


@exact_inner
def _call_places(text, at, end, places, n_places, n_calls, is_reverse, called):
    """Fill the places of an entry's calls, ascending; return whether the sequence has as many bases."""
    following = np.int64(0)  # base of the read as it was sequenced
    is_any = places.shape[0] == 0
    for call in range(n_calls):
        skipped, at = number_at(text, at + 1, end)
        following += skipped
        if following >= n_places:
            return False
        which = n_places - 1 - following if is_reverse else following
        called[n_calls - 1 - call if is_reverse else call] = which if is_any else places[which]
        following += 1
    return True


@exact_kernel
def list_calls(data, starts, n, columns, counts):
    """List the calls of `n` records at aligned bases; return their number.

    Parameters
    ----------
    columns : ListedCalls
        Filled; with room for every value of ML.
    counts : int64, shape (6,)
        Added to; for `f5py.io.bam.modifications.modified_sites.TagCounts`.
    """
    record, position, reverse, base, code, value = columns
    places, called = np.empty(_FIRST_ROOM, np.int64), np.empty(_FIRST_ROOM, np.int64)
    n_found = np.int64(0)
    for i in range(n):
        at, end = starts[i], starts[i + 1]
        if not is_used(data, at):
            continue
        counts[N_RECORDS] += 1
        n_bases = signed32(data, at + N_BASES)
        text_begin, text_end, values_begin, _, fits = places_of_tags(data, at, end, n_bases)
        if not fits:
            counts[N_DAMAGED] += 1
            continue
        counts[N_WITHOUT] += text_begin == text_end
        if n_bases + 2 > places.shape[0]:
            places, called = np.empty(2 * n_bases, np.int64), np.empty(2 * n_bases, np.int64)
        is_reverse = unsigned16(data, at + FLAGS) & IS_REVERSE != 0
        operations, n_operations = cigar_of(data, at, end)
        text = data[text_begin:text_end]
        before, n_not_aligned, entry = n_found, np.int64(0), np.int64(0)
        listed, n_listed = np.uint8(0), np.int64(0)  # the base whose places are known
        while entry < text.shape[0]:
            stop = find_letter(text, entry, text.shape[0], SEMICOLON, SEMICOLON)
            numbers, n_calls = find_letter(text, entry, stop, COMMA, COMMA), count_calls(text, entry, stop)
            counted = BITS_OF_LETTER[text[entry]]
            if is_reverse:
                counted = COMPLEMENT[counted]
            is_any = text[entry] == ANY_BASE
            if counted != 0 and counted != listed:
                listed, n_listed = counted, _list_bases(data, sequence_begins(data, at), n_bases, counted, places)
            n_places = n_bases if is_any else n_listed if counted != 0 else np.int64(0)
            if n_calls > n_bases or not _call_places(
                text, numbers, stop, places[:0] if is_any else places, n_places, n_calls, is_reverse, called
            ):
                break
            n_codes = count_codes(text, entry, stop)
            is_minus = text[entry + 1] == MINUS
            letter = _LETTER_COMPLEMENTS[text[entry]] if is_minus else text[entry]
            number, _ = number_at(text, entry + 2, codes_end(text, entry, stop))
            is_number = text[entry + 2] <= _NINE
            first, call, place = n_found, np.int64(0), np.int64(0)
            on_reference = signed32(data, at + POSITION)
            for j in range(n_operations):
                operation = np.uint32(signed32(data, operations + 4 * j))
                kind, length = operation & 15, np.int64(operation >> 4)
                if OF_RECORD >> kind & 1:
                    while call < n_calls and called[call] < place + length:
                        if not ALIGNED >> kind & 1:
                            n_not_aligned += n_codes
                        else:
                            values = values_begin + n_codes * (n_calls - 1 - call if is_reverse else call)
                            for which in range(n_codes):
                                position[n_found] = on_reference + called[call] - place
                                value[n_found] = data[values + which]
                                n_found += 1
                        call += 1
                    place += length
                if OF_REFERENCE >> kind & 1:
                    on_reference += length
            record[first:n_found] = i
            reverse[first:n_found] = is_reverse != is_minus
            base[first:n_found] = letter
            for which in range(n_codes):
                code[first + which : n_found : n_codes] = number if is_number else -np.int64(text[entry + 2 + which])
            values_begin += n_calls * n_codes
            entry = stop + 1
        if entry < text.shape[0]:  # an entry passes over more bases than there are
            n_found = before
            counts[N_DAMAGED] += 1
            continue
        counts[N_LISTED] += n_found - before + n_not_aligned
        counts[N_NOT_ALIGNED] += n_not_aligned
    return n_found


def listed_calls(data: NDArray[np.uint8], starts: NDArray[np.int64], n: int) -> tuple[ListedCalls, NDArray[np.int64]]:
    """List the calls of `n` records, as `AlignmentFile.chunks` has them. Also return counts for `TagCounts.add`."""
    begin, end, room = np.empty(n, np.int64), np.empty(n, np.int64), 0
    for tag in (b"ML", b"Ml"):
        find_tags(data, starts, np.arange(n), np.uint16(int.from_bytes(tag, "little")), begin, end)
        room += int((end - begin).sum())
    types = (np.int32, np.int32, np.bool_, np.uint8, np.int64, np.uint8)
    columns = ListedCalls._make(np.empty(room, kind) for kind in types)
    counts = np.zeros(6, np.int64)
    n_found = list_calls(data, starts, n, columns, counts)
    return ListedCalls._make(column[:n_found] for column in columns), counts
