"""Jitted parsing of FASTA and FASTQ, and copies of BAM records' qualities and tags."""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

from f5py.io.bam._bam_numba import (
    FLAGS,
    IS_REVERSE,
    N_BASES,
    sequence_begins,
    signed32,
    tag_end,
    tags_begin,
    unsigned16,
)
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.text._format_numba import append_bytes

#: Problems of a file.
SOUND, NOT_A_RECORD, CUT, NO_NAME, NO_TEXT = range(5)
#: Columns of a read's row: name, comment, numbers of bases and qualities, offset of the record.
NAME, NAME_END, COMMENT, COMMENT_END, BASES, QUALITIES, BEGIN = range(7)
N_COLUMNS = 7
_NEWLINE, _TAB, _RETURN, _SPACE, _AT, _GREATER, _PLUS = 10, 9, 13, 32, 64, 62, 43
#: Bytes copied at a time.
_TOGETHER = 64


@exact_inner
def _copy_text(text, at, end, out, to):
    """Copy blocks of bytes above the space from `at` on; return their number."""
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
    """Parse whole records at the start of ``text[:n]``, up to `max_bases`.

    Returns the numbers of reads and bases, the bytes of whole records, and the problem after these.

    Parameters
    ----------
    is_last : bool
        The file ends after `n` bytes.
    letters, qualities : uint8, shape (>= n,)
        Filled; for a read without qualities only the first, with 0.
    rows : int64, shape (any, N_COLUMNS)
        Filled, one row per read.
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
            is_good = is_good and text[at] != 0  # comments may have any other byte
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
    """Copy the qualities of BAM records as letters in read orientation; 0 without qualities.

    Parameters
    ----------
    offsets : int64, shape (n + 1,)
        Of the reads' bases.
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
    """Copy the tags of BAM records except those in `dropped`; return their number of bytes.

    Parameters
    ----------
    dropped : uint16
        Encoded tag names.
    """
    n = 0
    offsets[0] = 0
    for i in range(chosen.shape[0]):
        at = tags_begin(data, starts[chosen[i]])
        end = starts[chosen[i] + 1]
        stop = tag_end(data, at, end)
        while stop > 0:
            keep = True
            for d in range(dropped.shape[0]):
                keep = keep and dropped[d] != unsigned16(data, at)
            if keep:
                n = append_bytes(out, n, data[at:stop])
            at, stop = stop, tag_end(data, stop, end)
        offsets[i + 1] = n
    return n
