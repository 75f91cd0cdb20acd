"""Methylation calls as base modification tags of the alignment records (modBAM).

Tags MM, ML and MN are those of the SAM optional fields specification. Bases that are not listed have unknown status
(``?``): f5py calls only sites of its motif, and not all of those.
"""

from __future__ import annotations

import array
import copy
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py import __version__, console
from f5py.core.batch import ReadBatch, offsets_of
from f5py.core.motifs import Motif, reverse_complement
from f5py.core.windows import Windows
from f5py.errors import OutputFileError
from f5py.frequencies.site_counts import calls_inside
from f5py.io.alignments import BamWriter
from f5py.text.encoding import undecoded

if TYPE_CHECKING:
    import pysam

#: What the sequence of a written record is: the read's, or the reference's under it.
STYLES = ("read", "reference")
_MODES = {".sam": "w", ".cram": "wc"}
_TAGS = ("MM", "ML", "MN", "Mm", "Ml")
_MARKING_TAGS = ("MM", "ML", "Mm", "Ml")  # a length alone says nothing about modifications
#: Tags that stay true when a record shows the reference's bases.
_TAGS_OF_THE_READ = ("RG", "BC", "HP", "PS", "PC")
_REFERENCE_QUALITY = 30
#: A comma and the digits of a 32-bit number.
_MAX_STEP = 11
_VERSIONS_WITHOUT_ARRAYS = ("VN:1.0", "VN:1.1", "VN:1.2", "VN:1.3")


@dataclass(frozen=True)
class ModificationTags:
    """Base modification tags of the reads of a batch.

    Attributes
    ----------
    text : bytes, offsets `text_offsets`
        Value of MM; empty for a read without a called base.
    probability : uint8, offsets `probability_offsets`
        Value of ML: N stands for a probability from N/256 up to (N+1)/256.
    length : int64, shape (n,)
        Value of MN: length of the sequence that the tags refer to.
    """

    text: bytes
    text_offsets: NDArray[np.int64]
    probability: NDArray[np.uint8]
    probability_offsets: NDArray[np.int64]
    length: NDArray[np.int64]

    def has(self, read: int) -> bool:
        """Whether the read has a called base."""
        return bool(self.probability_offsets[read] < self.probability_offsets[read + 1])

    def of(self, read: int) -> list[tuple[str, Any]]:
        """The read's tags as (name, value), as pysam takes them: text, array of bytes, number."""
        values = self.probability[self.probability_offsets[read] : self.probability_offsets[read + 1]]
        return [
            ("MM", self.text[self.text_offsets[read] : self.text_offsets[read + 1]].decode()),
            ("ML", array.array("B", values.tobytes())),
            ("MN", int(self.length[read])),
        ]


def modification_tags(
    batch: ReadBatch, motif: Motif, style: str, windows: Windows | None = None
) -> ModificationTags:
    """Make the base modification tags of a batch with calls.

    Every site of every scored group is a call with the group's probability, the logistic of its log-likelihood ratio.
    In read style a call goes to the base that is aligned to the site's modified base on the record's strand, and is
    dropped if there is none or it is another base. Hard-clipped bases are no part of a record's sequence, so calls in
    them cannot be listed.

    Parameters
    ----------
    batch : ReadBatch
        With `records`, `cigar`, `reference` and the call arrays.
    motif : Motif
    style : {"read", "reference"}
        What the tags refer to: each record's own sequence, or the reference from its start to its end.
    windows : Windows, optional
        Only groups inside of a window are listed, as in the table of calls.
    """
    from f5py.outputs._modbam_numba import fill_tags

    if len(batch.records) != len(batch) or len(batch.cigar) != batch.cigar_offsets[-1]:
        raise ValueError("base modification tags need the batch's records and CIGARs")
    wanted = batch.n_calls > 0
    if style == "read":
        pieces = [
            (record.query_sequence or "").encode() if called else b""
            for record, called in zip(batch.records, wanted.tolist(), strict=True)
        ]
        sequence = np.frombuffer(b"".join(pieces), np.uint8)
        length = np.array([len(piece) for piece in pieces], np.int64)
        start = offsets_of(length)[:-1]
        cigar, cigar_offsets = batch.cigar, batch.cigar_offsets
    else:
        sequence = batch.reference
        length = batch.reference_end - batch.reference_start
        start = batch.reference_offsets[:-1]
        cigar, cigar_offsets = (length << 4).astype(np.uint32), np.arange(len(batch) + 1)

    inside = calls_inside(batch, windows)
    n_sites = int(batch.call_sites[inside].sum(dtype=np.int64))
    head = f"{motif.canonical}+{motif.code}?".encode()
    text = np.empty(n_sites * _MAX_STEP + len(batch) * (len(head) + 1), np.uint8)
    text_offsets = np.zeros(len(batch) + 1, np.int64)
    probability = np.empty(n_sites, np.uint8)
    probability_offsets = np.zeros(len(batch) + 1, np.int64)
    fill_tags(
        wanted,
        sequence,
        start,
        length,
        cigar,
        cigar_offsets,
        batch.reverse,
        batch.reference,
        batch.reference_offsets,
        batch.reference_start,
        batch.call_offsets,
        batch.n_calls,
        inside,
        batch.call_first,
        batch.call_last,
        batch.call_methylated,
        batch.call_unmethylated,
        (motif.codes(reverse=False), motif.codes(reverse=True)),
        np.frombuffer((motif.canonical + reverse_complement(motif.canonical)).encode(), np.uint8),
        np.frombuffer(head, np.uint8),
        text,
        text_offsets,
        probability,
        probability_offsets,
    )
    return ModificationTags(
        text[: text_offsets[-1]].tobytes(), text_offsets, probability, probability_offsets, length
    )


class ModbamWriter:
    """Writes the input's records with the calls as base modification tags; a context manager.

    Records that were not called are written as they are. A record with base modification tags of another program is
    written as it is, too, unless `replace_tags`: two programs' calls cannot stand in one record. What became of such
    records is told at the end.

    Parameters
    ----------
    file : binary file
        Must have a file descriptor. It is not closed.
    path : str
        Its name, for messages; a name that ends in .sam or .cram makes that format, any other one BAM.
    header : pysam.AlignmentHeader
        The input's; an @PG line is added.
    motif : Motif
    style : {"read", "reference"}
        Keep each called record's sequence, or show the reference's bases from its start to its end instead, without
        gaps and with a constant base quality; ambiguity codes of the reference are resolved as for calling.
    replace_tags : bool
        Replace base modification tags of called records.
    n_threads : int
        Threads for compression.
    command_line : str
        For the @PG line.
    reference_path : str, optional
        FASTA file, needed for CRAM.
    windows : Windows, optional
        Only calls of groups inside of a window are listed, as in the table of calls.

    Raises
    ------
    OutputFileError
        The file cannot be written, also from the methods and on leaving the context.
    """

    def __init__(
        self,
        file: BinaryIO,
        path: str,
        header: pysam.AlignmentHeader,
        motif: Motif,
        style: str,
        replace_tags: bool,
        n_threads: int,
        command_line: str,
        reference_path: str | None = None,
        windows: Windows | None = None,
    ) -> None:
        if style not in STYLES:
            raise ValueError(f"style {style!r} is not one of {', '.join(STYLES)}")
        self._motif = motif
        self._style = style
        self._replace_tags = replace_tags
        self._windows = windows
        self._n_with_other_tags = 0
        mode = _MODES.get(os.path.splitext(path)[1].lower(), "wb")
        if mode == "wc" and reference_path is None:
            raise OutputFileError(f"{path}: CRAM needs the reference; give it, or a name that ends in .bam")
        header = header_with_program(header, command_line)
        self._records = BamWriter(file, path, header, mode, n_threads, reference_path)

    def __enter__(self) -> ModbamWriter:
        return self

    def write(self, batch: ReadBatch) -> None:
        """Write the records of a batch and those that were passed over, in the order of the input.

        The batch and its records are not changed.
        """
        if not batch.records:
            for _, record in batch.passed_over:
                self._write_as_is(record)
            return
        tags = modification_tags(batch, self._motif, self._style, self._windows)
        between = iter(batch.passed_over)
        behind = next(between, None)
        for read, record in enumerate(batch.records):
            while behind is not None and behind[0] <= read:
                self._write_as_is(behind[1])
                behind = next(between, None)
            if tags.has(read) and (self._replace_tags or not _has_other_tags(record)):
                self._records.write(self._tagged(batch, read, tags))
            else:
                self._write_as_is(record)
        while behind is not None:
            self._write_as_is(behind[1])
            behind = next(between, None)

    def _write_as_is(self, record: pysam.AlignedSegment) -> None:
        self._n_with_other_tags += _has_other_tags(record)
        self._records.write(record)

    def _tagged(self, batch: ReadBatch, read: int, tags: ModificationTags) -> pysam.AlignedSegment:
        record = copy.copy(batch.records[read])
        if self._style == "read":
            for name in _TAGS:
                record.set_tag(name, None)
            for name, value in tags.of(read):
                record.set_tag(name, value)
            return record
        kept = [tag for tag in record.get_tags(with_value_type=True) if tag[0] in _TAGS_OF_THE_READ]
        length = int(tags.length[read])
        first = batch.reference_offsets[read]
        record.query_sequence = batch.reference[first : first + length].tobytes().decode()
        record.query_qualities = array.array("B", bytes([_REFERENCE_QUALITY])) * length
        record.cigartuples = [(0, length)]
        record.set_tags([*kept, *tags.of(read)])
        return record

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        self._records.__exit__(kind, *details)
        if kind is None and self._n_with_other_tags:
            why = (
                "because they have no calls of this run"
                if self._replace_tags
                else "and got no new ones; give --replace-tags to replace those of called records"
            )
            console.warning(
                "modbam", f"{self._n_with_other_tags} records keep the base modification tags that they had, {why}"
            )


def _has_other_tags(record: pysam.AlignedSegment) -> bool:
    return any(record.has_tag(name) for name in _MARKING_TAGS)


def header_with_program(header: pysam.AlignmentHeader, command_line: str) -> pysam.AlignmentHeader:
    """The header with an @PG line for f5py behind the chain of programs that made the file.

    All lines stay as they are, except that a format version below 1.4, the first with array tags, becomes 1.6.

    Parameters
    ----------
    header : pysam.AlignmentHeader
    command_line : str
    """
    import pysam

    given = undecoded(header.__str__).decode("utf-8", "replace")  # the library takes nothing but valid text
    lines = [line for line in given.split("\n") if line]
    if lines and lines[0].startswith("@HD"):
        fields = lines[0].split("\t")
        lines[0] = "\t".join("VN:1.6" if field in _VERSIONS_WITHOUT_ARRAYS else field for field in fields)
    programs = [
        dict(field.split(":", 1) for field in line.split("\t")[1:] if ":" in field)
        for line in lines
        if line.startswith("@PG\t")
    ]
    names = [program["ID"] for program in programs if "ID" in program]
    identifier, number = "f5py", 0
    while identifier in names:
        number += 1
        identifier = f"f5py.{number}"
    followed = {program.get("PP") for program in programs}
    last = [name for name in names if name not in followed] or names
    line = ["@PG", f"ID:{identifier}", "PN:f5py"]
    if last:
        line.append(f"PP:{last[-1]}")
    line += [f"VN:{__version__}", "CL:" + re.sub(r"[\t\r\n]", " ", command_line)]
    text = "\n".join([*lines, "\t".join(line)]) + "\n"
    return pysam.AlignmentHeader.from_text(text.encode("utf-8", "replace").decode())
