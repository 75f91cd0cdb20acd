"""Kernels of base modification tags; see `f5py.outputs.calls.modbam`."""

import math

import numpy as np

from f5py.core.cigar import ALIGNED, OF_RECORD, OF_REFERENCE
from f5py.io.bam._bam_numba import (
    BIN,
    N_BASES,
    N_CIGAR,
    NAME_LENGTH,
    POSITION,
    sequence_begins,
    signed32,
    size_of_value,
    tags_begin,
    unsigned16,
)
from f5py.io.bam.record_layout import FIXED_SIZE
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.methylation._groups_numba import is_site
from f5py.outputs.calls.modbam_arrays import AlignedSequence, CalledBases, CallsOfRead
from f5py.text._format_numba import COMMA, append_bytes, append_int

_SEMICOLON = np.uint8(ord(";"))
#: Letters of the four-bit codes of BAM, and the codes of letters.
_LETTERS = np.frombuffer(b"=ACMGRSVTWYHKDBN", np.uint8)
_CODES = np.full(256, 15, np.uint8)
_CODES[_LETTERS] = np.arange(16)
_REFERENCE_QUALITY = np.uint8(30)
_TAGS, _MARKING_TAGS, _TAGS_OF_THE_READ = (
    tuple(np.uint16(name[0] + 256 * name[1]) for name in names)
    for names in (
        (b"MM", b"ML", b"MN", b"Mm", b"Ml"),
        (b"MM", b"ML", b"Mm", b"Ml"),  # a length alone says nothing about modifications
        (b"RG", b"BC", b"HP", b"PS", b"PC"),  # these stay true when a record shows the reference's bases
    )
)
_M, _L, _UPPER_N, _TEXT, _ARRAY, _BYTE, _INTEGER = (np.uint8(letter) for letter in b"MLNZBCi")


@exact_inner
def _probability_byte(ratio):
    """Quantize the logistic of `ratio` to 256 equal intervals of [0, 1]."""
    if ratio >= 0.0:
        probability = 1.0 / (1.0 + math.exp(-ratio))
    else:
        odds = math.exp(ratio)
        probability = odds / (1.0 + odds)
    return np.uint8(min(math.floor(256.0 * probability), 255))


@exact_inner
def _called_bases(read, calls, motif, odds, base, out):
    """List the called bases of `sequence`, ascending; return their number.

    A base is called if it is aligned to the modified base of a scored site and equals `base`.
    """
    sequence, cigar, segment, segment_start = read
    inside, first, last, methylated, unmethylated = calls
    calibration, prior_odds = odds
    positions, probabilities = out
    count = 0
    operation = 0
    reference = segment_start
    read = np.int64(0)
    for call in range(first.shape[0]):
        ratio = np.float64(methylated[call]) - np.float64(unmethylated[call])
        if np.isnan(ratio) or not inside[call]:  # not-a-number: neither hypothesis is possible, so nothing is known
            continue
        probability = _probability_byte(ratio * calibration + prior_odds)
        for site in range(first[call], last[call] + 1):
            if not is_site(segment, site - segment_start, motif):
                continue
            target = site + motif.offset
            while operation < cigar.shape[0]:
                kind = cigar[operation] & 15
                length = np.int64(cigar[operation] >> 4)
                if OF_REFERENCE >> kind & 1:
                    if target < reference + length:
                        break
                    reference += length
                if OF_RECORD >> kind & 1:
                    read += length
                operation += 1
            if operation == cigar.shape[0]:
                return count
            if not ALIGNED >> (cigar[operation] & 15) & 1:
                continue
            at = read + target - reference
            if at < sequence.shape[0] and sequence[at] == base:
                positions[count] = at
                probabilities[count] = probability
                count += 1
    return count


@exact_kernel
def fill_tags(wanted, sequences, alignments, calls, inside, modification, odds, out):
    """Write MM text and ML bytes of every read in the mask `wanted` with called bases.

    Parameters
    ----------
    wanted : bool, shape (n,)
    sequences : Sequences
    alignments, calls
        See `f5py.core.batch`.
    inside : bool
        Mask of the calls.
    out : TagTexts
        Filled.
    """
    sequence, sequence_start, sequence_length, cigar, cigar_offsets = sequences
    motifs, bases, head = modification
    text, text_offsets, probability, probability_offsets = out
    _, reference_start, reverse, _, _, reference, reference_offsets = alignments
    call_offsets, n_calls, call_first, call_last, _, call_methylated, call_unmethylated = calls
    positions = np.empty(probability.shape[0], np.int64)
    text_at = 0
    probability_at = 0
    for read in range(wanted.shape[0]):
        count = 0
        if wanted[read]:
            strand = 1 if reverse[read] else 0
            bases_of_read = sequence[sequence_start[read] : sequence_start[read] + sequence_length[read]]
            begin = call_offsets[read]
            end = begin + n_calls[read]
            listed = probability[probability_at:]
            count = _called_bases(
                AlignedSequence(
                    bases_of_read, cigar[cigar_offsets[read] : cigar_offsets[read + 1]],
                    reference[reference_offsets[read] : reference_offsets[read + 1]], reference_start[read],
                ),
                CallsOfRead(
                    inside[begin:end], call_first[begin:end], call_last[begin:end], call_methylated[begin:end],
                    call_unmethylated[begin:end],
                ),
                motifs[strand], odds, bases[strand], CalledBases(positions, listed),
            )  # fmt: skip
            if count > 0:
                text_at = append_bytes(text, text_at, head)
                # Tags count bases as sequenced, so reverse records are gone through from the end.
                if reverse[read]:
                    for i in range(count // 2):
                        listed[i], listed[count - 1 - i] = listed[count - 1 - i], listed[i]
                step = -1 if reverse[read] else 1
                at = bases_of_read.shape[0] - 1 if reverse[read] else 0
                for i in range(count):
                    target = positions[count - 1 - i] if reverse[read] else positions[i]
                    skipped = 0
                    while at != target:
                        if bases_of_read[at] == bases[strand]:
                            skipped += 1
                        at += step
                    at += step
                    text[text_at] = COMMA
                    text_at = append_int(text, text_at + 1, skipped)
                text[text_at] = _SEMICOLON
                text_at += 1
        probability_at += count
        text_offsets[read + 1] = text_at
        probability_offsets[read + 1] = probability_at


@exact_kernel
def sequence_lengths(data, starts, read, wanted, length):
    """Fill the number of bases in the record of every wanted read; others stay.

    Parameters
    ----------
    data, starts, read
        See `f5py.io.bam.bam_records.RawRecords`.
    wanted : bool, shape (n_reads,)
    length : int64, shape (n_reads,)
        Filled.
    """
    for i in range(read.shape[0]):
        if read[i] >= 0 and wanted[read[i]]:
            length[read[i]] = signed32(data, starts[i] + N_BASES)


@exact_kernel
def decode_sequences(data, starts, read, wanted, sequence, offsets):
    """Decode the letters of the wanted reads' records.

    Parameters
    ----------
    data, starts, read, wanted
        See `sequence_lengths`.
    sequence : uint8, shape (offsets[-1],)
        Filled.
    offsets : int64, shape (n_reads + 1,)
    """
    for i in range(read.shape[0]):
        if read[i] >= 0 and wanted[read[i]]:
            packed = sequence_begins(data, starts[i])
            to = offsets[read[i]]
            for j in range(offsets[read[i] + 1] - to):
                pair = np.int64(data[packed + (j >> 1)])
                sequence[to + j] = _LETTERS[pair & 15 if j & 1 else pair >> 4]


@exact_inner
def _is_one_of(data, at, names):
    name = unsigned16(data, at)
    found = False
    for other in names:
        found = found or name == other
    return found


@exact_inner
def _tags_of(tags, read):
    """Return the bytes of a read's new tags."""
    n_calls = tags.probability_offsets[read + 1] - tags.probability_offsets[read]
    if n_calls == 0:
        return np.int64(0)
    text = tags.text_offsets[read + 1] - tags.text_offsets[read]
    return (3 + text + 1) + (8 + n_calls) + 7


@exact_kernel
def tagged_sizes(data, starts, read, tags, replace, shows_reference, has_other, size):
    """Compute the size of each tagged record, and mark records that keep other programs' modification tags.

    Parameters
    ----------
    data, starts, read
        See `f5py.io.bam.bam_records.RawRecords`.
    tags : f5py.outputs.calls.tag_merging.ModificationTags
    replace, shows_reference : bool
        Drop tags of other programs; replace the read's bases by the reference's.
    has_other : bool, shape (n,)
        Filled.
    size : int64, shape (n,)
        Filled, in bytes.
    """
    for i in range(read.shape[0]):
        at = starts[i]
        end = starts[i + 1]
        dropped = np.int64(0)
        kept = np.int64(0)
        has_other[i] = False
        tag = tags_begin(data, at)
        while tag + 3 <= end:
            n = size_of_value(data, tag + 3, data[tag + 2], end)
            if n < 0 or tag + 3 + n > end:
                break
            if _is_one_of(data, tag, _TAGS):
                dropped += 3 + n
            if _is_one_of(data, tag, _MARKING_TAGS):
                has_other[i] = True
            if _is_one_of(data, tag, _TAGS_OF_THE_READ):
                kept += 3 + n
            tag += 3 + n
        new = np.int64(0)
        if read[i] >= 0 and (replace or not has_other[i]):
            new = _tags_of(tags, read[i])
        if new == 0:
            size[i] = end - at
            continue
        has_other[i] = False
        if shows_reference:
            n_bases = tags.length[read[i]]
            size[i] = FIXED_SIZE + np.int64(data[at + NAME_LENGTH]) + 4 + (n_bases + 1) // 2 + n_bases + kept + new
        else:
            size[i] = end - at - dropped + new


@exact_inner
def _put32(out, at, value):
    for i in range(4):
        out[at + i] = np.uint8((value >> (8 * i)) & 255)
    return at + 4


@exact_inner
def _put_tag_name(out, at, first, second, kind):
    out[at] = first
    out[at + 1] = second
    out[at + 2] = kind
    return at + 3


@exact_inner
def _put_tags(out, at, tags, read):
    """Write MM, ML and MN of a read; return the end."""
    at = _put_tag_name(out, at, _M, _M, _TEXT)
    for i in range(tags.text_offsets[read], tags.text_offsets[read + 1]):
        out[at] = tags.text[i]
        at += 1
    out[at] = 0
    at = _put_tag_name(out, at + 1, _M, _L, _ARRAY)
    first = tags.probability_offsets[read]
    n_calls = tags.probability_offsets[read + 1] - first
    out[at] = _BYTE
    at = _put32(out, at + 1, n_calls)
    for i in range(n_calls):
        out[at + i] = tags.probability[first + i]
    at = _put_tag_name(out, at + n_calls, _M, _UPPER_N, _INTEGER)
    return _put32(out, at, tags.length[read])


@exact_inner
def _bin(begin, end):
    """Compute the BAM bin (SAM specification, section 5.3) of a 0-based, half-open interval."""
    end -= 1
    for level in range(5):
        shift = 14 + 3 * level
        if begin >> shift == end >> shift:
            return ((1 << (15 - 3 * level)) - 1) // 7 + (begin >> shift)
    return np.int64(0)


@exact_inner
def _copy(data, begin, end, out, at):
    for i in range(end - begin):
        out[at + i] = data[begin + i]
    return at + end - begin


@exact_inner
def _copy_tags(data, begin, end, out, at, names, wanted):
    """Copy the tags in `names`, or all others."""
    while begin + 3 <= end:
        n = size_of_value(data, begin + 3, data[begin + 2], end)
        if n < 0 or begin + 3 + n > end:
            break
        if _is_one_of(data, begin, names) == wanted:
            at = _copy(data, begin, begin + 3 + n, out, at)
        begin += 3 + n
    return at


@exact_inner
def _put_reference(data, start, letters, out, at):
    """Write a record up to its tags with the reference's bases, without gaps."""
    n_bases = letters.shape[0]
    name_end = start + FIXED_SIZE + np.int64(data[start + NAME_LENGTH])
    position = signed32(data, start + POSITION)
    begin = at
    at = _copy(data, start, name_end, out, at)
    number = _bin(position, position + n_bases)
    out[begin + BIN] = np.uint8(number & 255)
    out[begin + BIN + 1] = np.uint8(number >> 8)
    out[begin + N_CIGAR] = 1
    out[begin + N_CIGAR + 1] = 0
    _put32(out, begin + N_BASES, n_bases)
    at = _put32(out, at, n_bases << 4)
    for j in range(0, n_bases, 2):
        second = _CODES[letters[j + 1]] if j + 1 < n_bases else np.uint8(0)
        out[at] = _CODES[letters[j]] << 4 | second
        at += 1
    for j in range(n_bases):
        out[at + j] = _REFERENCE_QUALITY
    return at + n_bases


@exact_kernel
def tag_records(data, starts, read, tags, replace, shown, out, offsets):
    """Write all records, with their new tags, to ``out[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    data, starts, read, tags, replace
        See `tagged_sizes`.
    out : uint8, shape (offsets[-1],)
        Filled.
    offsets : int64, shape (n + 1,)
    """
    shows_reference, has_other, reference, reference_offsets = shown
    for i in range(read.shape[0]):
        start = starts[i]
        end = starts[i + 1]
        at = offsets[i]
        if read[i] < 0 or has_other[i] or _tags_of(tags, read[i]) == 0:
            _copy(data, start, end, out, at)
            continue
        begin = tags_begin(data, start)
        if shows_reference:
            first = reference_offsets[read[i]]
            at = _put_reference(data, start, reference[first : first + tags.length[read[i]]], out, at)
            at = _copy_tags(data, begin, end, out, at, _TAGS_OF_THE_READ, True)
        else:
            at = _copy(data, start, begin, out, at)
            at = _copy_tags(data, begin, end, out, at, _TAGS, False)
        _put_tags(out, at, tags, read[i])
        _put32(out, offsets[i], offsets[i + 1] - offsets[i] - 4)
