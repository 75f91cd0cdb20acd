"""Jitted loops that read FASTA and FASTQ into columns, and BAM records' qualities and tags."""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

from f5py.io.bam._bam_numba import (
    FLAGS,
    IS_REVERSE,
    N_BASES,
    find_tag,
    sequence_begins,
    signed32,
    size_of_value,
    tags_begin,
    unsigned16,
)
from f5py.jit.kernel import exact_inner, exact_kernel

#: What may be wrong with a file.
SOUND, NOT_A_RECORD, CUT, NO_NAME, NO_TEXT = range(5)
#: Columns of a read's row: name, comment, numbers of bases and qualities, where the record begins.
NAME, NAME_END, COMMENT, COMMENT_END, BASES, QUALITIES, BEGIN = range(7)
N_COLUMNS = 7
_NEWLINE, _TAB, _RETURN, _SPACE, _AT, _GREATER, _PLUS = 10, 9, 13, 32, 64, 62, 43
#: Types of tags in text, and those of numbers in an array: integers with their bounds, in the order of widening.
_TYPES = np.frombuffer(b"AifZHB", np.uint8)
_INTEGERS = np.frombuffer(b"cCsSiI", np.uint8)
_LEAST = np.array([-(1 << 7), 0, -(1 << 15), 0, -(1 << 31), 0], np.float64)
_MOST = np.array([(1 << 7) - 1, (1 << 8) - 1, (1 << 15) - 1, (1 << 16) - 1, (1 << 31) - 1, (1 << 32) - 1], np.float64)
_FLOAT = 102
_MOST_FLOAT = float(np.finfo(np.float32).max)
_MOST_EXPONENT = 100_000
#: Bytes of a line that are copied at a time.
_TOGETHER = 64


@exact_inner
def _copy_text(text, at, end, out, to):
    """Copy bytes above the space from `at` on, many at a time; stop before one that is not, or near `end`.

    Return how many have been copied; what lies behind these in `out` is undefined.
    """
    n = 0
    while n + _TOGETHER <= end - at:
        source, target = np.uint64(at + n), np.uint64(to + n)
        n_others = np.uint8(0)
        for j in range(_TOGETHER):
            byte = text[source + np.uint64(j)]
            out[target + np.uint64(j)] = byte
            n_others += np.uint8(byte <= _SPACE)
        if n_others:
            break
        n += _TOGETHER
    return n


@exact_inner
def _is_text(byte):
    """Return whether a byte up to the space is white space, not a control character."""
    return byte == _SPACE or (byte >= _TAB and byte <= _RETURN)


@exact_kernel
def parse_reads(text, n, is_last, max_bases, letters, qualities, rows):
    """Read whole records from the beginning of `text`.

    Parameters
    ----------
    text : uint8, shape (>= n,)
    n : int
        Bytes that are there.
    is_last : bool
        The file has no more.
    max_bases : int
        Stop behind so many bases.
    letters, qualities : uint8, shape (>= n,)
        Filled; of a read without qualities only the first, with 0.
    rows : int64, shape (any, N_COLUMNS)
        Filled, one row a read.

    Returns
    -------
    n_reads, n_bases, used, problem : int
        Reads, their bases, the bytes of whole records, and what is wrong behind these.
    """
    at = 0
    n_reads = 0
    n_bases = 0
    used = 0
    while n_reads < rows.shape[0] and n_bases < max_bases:
        is_good = True
        while at < n and text[at] <= _SPACE:
            is_good = is_good and _is_text(text[at])
            at += 1
        if at == n and is_good:
            return n_reads, n_bases, n, SOUND
        begin = at
        mark = text[at] if at < n else _SPACE
        if mark != _AT and mark != _GREATER:
            return n_reads, n_bases, used, NOT_A_RECORD
        at += 1
        name = at
        while at < n and text[at] > _SPACE:
            at += 1
        name_end = at
        while at < n and text[at] != _NEWLINE:
            is_good = is_good and (text[at] > _SPACE or _is_text(text[at]))
            at += 1
        if at == n and not is_last and is_good:
            break
        comment = min(name_end + 1, at)
        comment_end = at
        if comment_end > comment and text[comment_end - 1] == _RETURN:
            comment_end -= 1
        first = n_bases
        bases = n_bases
        ended = False
        has_plus = False
        while at < n:
            at += 1  # behind a newline
            if at == n:
                break
            if text[at] == _AT or text[at] == _GREATER:
                ended = True
                break
            if text[at] == _PLUS:
                has_plus = True
                break
            n_copied = _copy_text(text, at, n, letters, bases)
            at += n_copied
            bases += n_copied
            while at < n and text[at] != _NEWLINE:
                if text[at] > _SPACE:
                    letters[bases] = text[at]
                    bases += 1
                else:
                    is_good = is_good and _is_text(text[at])
                at += 1
        n_qualities = 0
        if has_plus:
            while at < n and text[at] != _NEWLINE:
                is_good = is_good and (text[at] > _SPACE or _is_text(text[at]))
                at += 1
            wanted = bases - first
            while at < n and n_qualities < wanted:
                at += 1
                n_copied = _copy_text(text, at, min(n, at + wanted - n_qualities), qualities, first + n_qualities)
                at += n_copied
                n_qualities += n_copied
                while at < n and text[at] != _NEWLINE:
                    if text[at] > _SPACE:
                        if n_qualities < wanted:
                            qualities[first + n_qualities] = text[at]
                        n_qualities += 1
                    else:
                        is_good = is_good and _is_text(text[at])
                    at += 1
            ended = n_qualities >= wanted and at < n
        if not is_good:
            return n_reads, n_bases, used, NO_TEXT
        if not ended and not is_last:
            break
        if name_end == name:
            return n_reads, n_bases, used, NO_NAME
        if n_qualities != (bases - first if has_plus else 0) or (mark == _AT and not has_plus):
            return n_reads, n_bases, used, CUT
        if not has_plus and bases > first:
            qualities[first] = 0
        row = rows[n_reads]
        row[NAME] = name
        row[NAME_END] = name_end
        row[COMMENT] = comment
        row[COMMENT_END] = comment_end
        row[BASES] = bases - first
        row[QUALITIES] = n_qualities
        row[BEGIN] = begin
        n_reads += 1
        n_bases = bases
        used = at
    return n_reads, n_bases, used, SOUND


@exact_kernel
def copy_qualities(data, starts, chosen, offsets, out):
    """Copy the qualities of BAM records, as sequenced, as letters; 0 for those that have none.

    Parameters
    ----------
    data, starts, chosen
        See `f5py.io.bam._bam_numba.decode`.
    offsets : int64, shape (n + 1,)
        Of the reads' bases.
    out : uint8, shape (offsets[-1],)
        Filled: Phred qualities + 33.
    """
    for i in range(chosen.shape[0]):
        at = starts[chosen[i]]
        n = signed32(data, at + N_BASES)
        begin = sequence_begins(data, at) + ((n + 1) >> 1)
        reverse = unsigned16(data, at + FLAGS) & IS_REVERSE != 0
        to = offsets[i]
        for j in range(n):
            value = data[begin + j]
            letter = 0 if value == 255 else value + 33
            out[to + n - 1 - j if reverse else to + j] = letter


@exact_kernel
def copy_tags(data, starts, chosen, dropped, out, offsets):
    """Copy the tags of BAM records but those named in `dropped`; return their number of bytes.

    Parameters
    ----------
    data, starts, chosen
        See `f5py.io.bam._bam_numba.decode`.
    dropped : uint16
        Names of tags that are left out.
    out : uint8
        Filled; with room for the records.
    offsets : int64, shape (n + 1,)
        Filled with those of the records' tags in `out`.
    """
    n = 0
    offsets[0] = 0
    for i in range(chosen.shape[0]):
        at = tags_begin(data, starts[chosen[i]])
        end = starts[chosen[i] + 1]
        while at + 3 <= end:
            name = unsigned16(data, at)
            size = 3 + size_of_value(data, at + 3, data[at + 2], end)
            if size < 3 or at + size > end:
                break
            keep = True
            for d in range(dropped.shape[0]):
                keep = keep and dropped[d] != name
            if keep:
                for j in range(size):
                    out[n + j] = data[at + j]
                n += size
            at += size
        offsets[i + 1] = n
    return n


@exact_inner
def _number(text, at, end, is_float):
    """Parse the decimal number that begins at `at`; also return where it ends, -1 if there is none."""
    sign = 1.0
    if at < end and (text[at] == 45 or text[at] == 43):
        if text[at] == 45:
            sign = -1.0
        at += 1
    value = 0.0
    scale = 0
    n_digits = 0
    is_fraction = False
    while at < end and (48 <= text[at] <= 57 or (text[at] == 46 and is_float and not is_fraction)):
        if text[at] == 46:
            is_fraction = True
        else:
            n_digits += 1
            value = value * 10.0 + np.float64(text[at] - 48)
            if is_fraction:
                scale -= 1
        at += 1
    if n_digits == 0:
        return value, np.int64(-1)
    if at < end and is_float and (text[at] == 101 or text[at] == 69):
        at += 1
        exponent_sign = 1
        if at < end and (text[at] == 45 or text[at] == 43):
            if text[at] == 45:
                exponent_sign = -1
            at += 1
        exponent = 0
        n_digits = 0
        while at < end and 48 <= text[at] <= 57:
            exponent = min(exponent * 10 + np.int64(text[at] - 48), _MOST_EXPONENT)
            n_digits += 1
            at += 1
        if n_digits == 0:
            return value, np.int64(-1)
        scale += exponent_sign * exponent
    while scale > 0 and value != 0.0 and value <= _MOST_FLOAT:
        step = min(scale, 22)
        value *= 10.0**step
        scale -= step
    while scale < 0 and value != 0.0:
        step = min(-scale, 22)
        value /= 10.0**step
        scale += step
    return sign * value, np.int64(at)


@exact_inner
def _put(out, n, value, size):
    """Write the lowest `size` bytes of an integer; return the index after them."""
    for _ in range(size):
        out[n] = value & 255
        value >>= 8
        n += 1
    return n


@exact_inner
def _integer_code(code, low, high):
    """Find the first type from an integer type on that holds numbers between two; 0 if none does."""
    for i in range(_INTEGERS.shape[0]):
        if _INTEGERS[i] == code and (low < _LEAST[i] or high > _MOST[i]):
            code = _INTEGERS[i + 1] if i + 1 < _INTEGERS.shape[0] else np.uint8(0)
    return code


@exact_inner
def _put_number(out, n, value, code, single):
    """Write a number as BAM's type `code` has it; `single` is scratch for one float32."""
    if code == _FLOAT:
        single[0] = value
        return _put(out, n, np.int64(single.view(np.int32)[0]), 4)
    size = 4
    if code == 99 or code == 67:  # c, C
        size = 1
    elif code == 115 or code == 83:  # s, S
        size = 2
    return _put(out, n, np.int64(value), size)


@exact_kernel
def tags_of_comments(text, rows, n_reads, dropped, out, offsets, left_out):
    """Turn comments that look like SAM tags into tags as BAM has them; fill `offsets`, of which the first is 0.

    A number that does not fit the type of its array gets the next type; a tag with a value that its type does not have,
    and a second one of the same name, is left out.

    Parameters
    ----------
    text, rows, n_reads
        As `parse_reads` has them.
    dropped : uint16
        Names of tags that are not taken.
    out : uint8
        Room for twice the text.
    offsets : int64, shape (n_reads + 1,)
    left_out : int64, shape (3,)
        Filled: number of tags that are left out, the read of the first one, and where that begins in `text`.
    """
    n = 0
    offsets[0] = 0
    left_out[:] = 0
    single = np.empty(1, np.float32)
    for i in range(n_reads):
        at = rows[i, COMMENT]
        end = rows[i, COMMENT_END]
        while at < end:
            stop = at
            while stop < end and text[stop] != _TAB:
                stop += 1
            if _is_tag(text, at, stop):
                name = np.int64(text[at]) | (np.int64(text[at + 1]) << 8)
                keep = True
                for d in range(dropped.shape[0]):
                    keep = keep and dropped[d] != name
                if keep:
                    before = n
                    if find_tag(out, offsets[i], n, np.uint16(name))[0] < 0:
                        n = _put_tag(text, at, stop, out, n, single)
                    if n == before:
                        if left_out[0] == 0:
                            left_out[1] = i
                            left_out[2] = at
                        left_out[0] += 1
            at = stop + 1
        offsets[i + 1] = n
    return n


@exact_inner
def _is_tag(text, at, stop):
    """Return whether text has the form of a tag: its name, a known type, and a value."""
    if stop - at < 5 or text[at + 2] != 58 or text[at + 4] != 58:
        return False
    first, second = text[at] | 32, text[at + 1] | 32
    is_name = 97 <= first <= 122 and (97 <= second <= 122 or 48 <= text[at + 1] <= 57)
    is_type = False
    for code in _TYPES:
        is_type = is_type or text[at + 3] == code
    return is_name and is_type


@exact_inner
def _put_tag(text, at, stop, out, n, single):
    """Write the tag between `at` and `stop` and return where it ends; `n` if its value does not fit its type."""
    kind = text[at + 3]
    begin = n
    at += 5
    out[n] = text[at - 5]
    out[n + 1] = text[at - 4]
    out[n + 2] = kind
    n += 3
    if kind == 65:  # A
        out[n] = text[at] if stop > at else 0
        return n + 1 if stop == at + 1 and _SPACE < out[n] < 127 else begin
    if kind == 90 or kind == 72:  # Z, H
        is_sound = kind == 90 or (stop - at) % 2 == 0
        for j in range(at, stop):
            byte = text[j]
            if kind == 72:
                is_sound = is_sound and (48 <= byte <= 57 or 65 <= byte <= 70)
            else:
                is_sound = is_sound and byte >= _SPACE and byte != 127
            out[n] = byte
            n += 1
        out[n] = 0
        return n + 1 if is_sound else begin
    if kind == 105 or kind == _FLOAT:  # i: the smallest type that holds it
        value, place = _number(text, at, stop, kind == _FLOAT)
        code = kind
        if kind == 105 and value < 0:
            code = 99 if value >= -128 else (115 if value >= -32768 else (105 if value >= _LEAST[4] else 0))
        elif kind == 105:
            code = 67 if value < 256 else (83 if value < 65536 else (73 if value <= _MOST[5] else 0))
        elif not abs(value) <= _MOST_FLOAT:
            code = 0
        if place != stop or code == 0:
            return begin
        out[n - 1] = code
        return _put_number(out, n, value, code, single)
    return _put_array(text, at, stop, out, n, single)


@exact_inner
def _put_array(text, at, stop, out, n, single):
    """Write the value of an array behind its tag's type; see `_put_tag`."""
    begin = n - 3
    code = text[at] if at < stop else np.uint8(0)
    is_known = code == _FLOAT
    for i in range(_INTEGERS.shape[0]):
        is_known = is_known or code == _INTEGERS[i]
    if not is_known:
        return begin
    count = 0
    low = high = 0.0
    place = np.int64(at + 1)
    while place < stop:
        if text[place] != 44:  # ,
            return begin
        value, place = _number(text, place + 1, stop, code == _FLOAT)
        if place < 0:
            return begin
        low, high = min(low, value), max(high, value)
        count += 1
    if code != _FLOAT:
        code = _integer_code(code, low, high)
    elif not (low >= -_MOST_FLOAT and high <= _MOST_FLOAT):
        code = np.uint8(0)
    if code == 0:
        return begin
    out[n] = code
    n = _put(out, n + 1, count, 4)
    place = np.int64(at + 1)
    while place < stop:
        value, place = _number(text, place + 1, stop, code == _FLOAT)
        n = _put_number(out, n, value, code, single)
    return n
