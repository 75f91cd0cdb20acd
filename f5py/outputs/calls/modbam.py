"""Methylation calls as base modification tags of the alignment records (modBAM).

Tags MM, ML and MN are those of the SAM optional fields specification. Bases that are not listed have unknown status
(``?``): f5py calls only sites of its motif, and not all of those.
"""

import math
from dataclasses import replace

import numpy as np
import pysam
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.cigar import ALIGNED, OF_RECORD, OF_REFERENCE
from f5py.core.motifs import Motif, reverse_complement
from f5py.core.offsets import gather_slices
from f5py.core.windows import Windows
from f5py.io.bam._bam_numba import (
    BIN,
    LETTER_PAIRS,
    LETTERS,
    N_BASES,
    N_CIGAR,
    NAME_LENGTH,
    POSITION,
    put_integer,
    signed32,
    tag_end,
    tags_begin,
    unsigned16,
)
from f5py.io.bam.bam_output import RecordOutput
from f5py.io.bam.bam_records import RawRecords, fixed_numbers
from f5py.io.bam.headers import FIXED_SIZE
from f5py.io.bam.indexed_output import indexed_output
from f5py.io.files.complete_file import complete_output
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.messages import console
from f5py.methylation.groups import is_site
from f5py.options.signal_commands import CallOptions
from f5py.outputs.calls.tag_merging import ModificationTags, no_tags, tags_of_motifs, tags_with_those_of_records
from f5py.outputs.sink import FinishedPart, PartFiles, Sink
from f5py.site_frequencies.site_counts import calls_inside
from f5py.text._format_numba import COMMA, append_bytes, append_int

#: A comma and the digits of a 32-bit number.
_MAX_STEP = 11
#: Of a record, besides the text of MM, the values of ML, and twice the reference's bases.
_MORE_BYTES = 32
_SEMICOLON = np.uint8(ord(";"))
#: Four-bit codes of letters.
_CODES = np.full(256, 15, np.uint8)
_CODES[LETTERS] = np.arange(16)
_REFERENCE_QUALITY = np.uint8(30)
_TAGS, _MARKING_TAGS, _TAGS_OF_THE_READ = (
    tuple(np.uint16(name[0] + 256 * name[1]) for name in names)
    for names in (
        (b"MM", b"ML", b"MN", b"Mm", b"Ml"),
        (b"MM", b"ML", b"Mm", b"Ml"),  # a length alone says nothing about modifications
        (b"RG", b"BC", b"HP", b"PS", b"PC"),  # these stay true when a record shows the reference's bases
    )
)
#: Names and types of new tags.
_MM, _ML, _MN = (np.frombuffer(tag, np.uint8) for tag in (b"MMZ", b"MLBC", b"MNi"))


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
    sequences : tuple
        Letters on the reference's forward strand as stored in the records, start and length of each sequence, and
        CIGARs with their offsets.
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


@exact_inner
def _has_tag(data, begin, end, names):
    stop = tag_end(data, begin, end)
    while stop > 0 and unsigned16(data, begin) not in names:
        begin, stop = stop, tag_end(data, stop, end)
    return stop > 0


@exact_inner
def _put_tags(out, at, tags, read):
    """Write MM, ML and MN of a read; return the end."""
    at = append_bytes(out, at, _MM)
    at = append_bytes(out, at, tags.text[tags.text_offsets[read] : tags.text_offsets[read + 1]])
    out[at] = 0
    first = tags.probability_offsets[read]
    n_calls = tags.probability_offsets[read + 1] - first
    at = put_integer(out, append_bytes(out, at + 1, _ML), n_calls, 4)
    at = append_bytes(out, at, tags.probability[first : first + n_calls])
    return put_integer(out, append_bytes(out, at, _MN), tags.length[read], 4)


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
def _copy_tags(data, begin, end, out, at, names, wanted):
    """Copy the tags in `names`, or all others."""
    stop = tag_end(data, begin, end)
    while stop > 0:
        if (unsigned16(data, begin) in names) == wanted:
            at = append_bytes(out, at, data[begin:stop])
        begin, stop = stop, tag_end(data, stop, end)
    return at


@exact_inner
def _put_reference(data, start, letters, out, at):
    """Write a record up to its tags with the reference's bases, without gaps."""
    n_bases = letters.shape[0]
    name_end = start + FIXED_SIZE + np.int64(data[start + NAME_LENGTH])
    position = signed32(data, start + POSITION)
    begin = at
    at = append_bytes(out, at, data[start:name_end])
    put_integer(out, begin + BIN, _bin(position, position + n_bases), 2)
    put_integer(out, begin + N_CIGAR, np.int64(1), 2)
    put_integer(out, begin + N_BASES, n_bases, 4)
    at = put_integer(out, at, n_bases << 4, 4)
    for j in range(0, n_bases, 2):
        second = _CODES[letters[j + 1]] if j + 1 < n_bases else np.uint8(0)
        out[at] = _CODES[letters[j]] << 4 | second
        at += 1
    for j in range(n_bases):
        out[at + j] = _REFERENCE_QUALITY
    return at + n_bases


@exact_kernel
def tag_records(data, starts, read, tags, replace, shown, out):
    """Write all `RawRecords`, with new tags; return their bytes, and the number that keep others.

    Parameters
    ----------
    replace, shown : bool, tuple
        Drop tags of other programs; replace the read's bases by the reference's, and the reference with its offsets.
    """
    shows_reference, reference, reference_offsets = shown
    at = np.int64(0)
    n_others = 0
    for i in range(read.shape[0]):
        start, end = starts[i], starts[i + 1]
        begin = tags_begin(data, start)
        has_others = _has_tag(data, begin, end, _MARKING_TAGS)
        has_calls = read[i] >= 0 and tags.probability_offsets[read[i]] < tags.probability_offsets[read[i] + 1]
        if not has_calls or (has_others and not replace):
            n_others += has_others
            at = append_bytes(out, at, data[start:end])
            continue
        record = at
        if shows_reference:
            first = reference_offsets[read[i]]
            at = _put_reference(data, start, reference[first : first + tags.length[read[i]]], out, at)
            at = _copy_tags(data, begin, end, out, at, _TAGS_OF_THE_READ, True)
        else:
            at = append_bytes(out, at, data[start:begin])
            at = _copy_tags(data, begin, end, out, at, _TAGS, False)
        at = _put_tags(out, at, tags, read[i])
        put_integer(out, record, at - record - 4, 4)
    return at, n_others


def tagged_records(
    records: RawRecords, tags: ModificationTags, replace: bool,
    shown: tuple[bool, NDArray[np.uint8], NDArray[np.int64]] = (False, np.empty(0, np.uint8), np.zeros(1, np.int64)),
) -> tuple[NDArray[np.uint8], int]:  # fmt: skip
    """Return the records with their new tags, and the number that keep other ones; see `tag_records`."""
    room = int(records.starts[-1] - records.starts[0]) + len(tags.text) + len(tags.probability)
    n_bases = int(tags.length.sum()) if shown[0] else 0
    out = np.empty(room + 2 * n_bases + _MORE_BYTES * len(tags.length), np.uint8)  # unused pages take no memory
    size, n_others = tag_records(records.data, records.starts, records.read, tags, replace, shown, out)
    return out[:size], n_others


def modification_tags(
    batch: ReadBatch, motif: Motif, style: str, windows: Windows | None = None, prior: float = 0.5,
    calibration: float = 1.0,
) -> ModificationTags:  # fmt: skip
    """Make the base modification tags of a batch with calls.

    Every site of a scored group has the group's probability: the logistic of the log-likelihood ratio times
    `calibration` (`f5py.core.noise.CALIBRATION`) plus the log-odds of `prior`. In the style ``read``, of each record's
    own sequence, a call belongs to the base aligned to the site's modified base on the record's strand, and is dropped
    without such a base or if it differs; ``reference`` is that from its start to its end. Hard-clipped bases have no
    calls.
    """
    if batch.records is None or len(batch.cigar) != batch.cigar_offsets[-1]:
        raise ValueError("base modification tags need the batch's records and CIGARs")
    wanted = batch.calls.n > 0
    if style == "read":
        sequence, start, length = sequences_of(batch.records, len(batch), wanted)
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


class ModbamTags(Sink):
    """Alignments with the calls as base modification tags, records without calls included and unchanged.

    The options decide on called records with tags of another program: they stay as they are, lose these tags, or keep
    those of other modifications. Records that keep theirs are counted and reported at the end. `calibration` is the
    factor of the ratios; for calls of several motifs see `f5py.core.batch.ReadBatch.by_motif`.
    """

    part_name = "modbam.bam"
    accepts_empty = True

    def __init__(
        self, path: str, options: CallOptions, header: pysam.AlignmentHeader, motifs: list[Motif],
        windows: Windows | None = None, reference: str | None = None, calibration: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(path)
        self._header = header
        self._motifs = motifs
        self._how = options.modbam_style, windows, 0.5 if options.prior is None else options.prior, calibration
        self._others = "replace" if options.replace_tags else "merge" if options.merge_tags else "keep"
        self._n_threads, self._reference = options.threads, reference
        self._n_with_other_tags = 0

    def _open(self, part: PartFiles | None) -> None:
        indexed = indexed_output(self.path, self._header, self._n_threads)
        file = self.files.enter_context(indexed if part is None else complete_output(self.path))
        self.files.push(self._report)
        records = RecordOutput(file, self.path, self._header, self._n_threads, self._reference)
        self._records = self.files.enter_context(records)

    def write(self, batch: ReadBatch) -> None:
        """Write the records of a batch in input order, skipped ones included."""
        shown = self._how[0] == "reference", batch.reference, batch.reference_offsets
        records, n_others = tagged_records(batch.records, self._tags(batch), self._others != "keep", shown)
        self._n_with_other_tags += n_others
        self._records.write(records)

    def append(self, part: FinishedPart) -> None:
        with part.open(self.part_name) as file:
            self._records.append(file)

    def _tags(self, batch: ReadBatch) -> ModificationTags:
        if len(batch) == 0:
            return no_tags()
        of_motifs = [batch.calls] if len(self._motifs) == 1 else batch.by_motif
        tags: ModificationTags | None = None
        for motif, calls in zip(self._motifs, of_motifs, strict=True):
            more = modification_tags(replace(batch, calls=calls), motif, *self._how)
            tags = more if tags is None else tags_of_motifs(tags, more)
        assert tags is not None
        return tags_with_those_of_records(tags, batch.records) if self._others == "merge" else tags

    def _report(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._n_with_other_tags:
            why = {
                "keep": "and got no new ones; with --replace-tags they would be replaced, with --merge-tags added to",
                "replace": "because they have no calls of this run",
                "merge": "because they have no calls of this run, or their tags are damaged or of another sequence",
            }[self._others]
            console.warning(
                "modbam", f"{self._n_with_other_tags} records keep the base modification tags that they had, {why}"
            )


def sequences_of(
    records: RawRecords, n_reads: int, wanted: NDArray[np.bool_]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Decode the sequences of n reads; return letters, starts and lengths, 0 for reads not `wanted`."""
    chosen = np.flatnonzero(records.read >= 0)
    chosen = chosen[wanted[records.read[chosen]]]
    sizes = ((N_BASES, np.int32), (NAME_LENGTH, np.uint8), (N_CIGAR, np.uint16))
    at = records.starts[chosen]
    n_bases, name, n_operations = (fixed_numbers(records.data, at, *size).astype(np.int64) for size in sizes)
    packed, offsets = gather_slices(records.data, at + FIXED_SIZE + name + 4 * n_operations, (n_bases + 1) // 2)
    start, length = np.zeros((2, n_reads), np.int64)
    start[records.read[chosen]], length[records.read[chosen]] = 2 * offsets[:-1], n_bases
    return LETTER_PAIRS[packed].view(np.uint8), start, length
