"""Jitted search for the reads in the text of FASTA and FASTQ files."""

import numpy as np

from f5py.core._turns_numba import counter, own_turns
from f5py.jit.kernel import exact_kernel

_NEWLINE, _SPACE, _TAB, _DELETE = np.uint8(10), np.uint8(32), np.uint8(9), np.uint8(127)
#: What lines of bases do not begin with.
_MARKS = (ord(">"), ord("@"), ord("+"))
_PATH_END = np.frombuffer(b".fast5", np.uint8)


@exact_kernel
def count_newlines(turn, pieces, text, bounds, counts):
    """Count the line ends in pieces of a text; piece i is ``text[bounds[i]:bounds[i + 1]]``.

    Parameters
    ----------
    text : uint8
    bounds : int64, shape (n + 1,)
    counts : int64, shape (n,)
        Filled.
    """
    for turned in own_turns(counter(turn), pieces.shape[0]):
        i = pieces[turned]
        n = 0
        for at in range(bounds[i], bounds[i + 1]):
            n += text[at] == _NEWLINE
        counts[i] = n


@exact_kernel
def list_newlines(turn, pieces, text, bounds, offsets, places):
    """Fill where the line ends of each piece are, from ``offsets[i]`` on.

    Parameters
    ----------
    turn, pieces, text, bounds
        See `count_newlines`.
    offsets : int64, shape (n + 1,)
        Of the pieces' line ends.
    places : int64, shape (offsets[-1],)
        Filled with places in `text`.
    """
    for turned in own_turns(counter(turn), pieces.shape[0]):
        i = pieces[turned]
        to = offsets[i]
        for at in range(bounds[i], bounds[i + 1]):
            if text[at] == _NEWLINE:
                places[to] = at
                to += 1


@exact_kernel
def _is_plain(text, begin, end):
    """Return whether there are only printing ASCII characters, without spaces."""
    lowest, highest = np.uint8(255), np.uint8(0)
    for at in range(begin, end):
        lowest = min(lowest, text[at])
        highest = max(highest, text[at])
    return begin >= end or (lowest > _SPACE and highest < _DELETE)


@exact_kernel
def _ends_like_a_path(text, begin, end):
    while end > begin and text[end - 1] == _SPACE:
        end -= 1
    n = _PATH_END.shape[0]
    if end - begin < n:
        return False
    differs = False
    for i in range(n):
        differs |= text[end - n + i] != _PATH_END[i]
    return not differs


@exact_kernel
def find_reads(turn, reads, text, line_ends, mark, found, is_odd):
    """Find names, comments and bases of reads that have two lines each, or four in FASTQ.

    Parameters
    ----------
    line_ends : int64
        Where the lines end; the first one begins at 0.
    mark : int
        The first character of a read: ">" or "@".
    found : tuple of arrays
        Filled: int64 for begin and end of the name, end of its line, begin and end of the bases; bool for a line that
        ends like the path of a fast5 file.
    is_odd : bool, shape (n,)
        Filled: the lines are not those of a read, or have something else than printing ASCII characters in them.
    """
    name_begin, name_end, header_end, base_begin, base_end, has_path = found
    is_fastq = mark == ord("@")
    n_lines = 4 if is_fastq else 2
    for turned in own_turns(counter(turn), reads.shape[0]):
        i = reads[turned]
        line = n_lines * i
        begin = line_ends[line - 1] + 1 if line > 0 else 0
        end = line_ends[line]
        name_begin[i], header_end[i] = begin + 1, end
        base_begin[i], base_end[i] = end + 1, line_ends[line + 1]
        is_odd[i] = True
        at = begin + 1
        while at < end and text[at] > _SPACE:
            at += 1
        name_end[i] = at
        if begin >= end or text[begin] != mark or at == begin + 1 or not _is_plain(text, begin, at):
            continue
        is_good = True
        for j in range(at, end):
            is_good &= (text[j] >= _SPACE and text[j] < _DELETE) or text[j] == _TAB
        if not is_good or not _is_plain(text, base_begin[i], base_end[i]):
            continue
        n_bases = base_end[i] - base_begin[i]
        if is_fastq:
            plus, quality = line_ends[line + 1] + 1, line_ends[line + 2] + 1
            if n_bases == 0 or plus >= quality - 1 or text[plus] != ord("+"):
                continue
            if line_ends[line + 3] - quality != n_bases or not _is_plain(text, quality, quality + n_bases):
                continue
        elif n_bases > 0 and text[base_begin[i]] in _MARKS:
            continue
        has_path[i] = _ends_like_a_path(text, at, end)
        is_odd[i] = False
