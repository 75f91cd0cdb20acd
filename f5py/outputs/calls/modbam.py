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

#: What the sequence of a written record is: the read's, or the reference's under it.
STYLES = ("read", "reference")
#: A comma and the digits of a 32-bit number.
_MAX_STEP = 11


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
    from f5py.outputs.calls._modbam_numba import fill_tags
    from f5py.outputs.calls.modbam_arrays import CallOdds, Modification, RecordSequences, TagTexts

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
        wanted, RecordSequences(sequence, start, length, cigar, cigar_offsets), batch.alignments, batch.calls, inside,
        Modification(
            (motif.codes(reverse=False), motif.codes(reverse=True)),
            np.frombuffer((motif.canonical + reverse_complement(motif.canonical)).encode(), np.uint8),
            np.frombuffer(head, np.uint8),
        ),
        CallOdds(calibration, math.log(prior) - math.log1p(-prior)),
        TagTexts(text, text_offsets, probability, probability_offsets),
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
        from f5py.outputs.calls._modbam_numba import tag_records, tagged_sizes
        from f5py.outputs.calls.modbam_arrays import Replacements

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
            Replacements(shows_reference, has_other, batch.reference, batch.reference_offsets), out, offsets,
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
    from f5py.outputs.calls._modbam_numba import decode_sequences, sequence_lengths

    length = np.zeros(n_reads, np.int64)
    sequence_lengths(records.data, records.starts, records.read, wanted, length)
    offsets = offsets_of(length)
    sequence = np.empty(offsets[-1], np.uint8)
    decode_sequences(records.data, records.starts, records.read, wanted, sequence, offsets)
    return sequence, offsets
