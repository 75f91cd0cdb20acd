"""Jitted conversion of FASTQ comments to BAM tags."""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

from f5py.io.bam._bam_numba import find_tag, put_integer
from f5py.io.sequences._read_records_numba import COMMENT, COMMENT_END
from f5py.jit.kernel import exact_inner, exact_kernel

_TAB, _SPACE = 9, 32
#: Types of tags in text, and of numbers in arrays: integers with their bounds, in the order of widening.
_TYPES = np.frombuffer(b"AifZHB", np.uint8)
_INTEGERS = np.frombuffer(b"cCsSiI", np.uint8)
_LEAST = np.array([-(1 << 7), 0, -(1 << 15), 0, -(1 << 31), 0], np.float64)
_MOST = np.array([(1 << 7) - 1, (1 << 8) - 1, (1 << 15) - 1, (1 << 16) - 1, (1 << 31) - 1, (1 << 32) - 1], np.float64)
_FLOAT = 102
_MOST_FLOAT = float(np.finfo(np.float32).max)
_MOST_EXPONENT = 100_000


@exact_inner
def _number(text, at, end, is_float):
    """Parse the decimal number at `at`; also return its end, or -1 if there is none."""
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
def _integer_code(code, low, high):
    """Return the first integer type from `code` on with both bounds in its range; 0 for none."""
    for i in range(_INTEGERS.shape[0]):
        if _INTEGERS[i] == code and (low < _LEAST[i] or high > _MOST[i]):
            code = _INTEGERS[i + 1] if i + 1 < _INTEGERS.shape[0] else np.uint8(0)
    return code


@exact_inner
def _put_number(out, n, value, code, single):
    """Write a number in BAM's type `code`; `single` is scratch for one float32."""
    if code == _FLOAT:
        single[0] = value
        return put_integer(out, n, np.int64(single.view(np.int32)[0]), 4)
    size = 4
    if code == 99 or code == 67:  # c, C
        size = 1
    elif code == 115 or code == 83:  # s, S
        size = 2
    return put_integer(out, n, np.int64(value), size)


@exact_kernel
def tags_of_comments(text, rows, n_reads, dropped, out, offsets, left_out):
    """Encode comments in the form of SAM tags as BAM tags, and fill `offsets`.

    A number outside the range of its array's type gets the next type. Tags with a value of another type are left out,
    as are repeated names.

    Parameters
    ----------
    dropped : uint16
        Encoded names of tags to drop.
    out : uint8
        Large enough for twice the text.
    left_out : int64, shape (4,)
        Filled: number of invalid tags, read of the first one, its offset in `text`, and number of other fields.
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
            elif stop > at:
                left_out[3] += 1
            at = stop + 1
        offsets[i + 1] = n
    return n


@exact_inner
def _is_tag(text, at, stop):
    """Return whether text has the form of a tag: name, known type, value."""
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
    """Write the tag between `at` and `stop`; return its end, or `n` if the value does not fit the type."""
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
    if kind == 105 or kind == _FLOAT:  # i: the smallest type
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
    """Write the value of an array after its tag's type; see `_put_tag`."""
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
    n = put_integer(out, n + 1, count, 4)
    place = np.int64(at + 1)
    while place < stop:
        value, place = _number(text, place + 1, stop, code == _FLOAT)
        n = _put_number(out, n, value, code, single)
    return n
