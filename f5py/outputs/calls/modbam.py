"""Methylation calls as base modification tags of the alignment records (modBAM).

Tags MM, ML and MN are those of the SAM optional fields specification. Bases that are not listed have unknown status
(``?``): f5py calls only sites of its motif, and not all of those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif, reverse_complement
from f5py.core.offsets import offsets_of
from f5py.core.windows import Windows
from f5py.io.bam.bam_records import RawRecords
from f5py.io.bam.joined_bam import JoinedBam
from f5py.messages import console
from f5py.outputs.calls.tag_merging import ModificationTags, no_tags, tags_of_motifs, tags_with_those_of_records
from f5py.site_frequencies.site_counts import calls_inside

if TYPE_CHECKING:
    import pysam

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
from f5py.text._format_numba import COMMA, append_bytes, append_int

#: What the sequence of a written record is: the read's, or the reference's under it.
STYLES = ("read", "reference")
#: A comma and the digits of a 32-bit number.
_MAX_STEP = 11


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
def _called_bases(
    sequence, cigar, segment, segment_start, calls, begin, end, inside, motif, odds, base, positions, probabilities
):
    """List the called bases of `sequence`, ascending; return their number.

    A base is called if it is aligned to the modified base of a scored site and equals `base`.
    """
    calibration, prior_odds = odds
    first, last = calls.first, calls.last
    count = 0
    operation = 0
    reference = segment_start
    read = np.int64(0)
    for call in range(begin, end):
        ratio = np.float64(calls.methylated[call]) - np.float64(calls.unmethylated[call])
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
    sequences : tuple
        Letters on the reference's forward strand as stored in the records, start and length of each sequence, and
        CIGARs with their offsets.
    alignments, calls
        See `f5py.core.batch`.
    inside : bool
        Mask of the calls.
    modification : tuple
        Codes of the site, letters of the modified base, both for forward and for reverse records, and the start of MM.
    odds : pair of float
        Factor of the ratios, and the summand.
    out : tuple
        Texts, uint8, of MM, with their offsets, and of ML; filled.
    """
    sequence, sequence_start, sequence_length, cigar, cigar_offsets = sequences
    motifs, bases, head = modification
    text, text_offsets, probability, probability_offsets = out
    _, reference_start, reverse, _, _, reference, reference_offsets = alignments
    call_offsets, n_calls = calls.offsets, calls.n
    positions = np.empty(probability.shape[0], np.int64)
    text_at = 0
    probability_at = 0
    for read in range(wanted.shape[0]):
        count = 0
        if wanted[read]:
            strand = 1 if reverse[read] else 0
            bases_of_read = sequence[sequence_start[read] : sequence_start[read] + sequence_length[read]]
            listed = probability[probability_at:]
            count = _called_bases(
                bases_of_read, cigar[cigar_offsets[read] : cigar_offsets[read + 1]],
                reference[reference_offsets[read] : reference_offsets[read + 1]], reference_start[read], calls,
                call_offsets[read], call_offsets[read] + n_calls[read], inside, motifs[strand], odds, bases[strand],
                positions, listed,
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
    shown : tuple
        Whether to show reference bases, the records that keep their tags, and the reference with its offsets.
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


def modification_tags(
    batch: ReadBatch, motif: Motif, style: str, windows: Windows | None = None, prior: float = 0.5,
    calibration: float = 1.0,
) -> ModificationTags:  # fmt: skip
    """Make the base modification tags of a batch with calls.

    Every site of a scored group has the group's probability: the logistic of the log-likelihood ratio times
    `calibration` plus the log-odds of `prior`. In read style a call belongs to the base aligned to the site's modified
    base on the record's strand, and is dropped without such a base or if it differs. Hard-clipped bases have no calls.

    Parameters
    ----------
    style : {"read", "reference"}
        Sequence of the tags: each record's own, or the reference from its start to its end.
    windows : Windows, optional
        List only groups inside of a window.
    prior : float
        Prior probability of methylation.
    calibration : float
        Factor of the ratios; see `f5py.core.noise.CALIBRATION`.
    """
    if batch.records is None or len(batch.cigar) != batch.cigar_offsets[-1]:
        raise ValueError("base modification tags need the batch's records and CIGARs")
    wanted = batch.calls.n > 0
    if style == "read":
        sequence, offsets = sequences_of(batch.records, len(batch), wanted)
        start, length = offsets[:-1], np.diff(offsets)
        cigar, cigar_offsets = batch.cigar, batch.cigar_offsets
    else:
        sequence = batch.reference
        length = batch.reference_end - batch.reference_start
        start = batch.reference_offsets[:-1]
        cigar, cigar_offsets = (length << 4).astype(np.uint32), np.arange(len(batch) + 1)

    inside = calls_inside(batch, windows)
    n_sites = int(batch.calls.sites[inside].sum(dtype=np.int64))
    head = f"{motif.canonical}+{motif.code}?".encode()
    text = np.empty(n_sites * _MAX_STEP + len(batch) * (len(head) + 1), np.uint8)
    text_offsets = np.zeros(len(batch) + 1, np.int64)
    probability = np.empty(n_sites, np.uint8)
    probability_offsets = np.zeros(len(batch) + 1, np.int64)
    fill_tags(
        wanted, (sequence, start, length, cigar, cigar_offsets), batch.alignments, batch.calls, inside,
        (
            (motif.codes(reverse=False), motif.codes(reverse=True)),
            np.frombuffer((motif.canonical + reverse_complement(motif.canonical)).encode(), np.uint8),
            np.frombuffer(head, np.uint8),
        ),
        (calibration, math.log(prior) - math.log1p(-prior)),
        (text, text_offsets, probability, probability_offsets),
    )  # fmt: skip
    return ModificationTags(text[: text_offsets[-1]], text_offsets, probability, probability_offsets, length)


@dataclass(frozen=True, kw_only=True)
class TagOptions:
    """Options of modification tags."""

    # "read" or "reference": keep each called record's sequence, or show the reference's bases from its start to its end
    # instead, without gaps and with a constant base quality; ambiguity codes of the reference are resolved as for
    # calling
    style: str = "read"
    # "keep", "replace", "merge": what becomes of called records that have tags already: they stay as they are, lose
    # these tags, or keep what they say of other modifications
    others: str = "keep"
    prior: float = 0.5  # probability of methylation before the signal is seen
    calibration: float = 1.0  # factor of the log-likelihood ratios
    windows: Windows | None = None  # only calls of groups inside of a window are listed, as in the table of calls


class ModbamWriter(AbstractContextManager["ModbamWriter"]):
    """Write the input's records with the calls as base modification tags; a context manager.

    Records without calls stay unchanged. `TagOptions.others` decides on called records with tags of another program;
    those that keep theirs are counted and reported at the end. Raises `OutputFileError` on failed writes.

    Parameters
    ----------
    file : binary file
        Must have a file descriptor. It is not closed.
    path : str
        Its name; .sam and .cram select these formats, any other name BAM.
    header : pysam.AlignmentHeader
        Of the output, with the contigs of the input.
    motifs : sequence of Motif
        For calls of several, see `f5py.core.batch.ReadBatch.by_motif`.
    reference_path : str, optional
        FASTA file, needed for CRAM.
    """

    def __init__(
        self,
        file: BinaryIO,
        path: str,
        header: pysam.AlignmentHeader,
        motifs: Sequence[Motif],
        options: TagOptions,
        n_threads: int,
        reference_path: str | None = None,
    ) -> None:
        if options.style not in STYLES:
            raise ValueError(f"style {options.style!r} is not one of {', '.join(STYLES)}")
        self._motifs = tuple(motifs)
        self._options = options
        self._n_with_other_tags = 0
        self._records = JoinedBam(file, path, header, n_threads, reference_path)

    def write(self, batch: ReadBatch) -> None:
        """Write the records of a batch in input order, skipped ones included. The batch is not changed."""
        records = batch.records
        tags = self._tags(batch)
        replaces = self._options.others != "keep"
        has_other = np.zeros(len(records), np.bool_)
        size = np.zeros(len(records), np.int64)
        shows_reference = self._options.style == "reference"
        given = (records.data, records.starts, records.read)
        tagged_sizes(*given, tags, replaces, shows_reference, has_other, size)
        offsets = offsets_of(size)
        out = np.empty(offsets[-1], np.uint8)
        tag_records(
            records.data, records.starts, records.read, tags, replaces,
            (shows_reference, has_other, batch.reference, batch.reference_offsets), out, offsets,
        )  # fmt: skip
        self._n_with_other_tags += int(has_other.sum())
        self._records.write(out)

    def append(self, file: BinaryIO) -> None:
        """Write the records of a BAM file of a part of the input."""
        self._records.append(file)

    def _tags(self, batch: ReadBatch) -> ModificationTags:
        if len(batch) == 0:
            return no_tags()
        options = self._options
        how = options.style, options.windows, options.prior, options.calibration
        if len(self._motifs) == 1:
            tags = modification_tags(batch, self._motifs[0], *how)
        else:
            of_motifs = []
            for motif, calls in zip(self._motifs, batch.by_motif, strict=True):
                of_motifs.append(modification_tags(replace(batch, calls=calls), motif, *how))
            tags = of_motifs[0]
            for more in of_motifs[1:]:
                tags = tags_of_motifs(tags, more)
        if self._options.others == "merge" and batch.records is not None:
            tags = tags_with_those_of_records(tags, batch.records)
        return tags

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        self._records.__exit__(kind, *details)
        if kind is None and self._n_with_other_tags:
            why = {
                "keep": "and got no new ones; with --replace-tags they would be replaced, with --merge-tags added to",
                "replace": "because they have no calls of this run",
                "merge": "because they have no calls of this run, or their tags are damaged or of another sequence",
            }[self._options.others]
            console.warning(
                "modbam", f"{self._n_with_other_tags} records keep the base modification tags that they had, {why}"
            )


def sequences_of(
    records: RawRecords, n_reads: int, wanted: NDArray[np.bool_]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Decode the sequences of n reads' records; return letters and offsets, empty for reads not `wanted`."""
    length = np.zeros(n_reads, np.int64)
    sequence_lengths(records.data, records.starts, records.read, wanted, length)
    offsets = offsets_of(length)
    sequence = np.empty(offsets[-1], np.uint8)
    decode_sequences(records.data, records.starts, records.read, wanted, sequence, offsets)
    return sequence, offsets
