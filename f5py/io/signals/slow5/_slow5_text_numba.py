"""Kernels that parse lines of a SLOW5 text file."""

import numpy as np

from f5py.jit.c_memory import address_of_data, call_for_float
from f5py.jit.kernel import exact_inner
from f5py.jit.work_queue import add_to

_TAB, _NEWLINE, _COMMA, _MINUS, _ZERO = 9, 10, 44, 45, 48
_N_FIELDS = 8
_N_CALIBRATION = 4
_MOST_DIGITS = 18
_LOWEST, _HIGHEST = -(1 << 15), (1 << 15) - 1


@exact_inner
def take_room(got, read, n, size):
    """Reserve `size` elements for n samples of a read; return whether they fit."""
    got.n_samples[read] = n
    got.is_packed[read] = False
    place = add_to(got.used, size)
    got.places[read] = place if place + size <= got.scratch.shape[0] else -1
    return got.places[read] >= 0


@exact_inner
def parse_text(file, line, size, names, begin, end, read, got):
    """Parse a read's line; return whether it is sound and of read ``names[begin:end]``.

    Fields: name, read group, digitisation, offset, range, sampling rate, number of samples, comma-separated samples,
    and further ones, of which only the start of the read is used.
    """
    fields = np.zeros(_N_FIELDS + 1, np.int64)  # offsets
    if size < 1 or line[size - 1] != _NEWLINE:
        return False
    n = 1
    for i in range(size):
        if line[i] == _TAB or i == size - 1:
            fields[n] = i + 1
            n += 1
            if n > _N_FIELDS:
                break
    if n <= _N_FIELDS or fields[1] - 1 != end - begin:
        return False
    for j in range(end - begin):
        if line[j] != names[begin + j]:
            return False
    for j in range(4):
        if not _float(file, line, fields[2 + j], fields[3 + j] - 1, read, j, got):
            return False
    group = _unsigned(line, fields[1], fields[2] - 1)
    count = _unsigned(line, fields[6], fields[7] - 1)
    if group < 0 or count < 0:
        return False
    got.groups[read] = group
    _start(file, line, size, fields[8], read, got)
    return _samples(line, fields[7], fields[8] - 1, count, read, got)


@exact_inner
def _start(file, line, size, at, read, got):
    """Parse the start of a read, if present; a dot stands for none."""
    left = file.start_field.shape[0]
    begin = at
    for i in range(at, size if left > 0 else at):
        if line[i] == _TAB or i == size - 1:
            left -= 1
            if left == 0:
                start = _unsigned(line, begin, i)
                if start >= 0:
                    got.calibration[read, _N_CALIBRATION] = start
                return
            begin = i + 1


@exact_inner
def _float(file, line, begin, end, read, which, got):
    stop = np.zeros(1, np.int64)
    address = address_of_data(line)
    got.calibration[read, which] = call_for_float(file.called.strtod, address + begin, address_of_data(stop))
    return end > begin and stop[0] == address + end


@exact_inner
def _unsigned(text, begin, end):
    """Parse a number; -1 if it is malformed."""
    if begin >= end or end - begin > _MOST_DIGITS:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(begin, end):
        digit = np.int64(text[i]) - _ZERO
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = 10 * value + digit
    return value


@exact_inner
def _samples(line, begin, end, count, read, got):
    """Parse the samples, which must match their number."""
    given = 0
    if count > 0:
        given = 1
        for i in range(begin, end):
            given += line[i] == _COMMA
    elif not (end == begin or (end == begin + 1 and line[begin] == 46)):  # a dot stands for nothing
        return False
    if given != count:
        return False
    if not take_room(got, read, count, count):
        return True
    place = got.places[read]
    at = begin
    for i in range(count):
        negative = at < end and line[at] == _MINUS
        at += negative
        stop = at
        while stop < end and line[stop] != _COMMA:
            stop += 1
        value = _unsigned(line, at, stop)
        if value < 0:
            return False
        if negative:
            value = -value
        if value < _LOWEST or value > _HIGHEST:
            return False
        got.scratch[place + i] = value
        at = stop + 1
    return True
