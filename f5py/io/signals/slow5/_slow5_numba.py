"""Kernels that read records, binary or text, of a SLOW5 file.

A binary record is its size (8 bytes) and, compressed or not: length of the read name (2 bytes), name, read group (4),
digitisation, offset, range and sampling rate (8 each), a length (8), the samples, and further fields, of which only the
start of the read is used. The length counts samples, or bytes if they are compressed. Lengths are checked against the
bytes present.
"""

import numpy as np

from f5py.io.signals.slow5._slow5_functions import NO_PRESS, ZSTD
from f5py.io.signals.slow5._svb_numba import svb_size, take_ex_zd, take_room
from f5py.jit.c_memory import (
    address_of_data,
    call_for_float,
    call_with_five,
    call_with_four,
    call_with_none,
    call_with_one,
    call_with_two,
    copy_from,
    load_float64,
    load_int64,
    load_uint8,
    load_uint16,
    load_uint32,
)
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import add_to, claimed_indices, work_counter

#: Codes of records; `CANNOT_READ` and `SHORTER` concern the file or the machine, `NO_ROOM` concerns `Got`.
GOOD, NOT_FOUND, DAMAGED, CANNOT_DECOMPRESS, OTHER_NAME, CANNOT_READ, SHORTER, NO_ROOM = range(8)
#: Sample compressions, numbered as in headers.
SVB_ZD, EX_ZD = 1, 2
#: Z_BUF_ERROR of zlib's ``uncompress``, and about deflate's highest ratio.
_MORE_ROOM = 0xFFFFFFFB
_MOST_SHRINKING = 1 << 11
_FIRST_ROOM = 1 << 12
#: Records with a higher ratio are not decompressed in place.
_MOST_DENSE = 16
#: Limit of a record's size, which zstd's header may misstate.
_MOST_CONTENTS = 1 << 36
#: Bytes before a binary record's contents, and of the fields between the name and the samples.
FRAME = 8
_FIXED = 44
_N_CALIBRATION = 4
_FIRST_BUFFER = 1 << 16
#: Indices of `work_memory`.
AT, _SIZE, _MEMORY, _ROOM, _CONTEXT = range(5)
_TRIES = 4


@exact_inner
def read_bytes(file, place, size, buffer):
    """Fill the first `size` elements of `buffer` from a file offset; return a code."""
    address = address_of_data(buffer)
    done = 0
    failed = 0
    while done < size:
        n = call_with_four(file.called.pread, file.descriptor, address + done, size - done, place + done)
        if n == 0:
            return SHORTER
        if n < 0:  # perhaps interrupted by a signal
            failed += 1
            if failed > _TRIES:
                return CANNOT_READ
        else:
            done += n
    return GOOD


@exact_inner
def work_memory():
    """Allocate the state of `expand`: address and size of contents and of memory, a context."""
    return np.zeros(_CONTEXT + 1, np.int64)


@exact_inner
def free_memory(file, work):
    """Free the memory and context of `expand`."""
    if work[_MEMORY] != 0:
        call_with_one(file.called.free, work[_MEMORY])
    if work[_CONTEXT] != 0:
        call_with_one(file.called.zstd_free, work[_CONTEXT])
    work[:] = 0


@exact_inner
def _has_room(file, n, work):
    """Ensure memory for n bytes; return whether it was available."""
    if n >= work[_ROOM]:
        call_with_one(file.called.free, work[_MEMORY])
        size = n + n // 4 + 1
        work[_MEMORY] = call_with_two(file.called.realloc, 0, size)
        work[_ROOM] = size if work[_MEMORY] != 0 else 0
    return work[_MEMORY] != 0


@exact_inner
def decompress_zstd(file, address, size, n, work):
    """Decompress to n bytes at the first address of `work`; return the code."""
    if work[_CONTEXT] == 0:
        work[_CONTEXT] = call_with_none(file.called.zstd_create)
    work[_SIZE] = n
    decompress = file.called.zstd_decompress
    if work[_CONTEXT] == 0 or call_with_five(decompress, work[_CONTEXT], work[AT], n, address, size) != n:
        return CANNOT_DECOMPRESS
    return GOOD


@exact_inner
def _unpack_zstd(file, address, size, work, got):
    """Decompress into `got.scratch` if given, else into memory; return the code."""
    n = call_with_two(file.called.zstd_size, address, size)  # negative: not known, or no zstd
    if n < 0 or n > _MOST_CONTENTS:
        return CANNOT_DECOMPRESS
    if got is not None and n <= _MOST_DENSE * size:
        half = (n + 1) // 2
        place = add_to(got.used, half)
        if place + half > got.scratch.shape[0]:
            return NO_ROOM
        work[AT] = address_of_data(got.scratch) + 2 * place
    elif _has_room(file, n, work):
        work[AT] = work[_MEMORY]
    else:
        return CANNOT_DECOMPRESS
    return decompress_zstd(file, address, size, n, work)


@exact_inner
def _unpack_zlib(file, address, size, work):
    """Decompress into memory; return the code."""
    room = _FIRST_ROOM + 4 * size
    while room <= _FIRST_ROOM + 4 * _MOST_SHRINKING * size and _has_room(file, room, work):
        work[_SIZE] = work[_ROOM]
        code = (
            call_with_four(file.called.uncompress, work[_MEMORY], address_of_data(work) + 8 * _SIZE, address, size)
            & 0xFFFFFFFF
        )
        if code != _MORE_ROOM:
            work[AT] = work[_MEMORY]
            return GOOD if code == 0 else CANNOT_DECOMPRESS
        room = 4 * work[_ROOM]
    return CANNOT_DECOMPRESS


@exact_inner
def expand(file, buffer, size, work, got=None):
    """Decompress a framed record in `buffer`; return the code.

    `work` comes from `work_memory` and gets address and size of the contents, which are in `got.scratch` if that is
    given and they are not too large.
    """
    address = address_of_data(buffer) + FRAME
    work[AT], work[_SIZE] = address, size - FRAME
    if size < FRAME or load_int64(address - FRAME) != size - FRAME:
        return DAMAGED
    if file.form.record_press != NO_PRESS:
        if file.form.record_press == ZSTD:
            code = _unpack_zstd(file, address, size - FRAME, work, got)
        else:
            code = _unpack_zlib(file, address, size - FRAME, work)
        if code == CANNOT_DECOMPRESS:
            free_memory(file, work)  # may be huge for a damaged record
        if code != GOOD:
            return code
    if work[_SIZE] < 2 or 2 + np.int64(load_uint16(work[AT])) + _FIXED > work[_SIZE]:
        return DAMAGED
    return GOOD


@exact_inner
def _bytes_of(file, place, size, buffer):
    """Read a record into `buffer`, enlarged if needed; return the code and the buffer."""
    if size >= buffer.shape[0]:
        buffer = np.empty(size + size // 4, np.uint8)
    return read_bytes(file, place, size, buffer), buffer


@exact_kernel
def read_records(queue, reads, names, name_offsets, places, sizes, file, got):
    """Read the binary records of `reads` and copy their samples to a shared array.

    Parameters
    ----------
    places, sizes : int64, shape (n_reads,)
        File offsets and bytes of the reads' records.
    file : f5py.io.signals.slow5._slow5_index.RecordFile
    got : f5py.io.signals.slow5.reader.DecodedRecords
        Filled.
    """
    buffer = np.empty(_FIRST_BUFFER, np.uint8)
    work = work_memory()
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        code, buffer = _bytes_of(file, places[read], sizes[read], buffer)
        if code == GOOD:
            code = expand(file, buffer, sizes[read], work, got)
            if code == NO_ROOM:
                got.places[read] = -1
                code = GOOD
            elif code == GOOD:
                code = _take(file, work, names, name_offsets[read], name_offsets[read + 1], read, got)
            if code == GOOD and got.places[read] >= 0 and file.form.start_field.shape[0] > 0:
                _take_start(file, work, read, got)
        got.codes[read] = code
    free_memory(file, work)


@exact_kernel
def read_lines(queue, reads, names, name_offsets, places, sizes, file, got):
    """Read the text records of `reads`; separate from `read_records` to keep that small.

    Parameters
    ----------
    places, sizes, file, got
        See `read_records`.
    """
    buffer = np.empty(_FIRST_BUFFER, np.uint8)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[i]
        size = sizes[read]
        code, buffer = _bytes_of(file, places[read], size, buffer)
        if code == GOOD and not parse_text(
            file, buffer, size, names, name_offsets[read], name_offsets[read + 1], read, got
        ):
            code = DAMAGED
        got.codes[read] = code


@exact_inner
def _take(file, work, names, begin, end, read, got):
    """Decode an expanded record."""
    address = work[AT]
    name_size = np.int64(load_uint16(address))
    if name_size != end - begin:
        return OTHER_NAME
    for j in range(name_size):
        if load_uint8(address + 2 + j) != names[begin + j]:
            return OTHER_NAME
    fixed = address + 2 + name_size
    left = work[_SIZE] - 2 - name_size - _FIXED
    got.groups[read] = load_uint32(fixed)
    for j in range(_N_CALIBRATION):
        got.calibration[read, j] = load_float64(fixed + 4 + 8 * j)
    length = load_int64(fixed + _FIXED - 8)
    signal = fixed + _FIXED
    if length < 0:
        return DAMAGED
    if file.form.signal_press == NO_PRESS:
        if length > left // 2:
            return DAMAGED
        _store(got, read, signal, length)
        return GOOD
    if length > left:
        return DAMAGED
    if length == 0:
        _store(got, read, signal, 0)
        return GOOD
    if file.form.signal_press == EX_ZD:
        return GOOD if take_ex_zd(signal, length, read, got) else DAMAGED
    if file.form.signal_press != SVB_ZD:
        return CANNOT_DECOMPRESS
    if length < 4 or svb_size(signal + 4, length - 4, np.int64(load_uint32(signal))) != length - 4:
        return DAMAGED
    n = np.int64(load_uint32(signal))
    place = signal + 4 - address_of_data(got.scratch)
    if 0 <= place < 2 * got.scratch.shape[0]:  # decompressed in place
        got.n_samples[read], got.places[read], got.is_packed[read] = n, place, True
        return GOOD
    size = (length - 4 + 1) // 2
    if take_room(got, read, n, size) and size > 0:
        place = got.places[read]
        copy_from(got.scratch[place : place + size], signal + 4, length - 4)
        got.places[read], got.is_packed[read] = 2 * place, True
    return GOOD


@exact_inner
def _take_start(file, work, read, got):
    """Decode the start of a read; unknown if the fields are missing."""
    last = work[AT] + work[_SIZE]
    at = work[AT] + 2 + np.int64(load_uint16(work[AT])) + _FIXED
    length = load_int64(at - 8)  # has been checked
    at += 2 * length if file.form.signal_press == NO_PRESS else length
    for j in range(file.form.start_field.shape[0]):
        size = file.form.start_field[j]
        if size < 0:
            if last - at < 8:
                return
            n = load_int64(at)
            at += 8
            if n < 0 or n > last - at:
                return
            size = n * -size
        if size > last - at:
            return
        if j == file.form.start_field.shape[0] - 1:
            start = load_int64(at)
            if start >= 0:  # -1 stands for none
                got.calibration[read, _N_CALIBRATION] = start
        at += size


@exact_inner
def _store(got, read, address, n):
    if take_room(got, read, n, n) and n > 0:
        place = got.places[read]
        copy_from(got.scratch[place : place + n], address, 2 * n)


_TAB, _NEWLINE, _COMMA, _MINUS, _DOT, _ZERO = 9, 10, 44, 45, 46, 48
_N_FIELDS = 8
_MOST_DIGITS = 18
_LOWEST, _HIGHEST = -(1 << 15), (1 << 15) - 1


@exact_inner
def parse_text(file, line, size, names, begin, end, read, got):
    """Parse a read's line; return whether it is sound and of read ``names[begin:end]``.

    Fields: name, read group, digitisation, offset, range, sampling rate, number of samples, comma-separated samples,
    and further ones, of which only the start of the read is used.
    """
    n_wanted = _N_FIELDS + file.form.start_field.shape[0]
    fields = np.zeros(n_wanted + 1, np.int64)  # offsets
    if size < 1 or line[size - 1] != _NEWLINE:
        return False
    n = 1
    for i in range(size):
        if line[i] == _TAB or i == size - 1:
            fields[n] = i + 1
            n += 1
            if n > n_wanted:
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
    if _N_FIELDS < n_wanted < n:
        start = _unsigned(line, fields[n_wanted - 1], fields[n_wanted] - 1)
        if start >= 0:  # a dot means none
            got.calibration[read, _N_CALIBRATION] = start
    return _samples(line, fields[7], fields[8] - 1, count, read, got)


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
    if count == 0:
        return end == begin or (end == begin + 1 and line[begin] == _DOT)
    if count > end - begin:
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
    return at == end + 1
