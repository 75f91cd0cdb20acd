"""Kernels for base modification tags (SAM optional fields specification, section 1.7).

MM is a list of entries ``C+m?,2,0,5;``: base, strand, codes, meaning of unlisted bases, and the bases of that kind to
skip before each call. ML has a byte per call and code.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.cigar import HARD_CLIP
from f5py.io.bam._bam_numba import cigar_of, find_tag, integer_of, tags_begin
from f5py.jit.kernel import exact_inner

COMMA, SEMICOLON, QUESTION, DOT, PLUS, MINUS = (np.uint8(ord(one)) for one in ",;?.+-")
_ZERO, _NINE, _TEXT, _ARRAY, _BYTE = (np.uint8(ord(one)) for one in "09ZBC")
_HARD_CLIP = np.uint8(HARD_CLIP)
#: Limit of sequence lengths and skipped bases.
_MAX_BASES = np.int64(1) << 31
_MM, _OLD_MM, _ML, _OLD_ML, _MN = (np.uint16(name[0] + 256 * name[1]) for name in (b"MM", b"Mm", b"ML", b"Ml", b"MN"))


@exact_inner
def find_letter(text, at, end, one, other):
    """Return the first index from `at` on with one of two letters, or `end`."""
    while at < end and text[at] != one and text[at] != other:
        at += 1
    return at


@exact_inner
def codes_end(text, at, end):
    """Return the end of the codes of the entry at `at`."""
    stop = find_letter(text, at, end, COMMA, SEMICOLON)
    while stop > at and text[stop - 1] in (QUESTION, DOT):
        stop -= 1
    return stop


@exact_inner
def count_calls(text, at, end):
    count = 0
    for i in range(at, end):
        count += text[i] == COMMA
    return count


@exact_inner
def count_codes(text, at, end):
    """Return the number of codes of the entry at `at`: letters, or one number."""
    first, stop = at + 2, codes_end(text, at, end)
    if first < stop and _ZERO <= text[first] <= _NINE:
        return np.int64(1)
    return np.int64(stop - first)


@exact_inner
def _is_letter(one):
    return 97 <= (one | 32) <= 122


@exact_inner
def n_values(text):
    """Return the number of ML values for this MM, or -1 if it is invalid.

    Every entry must have a base, a strand, codes, and numbers that fit into a sequence. No two may be of the same
    modification. Later passes rely on this.
    """
    total = begin = np.int64(0)
    while begin < text.shape[0]:
        end = find_letter(text, begin, text.shape[0], SEMICOLON, SEMICOLON)
        stop = codes_end(text, begin, end)
        if stop < begin + 3 or not _is_letter(text[begin]) or text[begin + 1] not in (PLUS, MINUS):
            return np.int64(-1)
        is_number = _ZERO <= text[begin + 2] <= _NINE
        for i in range(begin + 2, stop):
            if (is_number and not _ZERO <= text[i] <= _NINE) or (not is_number and not _is_letter(text[i])):
                return np.int64(-1)
        if find_entry(text, np.int64(0), begin, text, begin, end) >= 0:
            return np.int64(-1)
        at = find_letter(text, begin, end, COMMA, COMMA)
        if at > stop + 1:  # more than one letter after the codes
            return np.int64(-1)
        bases = n_calls = np.int64(0)
        while at < end:
            first = at + 1
            skipped, at = number_at(text, first, min(end, first + 10))
            bases += skipped + 1
            n_calls += 1
            if at == first or bases > _MAX_BASES or (at < end and text[at] != COMMA):
                return np.int64(-1)
        total += n_calls * count_codes(text, begin, end)
        begin = end + 1
    return total


@exact_inner
def number_at(text, at, end):
    """Parse the number at `at`; also return the index after it."""
    value = np.int64(0)
    while at < end and _ZERO <= text[at] <= _NINE:
        value = value * 10 + np.int64(text[at] - _ZERO)
        at += 1
    return value, at


@exact_inner
def same_modification(a, at_a, end_a, b, at_b, end_b):
    """Return whether two entries have the same base, strand and codes."""
    stop_a, stop_b = codes_end(a, at_a, end_a), codes_end(b, at_b, end_b)
    if stop_a - at_a != stop_b - at_b:
        return False
    same = True
    for i in range(stop_a - at_a):
        same = same and a[at_a + i] == b[at_b + i]
    return same


@exact_inner
def find_entry(text, begin, end, other, at, stop):
    """Return the entry of ``text[begin:end]`` with the modification of another entry, or -1."""
    while begin < end:
        entry_end = find_letter(text, begin, end, SEMICOLON, SEMICOLON)
        if same_modification(text, begin, entry_end, other, at, stop):
            return begin
        begin = entry_end + 1
    return np.int64(-1)


@exact_inner
def _find_either(data, begin, stop, name, old_name):
    kind, end = find_tag(data, begin, stop, name)
    if kind < 0:
        kind, end = find_tag(data, begin, stop, old_name)
    return kind, end


@exact_inner
def _is_hard_clipped(data, start, stop):
    begin, n = cigar_of(data, start, stop)
    if n <= 0:
        return False
    return (data[begin] & 15) == _HARD_CLIP or (data[begin + 4 * (n - 1)] & 15) == _HARD_CLIP


@exact_inner
def places_of_tags(data, start, stop, n_bases):
    """Locate a record's MM and ML values: begin and end of each, and whether they are usable.

    They are if MM is text, ML has a byte per call and code, and MN equals the number of bases. Without MN, tags of a
    hard-clipped record are unusable, because they belong to the whole read. Without MM both ranges are empty.
    """
    begin = tags_begin(data, start)
    nowhere = np.int64(start)
    kind, end = _find_either(data, begin, stop, _MM, _OLD_MM)
    if kind < 0:
        return nowhere, nowhere, nowhere, nowhere, True
    ml_kind, ml_end = _find_either(data, begin, stop, _ML, _OLD_ML)
    n_kind, _ = find_tag(data, begin, stop, _MN)
    if n_kind < 0:
        fits = data[kind] == _TEXT and not _is_hard_clipped(data, start, stop)
    else:
        fits = data[kind] == _TEXT and integer_of(data, n_kind, np.int64(-1)) == n_bases
    ml_begin = ml_kind + 6
    if ml_kind < 0:
        ml_begin = ml_end = nowhere
    else:
        fits = fits and data[ml_kind] == _ARRAY and data[ml_kind + 1] == _BYTE
    if not fits or n_values(data[kind + 1 : end - 1]) != ml_end - ml_begin:
        return nowhere, nowhere, nowhere, nowhere, False
    return kind + 1, end - 1, ml_begin, ml_end, True


#: In place of an ML value: unlisted and so unmodified; unknown.
IMPLIED, UNKNOWN = np.int16(-1), np.int16(-2)

#: Entries with it count every base.
ANY_BASE = np.uint8(ord("N"))
#: Bases as bits by letter; 0 for ambiguous ones.
BITS_OF_LETTER = np.zeros(256, np.uint8)
BITS_OF_LETTER[np.frombuffer(b"ACGTU", np.uint8)] = (1, 2, 4, 8, 8)
COMPLEMENT = np.zeros(16, np.uint8)
COMPLEMENT[[1, 2, 4, 8]] = (8, 4, 2, 1)


class TaggedBases(NamedTuple):
    """Bases of a record with the values of its tags, shape (n,)."""

    bits: NDArray[np.uint8]
    wanted: NDArray[np.int16]  # values of the wanted modification
    highest: NDArray[np.int16]  # highest value of other modifications, -1 for none
    total: NDArray[np.float32]  # their total probability


@exact_inner
def new_bases(room):
    return TaggedBases(
        np.empty(room, np.uint8), np.empty(room, np.int16), np.empty(room, np.int16), np.empty(room, np.float32)
    )


@exact_inner
def first_bases(bases, n):
    return TaggedBases(bases.bits[:n], bases.wanted[:n], bases.highest[:n], bases.total[:n])


@exact_inner
def _same_code(text, at, width, code):
    same = width == code.shape[0]
    i = 0
    while same and i < width:
        same = text[at + i] == code[i]
        i += 1
    return same


@exact_inner
def _place_of_code(text, at, n_codes, width, names):
    """Return the index of the wanted code, under either name, in an entry's codes at `at`; -1 for none."""
    found = np.int64(-1)
    for i in range(n_codes):
        if _same_code(text, at + i * width, width, names[0]) or _same_code(text, at + i * width, width, names[1]):
            found = np.int64(i)
    return found


@exact_inner
def _read_entry(text, begin, end, ml, names, is_reverse, bases):
    """Spread an entry of a checked MM over the bases; return whether the record has enough of them."""
    bits, wanted, highest, total = bases
    n_codes = count_codes(text, begin, end)
    stop = codes_end(text, begin, end)
    which = _place_of_code(text, begin + 2, n_codes, (stop - begin - 2) // n_codes, names)
    is_implied = which >= 0 and not (stop < end and text[stop] == QUESTION)
    is_any = text[begin] == ANY_BASE
    counted = BITS_OF_LETTER[text[begin]]
    if is_reverse:
        counted = COMPLEMENT[counted]
    n = bits.shape[0]
    at = find_letter(text, begin, end, COMMA, COMMA)
    call = np.int64(0)
    left = np.int64(-1)  # bases to skip before the next call, or -1
    if at < end:
        left, at = number_at(text, at + 1, end)
    for i in range(n):
        place = n - 1 - i if is_reverse else i
        if not is_any and bits[place] != counted:
            continue
        if left == 0:
            for code in range(n_codes):
                value = np.int16(ml[call * n_codes + code])
                if code == which:
                    wanted[place] = value
                else:
                    highest[place] = max(highest[place], value)
                    total[place] += (np.float32(value) + np.float32(0.5)) / np.float32(256)
            call += 1
            left = np.int64(-1)
            if at < end:
                left, at = number_at(text, at + 1, end)
        else:
            left -= left > 0
            if is_implied and wanted[place] == UNKNOWN:
                wanted[place] = IMPLIED
        if left < 0 and not is_implied:
            break
    return left < 0


@exact_inner
def read_tags(text, ml, names, is_minus, letter, is_reverse, bases):
    """Spread all entries for one strand; return those of the wanted modification, -1 for too few bases."""
    begin = ml_begin = n_found = np.int64(0)
    while begin < text.shape[0]:
        end = find_letter(text, begin, text.shape[0], SEMICOLON, SEMICOLON)
        n_codes = count_codes(text, begin, end)
        n = count_calls(text, begin, end) * n_codes
        is_of_base = text[begin] == ANY_BASE or BITS_OF_LETTER[text[begin]] == letter
        if is_of_base and (text[begin + 1] == MINUS) == is_minus:
            values = ml[ml_begin : ml_begin + n]
            if not _read_entry(text, begin, end, values, names, is_reverse, bases):
                return np.int64(-1)
            width = (codes_end(text, begin, end) - begin - 2) // n_codes
            n_found += _place_of_code(text, begin + 2, n_codes, width, names) >= 0
        ml_begin += n
        begin = end + 1
    return n_found
