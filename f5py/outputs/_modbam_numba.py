"""Jitted base modification tags; see `f5py.outputs.modbam`."""

from __future__ import annotations

import math

import numpy as np

from f5py.accelerate import exact_kernel
from f5py.methylation._calls_numba import is_site
from f5py.text._format_numba import append_bytes, append_int

_COMMA = np.uint8(ord(","))
_SEMICOLON = np.uint8(ord(";"))
_MATCH, _INSERTION, _DELETION, _SKIP, _SOFT_CLIP, _HARD_CLIP, _PAD, _EQUAL, _MISMATCH = range(9)


@exact_kernel
def _probability_byte(ratio):
    """The one of 256 equal parts of [0, 1] that the logistic of `ratio` lies in."""
    if ratio >= 0.0:
        probability = 1.0 / (1.0 + math.exp(-ratio))
    else:
        odds = math.exp(ratio)
        probability = odds / (1.0 + odds)
    return np.uint8(min(math.floor(256.0 * probability), 255))


@exact_kernel
def _called_bases(
    sequence, cigar, segment, segment_start, inside, first, last, methylated, unmethylated, motif, base, positions,
    probabilities,
):  # fmt: skip
    """List the called bases in `sequence`, ascending; return their number.

    A base is called if it stands opposite to the modified base of a scored site and is `base` itself.
    """
    count = 0
    operation = 0
    reference = segment_start
    read = np.int64(0)
    for call in range(first.shape[0]):
        ratio = np.float64(methylated[call]) - np.float64(unmethylated[call])
        if np.isnan(ratio) or not inside[call]:  # not-a-number: neither hypothesis is possible, so nothing is known
            continue
        probability = _probability_byte(ratio)
        for site in range(first[call], last[call] + 1):
            if not is_site(segment, site - segment_start, motif):
                continue
            target = site + motif.offset
            while operation < cigar.shape[0]:
                kind = cigar[operation] & 15
                length = np.int64(cigar[operation] >> 4)
                if kind in (_MATCH, _EQUAL, _MISMATCH):
                    if target < reference + length:
                        break
                    reference += length
                    read += length
                elif kind in (_DELETION, _SKIP):
                    if target < reference + length:
                        break
                    reference += length
                elif kind in (_INSERTION, _SOFT_CLIP):
                    read += length
                operation += 1
            if operation == cigar.shape[0]:
                return count
            kind = cigar[operation] & 15
            if kind in (_DELETION, _SKIP):
                continue
            at = read + target - reference
            if at < sequence.shape[0] and sequence[at] == base:
                positions[count] = at
                probabilities[count] = probability
                count += 1
    return count


@exact_kernel
def fill_tags(
    wanted, sequence, sequence_start, sequence_length, cigar, cigar_offsets, reverse, reference, reference_offsets,
    reference_start, call_offsets, n_calls, inside, call_first, call_last, call_methylated, call_unmethylated, motifs,
    bases, head, text, text_offsets, probability, probability_offsets,
):  # fmt: skip
    """Write the MM text and ML bytes of every read; reads that are not `wanted` or have no called base get none.

    Parameters
    ----------
    sequence : uint8
        Sequences as the records hold them: on the reference's forward strand.
    inside : bool
        Which calls are wanted.
    motifs : pair of MotifCodes; bases : uint8, shape (2,)
        Of forward and of reverse records: the recognition site, and the letter of its modified base.
    head : uint8
        What stands before the first number.
    text, text_offsets, probability, probability_offsets
        Filled.
    """
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
                bases_of_read, cigar[cigar_offsets[read] : cigar_offsets[read + 1]],
                reference[reference_offsets[read] : reference_offsets[read + 1]], reference_start[read],
                inside[begin:end], call_first[begin:end], call_last[begin:end], call_methylated[begin:end],
                call_unmethylated[begin:end], motifs[strand], bases[strand], positions, listed,
            )  # fmt: skip
            if count > 0:
                text_at = append_bytes(text, text_at, head)
                # Tags count bases as sequenced, so reverse records are gone through from behind.
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
                    text[text_at] = _COMMA
                    text_at = append_int(text, text_at + 1, skipped)
                text[text_at] = _SEMICOLON
                text_at += 1
        probability_at += count
        text_offsets[read + 1] = text_at
        probability_offsets[read + 1] = probability_at
