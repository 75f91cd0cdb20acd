"""Index of a SLOW5 file: reading, checking and making ``.idx``.

An index is ``SLOW5IDX``, a byte 1, the file's version and zeros up to byte 64. For each record follow the length of the
read name (2 bytes), the name, and the record's file offset and size (8 bytes each). It ends with ``XDI5WOLS``.
"""

import os
import struct
from array import array
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names, NameTable
from f5py.core.offsets import gather_slices
from f5py.errors import OutputFileError, SignalError
from f5py.io.bytes.byte_pieces import read_at
from f5py.io.files.complete_file import complete_output
from f5py.io.remote import fetch_ranges
from f5py.io.signals.slow5._slow5_functions import CodecFunctions, functions
from f5py.io.signals.slow5._slow5_numba import (
    CANNOT_DECOMPRESS,
    CANNOT_READ,
    DAMAGED,
    FRAME,
    GOOD,
    NOT_FOUND,
    SHORTER,
    expand,
    free_memory,
    read_bytes,
    work_memory,
)
from f5py.jit.c_memory import address_of_data, load_int64, load_uint8, load_uint16
from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import add_to, claimed_indices, work_counter
from f5py.messages import console
from f5py.messages.console import input_warning
from f5py.threads.pool import WorkerPool

SUFFIX = ".idx"
_MAGIC, _END = b"SLOW5IDX\x01", b"XDI5WOLS"
_HEADER_SIZE = 64
#: Bytes of an entry without the name.
_ENTRY_SIZE = 18
#: End mark of a BLOW5 file.
_BINARY_END = b"5WOLB"
#: Batch sizes of a scan: records, and bytes of text.
_RECORDS, _TEXT = 1 << 14, 1 << 25


class RecordFormat(NamedTuple):
    """Record format of a SLOW5 file, from its header."""

    is_text: bool
    version: tuple[int, ...]  # three numbers
    begin: int  # offset of the first record
    record_press: int
    signal_press: int
    # sizes of the fields after the samples up to start_time: bytes, negative for elements of a list; empty without it
    start_field: NDArray[np.int64]


class RecordFile(NamedTuple):
    """An open file for compiled code."""

    descriptor: int
    called: CodecFunctions
    form: RecordFormat


class RecordIndex(NamedTuple):
    """Index of a file's n records."""

    names: NameTable
    places: NDArray[np.int64]  # shape (n,): file offsets
    sizes: NDArray[np.int64]  # shape (n,): bytes


def open_records(path: str, form: RecordFormat) -> RecordFile:
    """Open a file, which the caller closes; raise `SignalError` if that fails."""
    called = functions(path, form.record_press)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise SignalError(f"{path}: cannot be opened ({problem.strerror})") from None
    return RecordFile(descriptor, called, form)


def records_of(path: str, file: RecordFile, workers: Callable[[], WorkerPool]) -> RecordIndex:
    """Load the index, or make a missing or wrong one; raise `SignalError` if the file is damaged."""
    index = path + SUFFIX
    end = os.fstat(file.descriptor).st_size - (0 if file.form.is_text else len(_BINARY_END))
    found = _load(index, file.form.begin, end)
    if isinstance(found, RecordIndex):
        return found
    if found == "not found":
        console.info("open_slow5", f"{index}: not found; indexing {path}")
    else:
        input_warning("open_slow5", f"{index}: {found}; indexing {path} again")
    fetch_ranges(path, 0, end)
    records = _scan(path, file, end, workers())
    try:
        with complete_output(index, is_index=True) as out:
            out.write((_MAGIC + bytes(file.form.version)).ljust(_HEADER_SIZE, b"\0"))
            for row, numbers in enumerate(zip(records.places.tolist(), records.sizes.tolist(), strict=True)):
                name = records.names.encoded(row)
                out.write(struct.pack("<H", len(name)) + name + struct.pack("<2q", *numbers))
            out.write(_END)
    except OutputFileError as problem:
        reason = str(problem).removeprefix(f"{index}: cannot write: ").removesuffix("; no file was made")
        console.warning(
            "open_slow5",
            f"{index}: cannot be written ({reason}); every command will index the file again, unless it is put into a "
            "writable folder",
        )
    return records


def _load(index: str, begin: int, end: int) -> RecordIndex | str:
    """Read an index; or return why it is unusable.

    File times are unreliable after copying. Instead, the records must tile the file, and fetching compares names.
    """
    try:
        content = np.fromfile(index, np.uint8)
    except FileNotFoundError:
        return "not found"
    except OSError as problem:
        return f"cannot be read ({problem.strerror or problem})"
    if content[: len(_MAGIC)].tobytes() != _MAGIC:
        return "is not an index of a SLOW5 file"
    if content[-len(_END) :].tobytes() != _END or content.size < _HEADER_SIZE + len(_END):
        return "is truncated"
    text = content[_HEADER_SIZE : -len(_END)]
    columns = np.empty((4, text.size // _ENTRY_SIZE), np.int64)
    n = list_entries(text, *columns)
    if n < 0:
        return "is damaged"
    if n == 0 and begin < end:
        return "lists no reads"
    name_begin, name_end, places, sizes = columns[:, :n].copy()
    order = np.argsort(places, kind="stable")
    ends = np.concatenate([[begin], places[order] + sizes[order]])
    if not np.array_equal(np.append(places[order], end), ends) or (sizes <= 0).any():
        return "is not the index of this file"
    names = NameTable(text, name_begin, name_end)
    return "names a read twice" if names.n_distinct < n else RecordIndex(names, places, sizes)


def _scan(path: str, file: RecordFile, end: int, pool: WorkerPool) -> RecordIndex:
    """Scan the file for records and their names."""
    try:
        starts = _lines(path, file) if file.form.is_text else _frames(path, file, end)
    except OSError as problem:
        raise SignalError(f"{path}: cannot be read ({problem.strerror})") from None
    places, sizes = starts[:-1], np.diff(starts)
    n = len(places)
    name_begin, name_end, codes = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int32)
    texts = [np.empty(0, np.uint8)]
    n_text = 0
    scratch = np.empty(1 << 20, np.uint8)
    for first in range(0, n, _RECORDS):
        rows = np.arange(first, min(first + _RECORDS, n))
        while True:
            used = np.zeros(1, np.int64)
            pool.run(read_names, rows, file, places, sizes, used, scratch, name_begin, name_end, codes)
            if used[0] <= scratch.size:
                break
            scratch = np.empty(int(used[0]), np.uint8)
        texts.append(scratch[: used[0]].copy())
        name_begin[rows] += n_text
        name_end[rows] += n_text
        n_text += int(used[0])
        if codes[rows].any():
            break
    text = np.concatenate(texts)
    if codes.any():
        row = int(np.argmax(codes != GOOD))
        raise_for(path, file, int(codes[row]), int(places[row]))
        last = _printable(text[name_begin[row - 1] : name_end[row - 1]].tobytes())
        where = f" after read {last}, number {row}" if row else ""
        raise SignalError(f"{path}: {cause(int(codes[row]))}{where}; copy the file again")
    names = NameTable(text, name_begin, name_end)
    if names.n_distinct < n:
        rows = names.rows_of(Names(*gather_slices(text, name_begin, name_end - name_begin)))
        name = _printable(names.encoded(int(np.argmax(rows != np.arange(n)))))
        raise SignalError(
            f"{path}: holds read {name} more than once; remove the repeats, for instance with slow5tools skim and "
            "slow5tools get"
        )
    return RecordIndex(names, places, sizes)


def _frames(path: str, file: RecordFile, end: int) -> NDArray[np.int64]:
    """Return the offsets of the records of a BLOW5 file, and of its end mark."""
    starts = array("q", [file.form.begin])
    while (at := starts[-1]) < end:
        frame = read_at(file.descriptor, FRAME, at)
        size = int.from_bytes(frame, "little", signed=True)
        if len(frame) < FRAME or not 0 <= size <= end - at - FRAME:
            break
        starts.append(at + FRAME + size)
    if read_at(file.descriptor, len(_BINARY_END) + 1, at) != _BINARY_END:
        raise SignalError(f"{path}: is truncated or damaged after read number {len(starts) - 1}; copy the file again")
    return np.array(starts)


def _lines(path: str, file: RecordFile) -> NDArray[np.int64]:
    """Return the offsets of the lines after the header of a SLOW5 text file, and of its end."""
    starts = [np.array([file.form.begin])]
    at = file.form.begin
    while chunk := os.pread(file.descriptor, _TEXT, at):
        starts.append(at + 1 + np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")))
        at += len(chunk)
    found = np.concatenate(starts)
    if found[-1] != at:
        raise SignalError(f"{path}: is truncated after read number {len(found) - 1}; copy the file again")
    return found


def raise_for(path: str, file: RecordFile, code: int, place: int) -> None:
    """Raise `SignalError` for a code that concerns the file or the machine, not a record."""
    if code == CANNOT_READ:
        reason = "input/output error"
        try:
            os.pread(file.descriptor, 1, place)
        except OSError as problem:
            reason = problem.strerror or reason
        raise SignalError(f"{path}: cannot be read ({reason})")
    if code == SHORTER:
        raise SignalError(f"{path}: became shorter while it was read; copy the file again, and its index")


def cause(code: int) -> str:
    """Return the reason for a code of a read, as a phrase."""
    if code == NOT_FOUND:
        return "is not in this file"
    return "cannot be decompressed" if code == CANNOT_DECOMPRESS else "is damaged"


def _printable(name: bytes) -> str:
    """Return a read name, perhaps of a damaged record, with printable characters."""
    text = name.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


_TAB = 9


@exact_kernel
def list_entries(text, name_begin, name_end, places, sizes):
    """Fill the entries of an index; return their number, -1 if it is malformed.

    Parameters
    ----------
    text : uint8
        The index without header and end mark.
    """
    address = address_of_data(text)
    at, n = 0, 0
    while at + _ENTRY_SIZE <= text.shape[0]:
        name_begin[n] = at + 2
        name_end[n] = at + 2 + text[at] + 256 * text[at + 1]
        at = name_end[n] + _ENTRY_SIZE - 2
        if at > text.shape[0]:
            return -1
        places[n] = load_int64(address + at - 16)
        sizes[n] = load_int64(address + at - 8)
        n += 1
    return n if at == text.shape[0] else -1


@exact_kernel
def read_names(queue, rows, file, places, sizes, used, text, name_begin, name_end, codes):
    """Copy the names of records `rows` to a shared text; names that do not fit begin at -1.

    Parameters
    ----------
    used : int64, shape (1,)
        Bytes of the text needed so far; may exceed its size.
    """
    buffer = np.empty(1 << 16, np.uint8)
    work = work_memory()
    for i in claimed_indices(work_counter(queue), rows.shape[0]):
        row = rows[i]
        if sizes[row] > buffer.shape[0]:
            buffer = np.empty(sizes[row] + sizes[row] // 4, np.uint8)
        code = read_bytes(file, places[row], sizes[row], buffer)
        size, address = np.int64(0), address_of_data(buffer)
        if code == GOOD and file.form.is_text != 0:
            while size < sizes[row] and buffer[size] != _TAB:
                size += 1
            if size >= min(sizes[row], 1 << 16):
                code = DAMAGED
        elif code == GOOD:
            code = expand(file, buffer, sizes[row], work)
            if code == GOOD:
                size, address = np.int64(load_uint16(work[0])), work[0] + 2
        codes[row] = code
        if code == GOOD:
            begin = add_to(used, size)
            name_begin[row], name_end[row] = begin, begin + size
            if begin + size > text.shape[0]:
                name_begin[row] = -1
            else:
                for j in range(size):
                    text[begin + j] = load_uint8(address + j)
    free_memory(file, work)
