"""Jitted merging of base modification tags; see `f5py.outputs.tag_merging`.

The text of MM is a list of entries ``C+m?,2,0,5;``: base, strand, codes, how bases that are not listed are meant, and
the numbers of bases of that kind to pass over before each call. ML has a byte for every call and code.
"""

from __future__ import annotations

import numpy as np

from f5py.io.bam._bam_numba import N_BASES, find_tag, integer_of, signed32, tags_begin
from f5py.jit.kernel import exact_kernel
from f5py.text._format_numba import append_bytes, append_int

_COMMA, _SEMICOLON, _QUESTION, _DOT, _PLUS, _MINUS = (np.uint8(ord(one)) for one in ",;?.+-")
_ZERO, _NINE = np.uint8(ord("0")), np.uint8(ord("9"))
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
def _merge_calls(a, at_a, end_a, ml_a, b, at_b, end_b, ml_b, out, at, ml_out):
    """Write the calls of two entries of one modification in the order of the bases; those of the first come first.

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
        ml_out[count] = ml_a[i] if take_a else ml_b[j]
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
    """Join two lists of entries; calls of the same modification become one entry. Returns both sizes."""
    at = ml_at = np.int64(0)
    begin = ml_begin = np.int64(0)
    while begin < a.shape[0]:
        end = _find(a, begin, a.shape[0], _SEMICOLON, _SEMICOLON)
        n = _n_calls(a, begin, end)
        other, ml_other = np.int64(0), np.int64(0)
        while other < b.shape[0]:
            other_end = _find(b, other, b.shape[0], _SEMICOLON, _SEMICOLON)
            if _same_modification(a, begin, end, b, other, other_end):
                break
            ml_other += _n_calls(b, other, other_end)
            other = other_end + 1
        if other < b.shape[0]:
            at = append_bytes(out, at, a[begin : _find(a, begin, end, _COMMA, _COMMA)])
            at, count = _merge_calls(
                a, begin, end, ml_a[ml_begin:], b, other, other_end, ml_b[ml_other:], out, at, ml_out[ml_at:]
            )
            ml_at += count
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
        n = _n_calls(b, begin, end)
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
    """Append what entries have of modifications that are not ours; return both sizes, -1 if they are damaged."""
    begin = ml_begin = np.int64(0)
    end_of_all = theirs.shape[0]
    while begin < end_of_all:
        end = _find(theirs, begin, end_of_all, _SEMICOLON, _SEMICOLON)
        stop = _codes_end(theirs, begin, end)
        if stop < begin + 3 or (theirs[begin + 1] != _PLUS and theirs[begin + 1] != _MINUS):
            return np.int64(-1), np.int64(-1)
        n_codes = _n_codes(theirs, begin, end)
        n = _n_calls(theirs, begin, end)
        if ml_begin + n * n_codes > ml_theirs.shape[0]:
            return np.int64(-1), np.int64(-1)
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
    if ml_begin != ml_theirs.shape[0]:
        return np.int64(-1), np.int64(-1)
    return at, ml_at


@exact_kernel
def _places_of_tags(data, start, stop):
    """Where MM and ML of a record are, without their types: begin and end of each; two empty places if they do not fit.

    They fit if they are there, ML has as many values as it says, and MN, if there is one, is the sequence's length.
    """
    begin = tags_begin(data, start)
    kind, end = find_tag(data, begin, stop, _MM)
    ml_kind, ml_end = find_tag(data, begin, stop, _ML)
    n_kind, _ = find_tag(data, begin, stop, _MN)
    nowhere = np.int64(start)
    if kind < 0 or ml_kind < 0 or ml_end - ml_kind - 6 != signed32(data, ml_kind + 2):
        return nowhere, nowhere, nowhere, nowhere
    if n_kind >= 0 and integer_of(data, n_kind, np.int64(-1)) != signed32(data, start + N_BASES):
        return nowhere, nowhere, nowhere, nowhere
    return kind + 1, end - 1, ml_kind + 6, ml_end


@exact_kernel
def measure_tags(data, starts, chosen, size, ml_size, length):
    """Fill the sizes of what `copy_tags` copies of each chosen record, and its number of bases."""
    for i in range(chosen.shape[0]):
        begin, end, ml_begin, ml_end = _places_of_tags(data, starts[chosen[i]], starts[chosen[i] + 1])
        size[i], ml_size[i] = end - begin, ml_end - ml_begin
        length[i] = signed32(data, starts[chosen[i]] + N_BASES)


@exact_kernel
def copy_tags(data, starts, chosen, text, text_offsets, probability, probability_offsets):
    """Copy the base modification tags of the chosen records."""
    for i in range(chosen.shape[0]):
        begin, end, ml_begin, ml_end = _places_of_tags(data, starts[chosen[i]], starts[chosen[i] + 1])
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
            end = starts[record[read] + 1]
            begin = tags_begin(data, starts[record[read]])
            kind, stop = find_tag(data, begin, end, _MM)
            if kind < 0:
                kind, stop = find_tag(data, begin, end, _OLD_MM)
            ml_kind, ml_stop = find_tag(data, begin, end, _ML)
            if ml_kind < 0:
                ml_kind, ml_stop = find_tag(data, begin, end, _OLD_ML)
            n_kind, _ = find_tag(data, begin, end, _MN)
            if kind >= 0:
                theirs = data[kind + 1 : stop - 1]
                ml_theirs = data[ml_kind + 6 : ml_stop] if ml_kind >= 0 else data[:0]
                fits = ml_kind < 0 or ml_stop - ml_kind - 6 == signed32(data, ml_kind + 2)
                if n_kind >= 0:
                    fits = fits and integer_of(data, n_kind, np.int64(-1)) == tags.length[read]
                if fits:
                    size, ml_size = _append_others(
                        ours, theirs, ml_theirs, text[at:], size, probability[ml_at:], ml_size
                    )
                else:
                    size = ml_size = np.int64(-1)
            if size >= 0:
                at += size
                ml_at += ml_size
        text_offsets[read + 1] = at
        probability_offsets[read + 1] = ml_at
