"""Jitted merging of base modification tags; see `f5py.outputs.calls.tag_merging`.

The text of MM is a list of entries ``C+m?,2,0,5;``: base, strand, codes, how bases that are not listed are meant, and
the numbers of bases of that kind to pass over before each call. ML has a byte for every call and code.
"""

from __future__ import annotations

import numpy as np

from f5py.core.cigar import HARD_CLIP
from f5py.io.bam._bam_numba import N_BASES, cigar_of, find_tag, integer_of, signed32, tags_begin
from f5py.jit.kernel import exact_kernel
from f5py.text._format_numba import append_bytes, append_int

_COMMA, _SEMICOLON, _QUESTION, _DOT, _PLUS, _MINUS = (np.uint8(ord(one)) for one in ",;?.+-")
_ZERO, _NINE, _TEXT, _ARRAY, _BYTE = (np.uint8(ord(one)) for one in "09ZBC")
_HARD_CLIP = np.uint8(HARD_CLIP)
#: Lengths of sequences, and so numbers of bases to pass over, are below this.
_MAX_BASES = np.int64(1) << 31
_MM, _OLD_MM, _ML, _OLD_ML, _MN = (np.uint16(name[0] + 256 * name[1]) for name in (b"MM", b"Mm", b"ML", b"Ml", b"MN"))


@exact_kernel
def _find(text, at, end, one, other):
    """The first place from `at` on with one of two letters, or `end`."""
    while at < end and text[at] != one and text[at] != other:
        at += 1
    return at


@exact_kernel
def _codes_end(text, at, end):
    """Where the codes of the entry at `at` end."""
    stop = _find(text, at, end, _COMMA, _SEMICOLON)
    while stop > at and text[stop - 1] in (_QUESTION, _DOT):
        stop -= 1
    return stop


@exact_kernel
def _n_calls(text, at, end):
    """Calls of an entry."""
    count = 0
    for i in range(at, end):
        count += text[i] == _COMMA
    return count


@exact_kernel
def _n_codes(text, at, end):
    """Codes of the entry at `at`: letters, or one number."""
    first, stop = at + 2, _codes_end(text, at, end)
    if first < stop and _ZERO <= text[first] <= _NINE:
        return np.int64(1)
    return np.int64(stop - first)


@exact_kernel
def _is_letter(one):
    return 97 <= (one | 32) <= 122


@exact_kernel
def n_values(text):
    """Values that ML must have beside this text of MM, or -1 if it is not one that can be merged.

    Every entry has a base, a strand, codes and numbers, which add up to no more than the bases of a sequence, and no
    other is of the same modification. Whatever goes through the text afterwards relies on this.
    """
    total = begin = np.int64(0)
    while begin < text.shape[0]:
        end = _find(text, begin, text.shape[0], _SEMICOLON, _SEMICOLON)
        stop = _codes_end(text, begin, end)
        if stop < begin + 3 or not _is_letter(text[begin]) or text[begin + 1] not in (_PLUS, _MINUS):
            return np.int64(-1)
        is_number = _ZERO <= text[begin + 2] <= _NINE
        for i in range(begin + 2, stop):
            if (is_number and not _ZERO <= text[i] <= _NINE) or (not is_number and not _is_letter(text[i])):
                return np.int64(-1)
        if _find_entry(text, np.int64(0), begin, text, begin, end) >= 0:
            return np.int64(-1)
        at = _find(text, begin, end, _COMMA, _COMMA)
        if at > stop + 1:  # more than one letter after the codes
            return np.int64(-1)
        bases = np.int64(0)
        while at < end:
            first = at + 1
            skipped, at = _number(text, first, min(end, first + 10))
            bases += skipped + 1
            if at == first or bases > _MAX_BASES or (at < end and text[at] != _COMMA):
                return np.int64(-1)
        total += _n_calls(text, begin, end) * _n_codes(text, begin, end)
        begin = end + 1
    return total


@exact_kernel
def _number(text, at, end):
    """The number at `at`, and the place after it."""
    value = np.int64(0)
    while at < end and _ZERO <= text[at] <= _NINE:
        value = value * 10 + np.int64(text[at] - _ZERO)
        at += 1
    return value, at


@exact_kernel
def _same_modification(a, at_a, end_a, b, at_b, end_b):
    """Whether two entries are of the same base, strand and codes."""
    stop_a, stop_b = _codes_end(a, at_a, end_a), _codes_end(b, at_b, end_b)
    if stop_a - at_a != stop_b - at_b:
        return False
    same = True
    for i in range(stop_a - at_a):
        same = same and a[at_a + i] == b[at_b + i]
    return same


@exact_kernel
def _find_entry(text, begin, end, other, at, stop):
    """The entry of ``text[begin:end]`` with the modification of an entry elsewhere, or -1."""
    while begin < end:
        entry_end = _find(text, begin, end, _SEMICOLON, _SEMICOLON)
        if _same_modification(text, begin, entry_end, other, at, stop):
            return begin
        begin = entry_end + 1
    return np.int64(-1)


@exact_kernel
def _merge_calls(a, at_a, end_a, ml_a, b, at_b, end_b, ml_b, n_codes, out, at, ml_out):
    """Write the calls of two entries of one modification in the order of the bases; those of the first come first.

    Each has `n_codes` values in ML.

    Returns the place after the text, and the number of calls.
    """
    at_a, at_b = _find(a, at_a, end_a, _COMMA, _COMMA), _find(b, at_b, end_b, _COMMA, _COMMA)
    base_a = base_b = np.int64(-1)  # number of the call's base among those of its kind
    i = j = count = np.int64(0)
    last = np.int64(-1)
    has_a = has_b = False
    while True:
        if not has_a and at_a < end_a:
            skipped, at_a = _number(a, at_a + 1, end_a)
            base_a += skipped + 1
            has_a = True
        if not has_b and at_b < end_b:
            skipped, at_b = _number(b, at_b + 1, end_b)
            base_b += skipped + 1
            has_b = True
        if not has_a and not has_b:
            return at, count
        take_a = has_a and (not has_b or base_a <= base_b)
        base = base_a if take_a else base_b
        for code in range(n_codes):
            ml_out[count * n_codes + code] = ml_a[i * n_codes + code] if take_a else ml_b[j * n_codes + code]
        out[at] = _COMMA
        at = append_int(out, at + 1, base - last - 1)
        last = base
        count += 1
        if has_b and base_b == base:
            has_b = False
            j += 1
        if take_a:
            has_a = False
            i += 1


@exact_kernel
def _merge_entries(a, ml_a, b, ml_b, out, ml_out):
    """Join two lists of entries; calls of the same modification become one entry. Returns both sizes.

    The lists are as `n_values` has found them, and so are no longer together than before.
    """
    at = ml_at = np.int64(0)
    begin = ml_begin = np.int64(0)
    while begin < a.shape[0]:
        end = _find(a, begin, a.shape[0], _SEMICOLON, _SEMICOLON)
        n_codes = _n_codes(a, begin, end)
        n = _n_calls(a, begin, end) * n_codes
        other, ml_other = np.int64(0), np.int64(0)
        while other < b.shape[0]:
            other_end = _find(b, other, b.shape[0], _SEMICOLON, _SEMICOLON)
            if _same_modification(a, begin, end, b, other, other_end):
                break
            ml_other += _n_calls(b, other, other_end) * _n_codes(b, other, other_end)
            other = other_end + 1
        if other < b.shape[0]:
            at = append_bytes(out, at, a[begin : _find(a, begin, end, _COMMA, _COMMA)])
            at, count = _merge_calls(
                a, begin, end, ml_a[ml_begin:], b, other, other_end, ml_b[ml_other:], n_codes, out, at, ml_out[ml_at:]
            )
            ml_at += count * n_codes
        else:
            at = append_bytes(out, at, a[begin:end])
            ml_at = append_bytes(ml_out, ml_at, ml_a[ml_begin : ml_begin + n])
        out[at] = _SEMICOLON
        at += 1
        ml_begin += n
        begin = end + 1
    begin = ml_begin = np.int64(0)
    while begin < b.shape[0]:
        end = _find(b, begin, b.shape[0], _SEMICOLON, _SEMICOLON)
        n = _n_calls(b, begin, end) * _n_codes(b, begin, end)
        if _find_entry(a, np.int64(0), a.shape[0], b, begin, end) < 0:
            at = append_bytes(out, at, b[begin:end])
            out[at] = _SEMICOLON
            at += 1
            ml_at = append_bytes(ml_out, ml_at, ml_b[ml_begin : ml_begin + n])
        ml_begin += n
        begin = end + 1
    return at, ml_at


@exact_kernel
def merge_tags(a, b, text, text_offsets, probability, probability_offsets):
    """Join the tags of the same reads that two motifs have; both are `ModificationTags`."""
    at = ml_at = np.int64(0)
    for read in range(a.length.shape[0]):
        size, ml_size = _merge_entries(
            a.text[a.text_offsets[read] : a.text_offsets[read + 1]],
            a.probability[a.probability_offsets[read] : a.probability_offsets[read + 1]],
            b.text[b.text_offsets[read] : b.text_offsets[read + 1]],
            b.probability[b.probability_offsets[read] : b.probability_offsets[read + 1]],
            text[at:],
            probability[ml_at:],
        )
        at += size
        ml_at += ml_size
        text_offsets[read + 1] = at
        probability_offsets[read + 1] = ml_at


@exact_kernel
def _is_ours(ours, base, strand, code_begin, code_end, theirs):
    """Whether one of our entries has that base, strand and code."""
    at = np.int64(0)
    while at < ours.shape[0]:
        end = _find(ours, at, ours.shape[0], _SEMICOLON, _SEMICOLON)
        stop = _codes_end(ours, at, end)
        if ours[at] == base and ours[at + 1] == strand and stop - at - 2 == code_end - code_begin:
            same = True
            for i in range(code_end - code_begin):
                same = same and ours[at + 2 + i] == theirs[code_begin + i]
            if same:
                return True
        at = end + 1
    return False


@exact_kernel
def _append_others(ours, theirs, ml_theirs, out, at, ml_out, ml_at):
    """Append what entries, as `n_values` has found them, have of modifications that are not ours; return both sizes."""
    begin = ml_begin = np.int64(0)
    end_of_all = theirs.shape[0]
    while begin < end_of_all:
        end = _find(theirs, begin, end_of_all, _SEMICOLON, _SEMICOLON)
        stop = _codes_end(theirs, begin, end)
        n_codes = _n_codes(theirs, begin, end)
        n = _n_calls(theirs, begin, end)
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
            out[at] = _SEMICOLON
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
def _find_either(data, begin, stop, name, old_name):
    kind, end = find_tag(data, begin, stop, name)
    if kind < 0:
        kind, end = find_tag(data, begin, stop, old_name)
    return kind, end


@exact_kernel
def _is_hard_clipped(data, start, stop):
    """Whether bases of the read are missing in a record."""
    begin, n = cigar_of(data, start, stop)
    if n <= 0:
        return False
    return (data[begin] & 15) == _HARD_CLIP or (data[begin + 4 * (n - 1)] & 15) == _HARD_CLIP


@exact_kernel
def _places_of_tags(data, start, stop, n_bases):
    """Where MM and ML of a record are, without their types: begin and end of each; and whether they can be used.

    They can if MM is a text and ML, if there is one, has a byte for each of its calls and codes, and MN, if there is
    one, is the number of bases; without MN, tags of a hard-clipped record are those of the whole read, and of no use.
    A record without MM has two empty places.
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


@exact_kernel
def measure_tags(data, starts, chosen, size, ml_size, length):
    """Fill the sizes of what `copy_tags` copies of each chosen record, and its number of bases; -1 for damaged tags."""
    for i in range(chosen.shape[0]):
        start = starts[chosen[i]]
        length[i] = signed32(data, start + N_BASES)
        begin, end, ml_begin, ml_end, fits = _places_of_tags(data, start, starts[chosen[i] + 1], length[i])
        size[i] = end - begin if fits else -1
        ml_size[i] = ml_end - ml_begin


@exact_kernel
def copy_tags(data, starts, chosen, text, text_offsets, probability, probability_offsets):
    """Copy the base modification tags of the chosen records."""
    for i in range(chosen.shape[0]):
        start = starts[chosen[i]]
        n_bases = signed32(data, start + N_BASES)
        begin, end, ml_begin, ml_end, _ = _places_of_tags(data, start, starts[chosen[i] + 1], n_bases)
        append_bytes(text, text_offsets[i], data[begin:end])
        append_bytes(probability, probability_offsets[i], data[ml_begin:ml_end])


@exact_kernel
def merge_into_records(data, starts, record, tags, text, text_offsets, probability, probability_offsets):
    """Add to the tags of every read what its record has of other modifications.

    A read whose record's tags are damaged, or are of a sequence of another length, gets none.

    Parameters
    ----------
    record : int64, shape (n_reads,)
        Index of each read's record.
    """
    at = ml_at = np.int64(0)
    for read in range(record.shape[0]):
        ours = tags.text[tags.text_offsets[read] : tags.text_offsets[read + 1]]
        ml_ours = tags.probability[tags.probability_offsets[read] : tags.probability_offsets[read + 1]]
        if ml_ours.shape[0] > 0:
            size = append_bytes(text[at:], 0, ours)
            ml_size = append_bytes(probability[ml_at:], 0, ml_ours)
            begin, end, ml_begin, ml_end, fits = _places_of_tags(
                data, starts[record[read]], starts[record[read] + 1], tags.length[read]
            )
            if fits:
                size, ml_size = _append_others(
                    ours, data[begin:end], data[ml_begin:ml_end], text[at:], size, probability[ml_at:], ml_size
                )
            else:
                size = ml_size = np.int64(-1)
            if size >= 0:
                at += size
                ml_at += ml_size
        text_offsets[read + 1] = at
        probability_offsets[read + 1] = ml_at
