"""Kernels that spread the values of base modification tags over a record's bases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.io.bam.modifications._tags_numba import (
    COMMA,
    MINUS,
    QUESTION,
    SEMICOLON,
    codes_end,
    count_calls,
    count_codes,
    find_letter,
    number_at,
)
from f5py.jit.kernel import exact_inner

#: In place of an ML value: unlisted and so unmodified; unknown.
IMPLIED, UNKNOWN = np.int16(-1), np.int16(-2)

_ANY = np.uint8(ord("N"))
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
    is_any = text[begin] == _ANY
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
    """Spread all entries for one strand of the read; see `_read_entry`.

    Returns the number of entries with the wanted modification, -1 if one skips more bases than there are.
    """
    begin = ml_begin = n_found = np.int64(0)
    while begin < text.shape[0]:
        end = find_letter(text, begin, text.shape[0], SEMICOLON, SEMICOLON)
        n_codes = count_codes(text, begin, end)
        n = count_calls(text, begin, end) * n_codes
        is_of_base = text[begin] == _ANY or BITS_OF_LETTER[text[begin]] == letter
        if is_of_base and (text[begin + 1] == MINUS) == is_minus:
            values = ml[ml_begin : ml_begin + n]
            if not _read_entry(text, begin, end, values, names, is_reverse, bases):
                return np.int64(-1)
            width = (codes_end(text, begin, end) - begin - 2) // n_codes
            n_found += _place_of_code(text, begin + 2, n_codes, width, names) >= 0
        ml_begin += n
        begin = end + 1
    return n_found
