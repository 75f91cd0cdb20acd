"""Alignment records from SAM, BAM or CRAM: filtered, counted and numbered."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import NameTable
from f5py.core.windows import Windows
from f5py.errors import InputFileError
from f5py.io.arrow.text_input import display_name
from f5py.io.bam._bam_numba import (
    DUPLICATE,
    KEPT,
    LOW_MAPQ,
    NO_BASES,
    SECONDARY,
    SUPPLEMENTARY,
    UNMAPPED,
    UNMAPPED_LOW_MAPQ,
    classify,
)
from f5py.io.bam.bam_blocks import N_THREADS
from f5py.io.bam.bam_index import BamIndex, find_index, read_index
from f5py.io.bam.bam_records import chosen_records, encode_chunks, record_chunks, record_names, segments_of
from f5py.io.bam.opening import error_reason, open_alignments
from f5py.io.bam.record_ranges import RecordRange, is_mapped_at, number_ranges, range_file, split_records, window_chunks
from f5py.io.bytes.file_state import FileState, changed_file_error
from f5py.io.bytes.watched_pipe import WatchedPipe
from f5py.io.reads.read_list import ReadList
from f5py.io.remote import ranged_file
from f5py.messages.console import input_warning
from f5py.text.encoding import undecoded

if TYPE_CHECKING:
    import pysam


@dataclass
class RecordCounts:
    """Numbers of kept records and of skipped ones by reason."""

    unmapped: int = 0
    secondary: int = 0
    low_mapq: int = 0  # as f5c counts, with unmapped ones
    unmapped_low_mapq: int = 0
    supplementary: int = 0
    no_bases: int = 0
    duplicates: int = 0
    kept: int = 0

    def add(self, kinds: NDArray[np.uint8]) -> None:
        """Add records of these kinds, `f5py.io.bam._bam_numba.KEPT` to `DUPLICATE`."""
        found = np.bincount(kinds, minlength=DUPLICATE + 1).tolist()
        self.kept += found[KEPT]
        self.unmapped += found[UNMAPPED]
        self.low_mapq += found[LOW_MAPQ] + found[UNMAPPED_LOW_MAPQ]
        self.unmapped_low_mapq += found[UNMAPPED_LOW_MAPQ]
        self.secondary += found[SECONDARY]
        self.supplementary += found[SUPPLEMENTARY]
        self.no_bases += found[NO_BASES]
        self.duplicates += found[DUPLICATE]

    def plus(self, other: RecordCounts, times: int = 1) -> RecordCounts:
        """Add the counts of another one, `times` over."""
        names = [one.name for one in fields(self)]
        return RecordCounts(**{name: getattr(self, name) + times * getattr(other, name) for name in names})


class AlignmentFile:
    """Records of a SAM, BAM or CRAM file that pass the filters, in file order.

    The path ``-`` is standard input, of which `beginning` has been read. The reference decodes CRAM. Only `chosen`
    reads are visited. `n_threads` decompress. Raises `InputFileError` if the file cannot be read or is truncated.
    """

    def __init__(
        self,
        path: str,
        reference_path: str | None,
        min_mapq: int,
        secondary: bool,
        supplementary: bool = True,
        beginning: bytes = b"",
        chosen: ReadList | None = None,
        n_threads: int = N_THREADS,
    ) -> None:
        self.path = path
        self.is_pipe = path == "-" or not (os.path.isfile(path) or os.path.isdir(path))
        self.name = display_name(path)
        self.counts = RecordCounts()
        self.chosen = chosen
        self._n_threads = n_threads
        self._reference_path = reference_path
        self._is_index_checked = False
        self._index: BamIndex | None = None
        self._records: Iterator[pysam.AlignedSegment] = iter(())
        self._at: int | None = None  # number of the next one of these records
        self.min_mapq = min_mapq
        self.secondary = secondary
        self.supplementary = supplementary
        if path != "-" and not os.path.exists(path):
            raise InputFileError(f"{path}: no such file; name a BAM, SAM or CRAM file of alignments")
        try:
            if path == "-":
                # can be interrupted, unlike the library's first read
                select.select([] if beginning else [0], [], [], 0 if beginning else None)
            is_here = os.path.isfile(path) and ranged_file(path) is None
            self._state = FileState(path, path) if is_here and not self.is_pipe else None
            self._pipe = WatchedPipe(path, beginning) if self.is_pipe else None
            self._file = open_alignments(path, reference_path, self._pipe)
        except (OSError, ValueError) as problem:
            reason = error_reason(problem)
            advice = "copy or make it again" if "truncated" in reason else "give alignments of the reads"
            advice = "" if "run: " in reason else f"; {advice}"
            raise InputFileError(f"{self.name}: cannot read as SAM, BAM or CRAM: {reason}{advice}") from None
        #: Kept here because the library drops it when the file is closed.
        self.header: pysam.AlignmentHeader = self._file.header
        try:
            self.contigs: list[str] = list(self._file.references)
        except UnicodeDecodeError:
            self.close()
            raise InputFileError(
                f"{self.name}: the name of a contig in the header is not text; make the file again"
            ) from None
        self.contig_lengths: list[int] = list(self._file.lengths)
        if not self.contigs:
            kind = self._file.description.partition(" ")[0]
            self.close()
            if kind in ("FASTA", "FASTQ"):
                how = "f5py map REF READS -o reads.bam"
                raise InputFileError(f"{self.name}: is {kind}, which has no alignments; make them: {how}")
            raise InputFileError(f"{self.name}: the header names no contigs; map the reads to the reference first")

    def classify(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, names: NameTable
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the kinds of `n` records, and the rows of the kept ones' reads among `names`, or -1."""
        kinds, rows = np.empty(n, np.uint8), np.empty(n, np.int64)
        wanted = self.min_mapq, self.secondary, self.supplementary
        classify(data, starts, n, wanted, names.name_table, kinds, rows)
        return kinds, rows

    @property
    def has_index(self) -> bool:
        return self.path != "-" and self._file.has_index()

    def reopened(self, n_threads: int = N_THREADS) -> AlignmentFile:
        """Open the same file again, inflated in `n_threads`; not for pipes."""
        return AlignmentFile(
            self.path, self._reference_path, self.min_mapq, self.secondary, self.supplementary, n_threads=n_threads
        )

    def basecall_models(self) -> list[str]:
        """Return the basecalling models that dorado names in the read groups."""
        words = [word for group in self._read_groups for word in re.split(r"\s|DS:", group)]
        return sorted({word.partition("=")[2] for word in words if word.startswith("basecall_model=")})

    @property
    def sample(self) -> str | None:
        """The sample in the read groups if they agree on one."""
        fields = [field for group in self._read_groups for field in group.split("\t")]
        names = {field.removeprefix("SM:") for field in fields if field.startswith("SM:")} - {""}
        return names.pop() if len(names) == 1 else None

    @cached_property
    def _read_groups(self) -> list[str]:
        """Lines of the header, cached because a closed file has none."""
        return re.findall(r"^@RG\t[^\r\n]*", self._header_text, re.MULTILINE)

    @property
    def is_sorted(self) -> bool:
        """Whether the header states that records are sorted by position."""
        return self._order == "coordinate"

    @property
    def _order(self) -> str:
        """The header's sort order, empty if missing."""
        first = self._header_text.partition("\n")[0].rstrip("\r")
        fields = first.split("\t") if first.startswith("@HD\t") else []
        return next((field.removeprefix("SO:") for field in fields if field.startswith("SO:")), "")

    @property
    def _header_text(self) -> str:
        return undecoded(self.header.__str__).decode("utf-8", "replace")

    def expected_records(self) -> int | None:
        """Return the number of mapped records in a sound index, else None."""
        path = self._index_path()
        if path is None:
            return None
        try:
            index = read_index(path, self.path)
        except InputFileError:
            return None  # only -w needs it, and complains then
        return index.n_mapped if index.n_contigs == len(self.contigs) else None

    def chunks(
        self, windows: Windows | None = None, at_most: int = 4096, within: RecordRange | None = None
    ) -> Generator[tuple[NDArray[np.uint8], NDArray[np.int64], int], None, None]:
        """Yield all records, or those of chosen reads, as `f5py.io.bam.bam_records.record_chunks`.

        With `windows`, each record that overlaps one is visited once, which needs an index. BAM is decoded in bulk;
        other formats come through htslib, at most `at_most` records at a time. `within` limits them to a range from
        `ranges`. Raises `InputFileError` after the records before the damage.
        """
        for data, starts, n in self._all_chunks(windows, at_most, within):
            if self.chosen is None:
                yield data, starts, n
            elif len(listed := np.flatnonzero(self.chosen.hold(record_names(data, starts, np.arange(n))))):
                yield *chosen_records(data, starts, listed), len(listed)

    def _all_chunks(
        self, windows: Windows | None, at_most: int, within: RecordRange | None
    ) -> Generator[tuple[NDArray[np.uint8], NDArray[np.int64], int], None, None]:
        try:
            if windows is not None:
                self.check_index()
            if within is not None and within.is_empty:
                return
            if windows is not None and self._index is not None:
                yield from window_chunks(self.path, self._index, windows, within or RecordRange(0, None))
            elif windows is not None or self.is_pipe or not self._file.is_bam:
                records = self._visit(windows)
                if within is not None:
                    records = self._between(within, windows)
                yield from encode_chunks(records, self.header, at_most)
            else:
                begin, end, _ = within or RecordRange(0, None)
                with range_file(self.path, end) as file:
                    file.seek(begin >> 16)
                    skipped = begin & 0xFFFF if begin else None
                    yield from record_chunks(file, len(self.contigs), skipped, n_threads=self._n_threads)
        except OSError as problem:
            raise self._damaged(problem) from None
        if self._state is not None:
            self._state.check()

    def ranges(self, n_parts: int, windows: Windows | None, are_numbered: bool) -> list[RecordRange]:
        """Split the records into ranges for `chunks`; see `f5py.io.bam.record_ranges.split_records`.

        With `are_numbered`, and for SAM and CRAM, all records are visited to count them. Raises `InputFileError` if the
        file is damaged or a pipe.
        """
        if self.is_pipe:
            raise InputFileError(f"{self.name}: a pipe cannot be worked on in parts; name a file")
        if windows is not None:
            self.check_index()
        if not self._file.is_bam:
            try:
                ranges = number_ranges(sum(1 for _ in self._from_beginning(windows)), n_parts)
            except OSError as problem:
                raise self._damaged(problem) from None
            return ranges if self.chosen is None else self._numbered(ranges, windows)
        path = self._index_path()
        index = self._index
        if index is None and path is not None:
            try:
                index = self._checked_index(path)
            except InputFileError:
                index = None  # only -w needs it, and complains then
        try:
            ranges = split_records(self.path, len(self.contigs), n_parts, index, windows)
        except OSError as problem:
            raise self._damaged(problem) from None
        return self._numbered(ranges, windows) if are_numbered else ranges

    def _numbered(self, ranges: list[RecordRange], windows: Windows | None) -> list[RecordRange]:
        numbered, n_visited = [], 0
        for one in ranges:
            numbered.append(one._replace(first_record=n_visited))
            with closing(self.chunks(windows, within=one)) as chunks:
                n_visited += sum(n for _, _, n in chunks)
        return numbered

    def _damaged(self, problem: OSError) -> InputFileError:
        if self._state is not None and self._state.has_changed():
            return changed_file_error(self.name)
        if self._file.is_cram:
            return InputFileError(
                f"{self.name}: cannot be decoded after {self.counts.kept} usable records; the file is damaged, or "
                f"{self._reference_path or 'the reference'} is not the reference that it was made with"
            )
        return InputFileError(
            f"{self.name}: truncated or damaged after {self.counts.kept} usable records ({error_reason(problem)}); "
            "make the file again"
        )

    def records(
        self, windows: Windows | None = None, left_out: bool = False
    ) -> Iterator[tuple[int, pysam.AlignedSegment]]:
        """Yield (read index, record) for each record kept; with `left_out` also (-1, record) for others.

        The read index counts all records visited. With `windows`, each record that overlaps one is visited once, which
        needs an index.
        """
        n_before = 0
        with closing(AlignmentFile.chunks(self, windows)) as chunks:
            for data, starts, n in chunks:
                kinds, _ = self.classify(data, starts, n, NameTable.of([]))
                self.counts.add(kinds)
                for i, record in enumerate(segments_of(data[: starts[n]], self.header)):
                    if kinds[i] == KEPT or left_out:
                        yield n_before + i if kinds[i] == KEPT else -1, record
                n_before += n

    def _between(self, within: RecordRange, windows: Windows | None) -> Iterator[pysam.AlignedSegment]:
        """Yield the records of a range by number; one before the current position restarts the file."""
        if self._at is None or self._at > within.begin:
            self._records, self._at = self._from_beginning(windows), 0
        for record in islice(self._records, None if within.end is None else max(within.end - self._at, 0)):
            self._at += 1
            if self._at > within.begin:
                yield record

    def _from_beginning(self, windows: Windows | None) -> Iterator[pysam.AlignedSegment]:
        with closing(self.reopened()) as file:
            yield from file._visit(windows)

    def _visit(self, windows: Windows | None) -> Iterator[pysam.AlignedSegment]:
        if windows is None:
            yield from self._file.fetch(until_eof=True)
            if self._pipe is not None and self._pipe.problem is not None:
                raise self._pipe.problem
            return
        for contig, start, end, previous_end in windows.with_previous_end():
            length = self.contig_lengths[contig]
            if start >= length:
                continue
            for record in self._file.fetch(self.contigs[contig], start, min(end, length)):
                if record.reference_start >= previous_end:  # else it was in the previous window
                    yield record

    def _index_path(self) -> str | None:
        """Return the index of a BAM file."""
        return find_index(self.path) if self._file.is_bam and not self.is_pipe else None

    def check_index(self) -> None:
        """Raise `InputFileError` unless the file has an index, for windows."""
        path = self._index_path()
        if path is None and not self._file.has_index():
            if self.is_pipe:
                raise InputFileError(f"{self.name}: -w needs an indexed BAM file; give its name with -b")
            order = self._order
            if order not in ("", "coordinate"):
                how = "by name" if order == "queryname" else f"as its header says: {order}"
                raise InputFileError(
                    f"{self.path}: -w needs alignments sorted by position, these are sorted {how}; run: samtools sort "
                    f"--write-index -o sorted.bam {self.path}, and give -b sorted.bam"
                )
            if self._file.is_sam:
                how = f"samtools sort --write-index -o sorted.bam {self.path}, and give -b sorted.bam"
                raise InputFileError(f"{self.path}: -w needs an index, which SAM cannot have; run: {how}")
            raise InputFileError(f"{self.path}: -w needs an index; run: samtools index {self.path}")
        if self._is_index_checked:
            return
        self._is_index_checked = True
        if path is not None:
            self._index = self._checked_index(path)
        other = f"{self.path}.crai"
        if path is None and os.path.exists(other) and os.path.getmtime(other) < os.path.getmtime(self.path):
            input_warning("load_bam", f"{other} is older than {self.path}; if that has changed, index it again")

    def _checked_index(self, path: str) -> BamIndex:
        """Read an index that must be sound and cover the file to its last mapped record."""
        index = read_index(path, self.path)
        stale = InputFileError(f"{path}: is not the index of {self.path} as it is now; run: samtools index {self.path}")
        if index.n_contigs != len(self.contigs):
            raise stale
        try:
            if index.last and is_mapped_at(self.path, index.last, index.n_contigs):
                raise stale
        except OSError:
            raise stale from None
        return index

    def close(self) -> None:
        with suppress(OSError):  # of damaged files
            self._file.close()
