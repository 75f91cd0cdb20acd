"""Alignment records from SAM, BAM or CRAM: filtered, counted and numbered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from f5py.errors import InputFileError
from f5py.io.windows import Windows

if TYPE_CHECKING:
    import pysam


@dataclass
class RecordCounts:
    """How many records were left out, and why."""

    unmapped: int = 0
    secondary: int = 0
    low_mapq: int = 0
    kept: int = 0


class AlignmentFile:
    """The records of an alignment file that pass the filters, in the file's order.

    Parameters
    ----------
    path : str
        SAM, BAM or CRAM; ``-`` is standard input.
    reference_path : str
        FASTA file, needed to decode CRAM.
    min_mapq : int
        Records with a lower mapping quality are left out.
    secondary : bool
        Keep secondary alignments.

    Raises
    ------
    InputFileError
        If the file cannot be read or is truncated.
    """

    def __init__(self, path: str, reference_path: str, min_mapq: int, secondary: bool) -> None:
        import pysam

        self.path = path
        self.counts = RecordCounts()
        self._min_mapq = min_mapq
        self._secondary = secondary
        pysam.set_verbosity(0)  # errors are reported here, in one line
        if path != "-" and not os.path.exists(path):
            raise InputFileError(f"{path}: no such BAM file")
        try:
            self._file = pysam.AlignmentFile(path, check_sq=False, reference_filename=reference_path)
        except (OSError, ValueError) as problem:
            raise InputFileError(f"{path}: cannot read as SAM, BAM or CRAM: {_reason(problem)}") from None
        self.contigs: list[str] = list(self._file.references)
        self.contig_lengths: list[int] = list(self._file.lengths)
        if not self.contigs:
            raise InputFileError(f"{path}: the header names no contigs; map the reads to the reference first")

    @property
    def header(self) -> pysam.AlignmentHeader:
        """The file's header."""
        return self._file.header

    def expected_records(self) -> int | None:
        """Number of mapped records according to the index, if there is one."""
        try:
            return self._file.mapped if self._file.has_index() else None
        except (ValueError, AttributeError):
            return None

    def records(self, windows: Windows | None = None) -> Iterator[tuple[int, pysam.AlignedSegment]]:
        """Yield (read index, record) for each record kept.

        The read index counts all records visited, kept or not. With `windows` only records that overlap one are
        visited, each once, which needs an index.
        """
        counts = self.counts
        try:
            for read_index, record in enumerate(self._visit(windows)):
                if record.is_unmapped or record.mapping_quality < self._min_mapq:
                    if record.mapping_quality < self._min_mapq:
                        counts.low_mapq += 1
                    else:
                        counts.unmapped += 1
                elif record.is_secondary and not self._secondary:
                    counts.secondary += 1
                else:
                    counts.kept += 1
                    yield read_index, record
        except OSError as problem:
            raise InputFileError(
                f"{self.path}: truncated or damaged after {counts.kept} usable records ({_reason(problem)}); "
                "make the file anew"
            ) from None

    def _visit(self, windows: Windows | None) -> Iterator[pysam.AlignedSegment]:
        if windows is None:
            yield from self._file.fetch(until_eof=True)
            return
        if not self._file.has_index():
            raise InputFileError(f"{self.path}: -w needs an index; run: samtools index {self.path}")
        for contig, start, end, previous_end in windows.with_previous_end():
            length = self.contig_lengths[contig]
            if start >= length:
                continue
            for record in self._file.fetch(self.contigs[contig], start, min(end, length)):
                if record.reference_start >= previous_end:  # else the window before has had it
                    yield record

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _reason(problem: Exception) -> str:
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return text.splitlines()[0]
