"""Kernels of `f5py.io.reads.indexed_fasta`: parsing a ``.fai``, gathering bases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.text._format_numba import NEWLINE, TAB, ZERO

_NINE = np.uint8(ord("9"))
_SPACE = np.uint8(ord(" "))
_HEADER = np.uint8(ord(">"))
_RETURN = np.uint8(ord("\r"))
#: Bytes that are looked at together.
_TOGETHER = 128
_COLUMNS = 4
_MOST_DIGITS = 18


@exact_kernel
def parse_fai(text, name_begin, name_end, columns):
    """Parse the lines of a ``.fai``; return the 1-based number of the first bad line, or 0.

    Parameters
    ----------
    text : uint8
        Ends with a line end.
    name_begin, name_end : int64, shape (n,)
    columns : int64, shape (4, n)
        Length, offset, bases and bytes of a line.
    """
    at = 0
    size = text.shape[0]
    for row in range(name_begin.shape[0]):
        name_begin[row] = at
        while at < size and text[at] != TAB and text[at] != NEWLINE:
            at += 1
        name_end[row] = at
        for column in range(_COLUMNS):
            if at >= size or text[at] != TAB:
                return row + 1
            at += 1
            begin = at
            value = np.int64(0)
            while at < size and ZERO <= text[at] <= _NINE:
                value = 10 * value + np.int64(text[at] - ZERO)
                at += 1
            if at == begin or at - begin > _MOST_DIGITS:
                return row + 1
            columns[column, row] = value
        if at >= size or text[at] != NEWLINE:
            return row + 1
        at += 1
        if columns[2, row] < (1 if columns[0, row] > 0 else 0) or columns[3, row] < columns[2, row]:
            return row + 1
    return 0


@exact_kernel
def first_wrong_row(text, names, name_begin, name_end, columns):
    """Return the first row of an index that contradicts `text`, or -1.

    The line before a sequence's first base must be its header; a line end or the text's end must follow its last base.

    Parameters
    ----------
    text : uint8
        The whole file, decompressed.
    names, name_begin, name_end : uint8, int64, int64
        Row i is named ``names[name_begin[i]:name_end[i]]``.
    columns : tuple of int64, shape (n,)
        Bases of each sequence, offset of the first one, bases and bytes of a line.
    """
    length, offset, line_bases, line_width = columns
    size = text.shape[0]
    for row in range(length.shape[0]):
        line_end = offset[row] - 1
        if line_end < 0 or line_end >= size or text[line_end] != NEWLINE:
            return row
        at = line_end
        while at > 0 and text[at - 1] != NEWLINE:
            at -= 1
        n = name_end[row] - name_begin[row]
        if text[at] != _HEADER or at + 1 + n > line_end or text[at + 1 + n] > _SPACE:
            return row
        for i in range(n):
            if text[at + 1 + i] != names[name_begin[row] + i]:
                return row
        if length[row] > 0:
            last = length[row] - 1
            end = offset[row] + last // line_bases[row] * line_width[row] + last % line_bases[row] + 1
            if end > size or (end < size and text[end] > _SPACE):
                return row
    return -1


@exact_kernel
def find_headers(queue, pieces, size, text):
    """Find the lines that begin with > in pieces of `size` bytes; also count the bytes up to the space.

    Parameters
    ----------
    text : uint8
        The whole file.

    Returns
    -------
    headers : int64
    n_spaces : int
    """
    headers = np.empty(16, np.int64)
    n = 0
    n_spaces = 0
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        begin = pieces[t] * size
        end = min(begin + size, text.shape[0])
        while begin < end:
            stop = min(begin + _TOGETHER, end)
            n_marks = np.uint8(0)
            n_here = np.uint8(0)
            some = text[begin:stop]
            for i in range(some.shape[0]):
                n_marks += np.uint8(some[i] == _HEADER)
                n_here += np.uint8(some[i] <= _SPACE)
            n_spaces += np.int64(n_here)
            if n_marks:
                for i in range(begin, stop):
                    if text[i] == _HEADER and (i == 0 or text[i - 1] == NEWLINE):
                        if n == headers.shape[0]:
                            larger = np.empty(2 * n, np.int64)
                            larger[:n] = headers
                            headers = larger
                        headers[n] = i
                        n += 1
            begin = stop
    return headers[:n], n_spaces


@exact_kernel
def list_sequences(text, headers, name_begin, name_end, columns):
    """Fill the rows of an index by the first line of each sequence. Return the bytes up to the space outside of lines.

    Returns -1 if the lines of a sequence cannot be of one length but for a shorter last one.

    Parameters
    ----------
    text : uint8
        The whole file.
    headers : int64, shape (n,)
        Ascending.
    name_begin, name_end, columns
        See `parse_fai`. Filled.
    """
    n_spaces = 0
    size = text.shape[0]
    for row in range(headers.shape[0]):
        end = headers[row + 1] if row + 1 < headers.shape[0] else size
        at = headers[row] + 1
        name_begin[row] = at
        while at < end and text[at] > _SPACE:
            at += 1
        name_end[row] = at
        while at < end and text[at] != NEWLINE:
            if text[at] == 0:
                return -1
            n_spaces += text[at] <= _SPACE
            at += 1
        begin = at + 1
        at = begin
        while at < end and text[at] > _SPACE:
            at += 1
        bases = at - begin
        if bases <= 0 or name_end[row] == name_begin[row]:
            return -1
        if at < end and text[at] == _RETURN:
            at += 1
        if at < end and text[at] != NEWLINE:
            return -1
        width = max(at - begin, bases) + 1
        gap = width - bases
        last = (end - begin) % width
        length = (end - begin) // width * bases
        if last:
            last -= gap if text[end - 1] == NEWLINE else 0
            if last <= 0 or last > bases:
                return -1
            length += last
        n_spaces += 1 + end - begin - length
        columns[0, row] = length
        columns[1, row] = begin
        columns[2, row] = bases
        columns[3, row] = width
    return n_spaces


@exact_kernel
def check_line_ends(queue, pieces, size, text, columns, first_lines, is_other):
    """Check that pieces of `size` lines of all sequences end with the bytes that the first ones end with.

    Parameters
    ----------
    columns : int64, shape (4, n)
        See `parse_fai`.
    first_lines : int64, shape (n + 1,)
        Lines of the sequences before.
    is_other : bool, shape (1,)
        Set if a line ends otherwise.
    """
    for t in claimed_indices(work_counter(queue), pieces.shape[0]):
        line = pieces[t] * size
        end = min(line + size, first_lines[first_lines.shape[0] - 1])
        row = np.searchsorted(first_lines, line, side="right") - 1
        while line < end:
            length, offset, bases, width = columns[0, row], columns[1, row], columns[2, row], columns[3, row]
            for i in range(line - first_lines[row], min(end, first_lines[row + 1]) - first_lines[row]):
                at = offset + i * width + min(bases, length - i * bases)
                for _ in range(width - bases - 1):
                    if at < text.shape[0] and text[at] != _RETURN:
                        is_other[0] = True
                    at += 1
                if at < text.shape[0] and text[at] != NEWLINE:
                    is_other[0] = True
            line = min(end, first_lines[row + 1])
            row += 1


class LinePositions(NamedTuple):
    """Positions of n pieces among the lines of a file."""

    begin: NDArray[np.int64]  # text offset of the first base
    phase: NDArray[np.int64]  # index of the first base in its line
    line_bases: NDArray[np.int64]
    line_width: NDArray[np.int64]  # bytes


@exact_kernel
def gather_bases(queue, pieces, text, lines, offsets, table, out, wrong):
    """Copy the bases of `pieces`, translated by `table`, without line ends.

    Parameters
    ----------
    text : uint8
    lines : LinePositions
    offsets : int64, shape (n + 1,)
        Of the pieces in `out`.
    table : uint8, shape (256,)
        0 for invalid characters.
    out : uint8
        Filled.
    wrong : bool, shape (n,)
        Set for pieces with an invalid character: the index is of another file.
    """
    begin, phase, line_bases, line_width = lines
    for i in claimed_indices(work_counter(queue), pieces.shape[0]):
        piece = pieces[i]
        at = begin[piece]
        column = phase[piece]
        to = offsets[piece]
        end = offsets[piece + 1]
        gap = line_width[piece] - line_bases[piece]
        lowest = np.uint8(255)
        while to < end:
            n = min(line_bases[piece] - column, end - to)
            for j in range(n):
                letter = text[at + j]
                base = table[letter]
                lowest = min(lowest, base)
                out[to + j] = base
            to += n
            at += n + gap
            column = np.int64(0)
        wrong[piece] = lowest == 0
