"""Decoding of a batch's alignment records into columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import FIRST_READS, Cause, ReadBatch
from f5py.core.cigar import ALIGNED, HARD_CLIP, OF_READ, OF_REFERENCE, REFERENCE_SKIP
from f5py.core.kmers import base_codes
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError, UnsupportedDataError
from f5py.io.bam._bam_numba import KEPT, ULTRA
from f5py.io.bam.alignments import AlignmentFile, RecordCounts
from f5py.io.bam.bam_records import RawRecords, RecordColumns, chosen_records, tag_values
from f5py.io.bam.record_ranges import RecordRange
from f5py.io.bam.record_reads import RecordReads, differ_from_records
from f5py.io.reads.read_index import ReadIndex
from f5py.jit.kernel import exact_kernel
from f5py.threads.pool import WorkerPool


@dataclass
class Part:
    """Records of a part of a run."""

    number: int  # 0-based
    records: RecordRange | None = None  # None if only the loader knows them
    before: RecordRange | None = None  # those between the part that is loaded before this one and this one
    # records that were left out; filled, as are the others, when the part has been loaded
    skipped: RecordCounts = field(default_factory=RecordCounts)
    n_ultra: int = 0
    has_known: bool = False  # there is a read with bases in it


@exact_kernel
def prepare(cigar, offsets, hard_clips):
    """Clear hard clips unless they count; return the first spliced read, or -1.

    Parameters
    ----------
    cigar, offsets : uint32, int64
        Length times 16 plus operation, changed; offsets of the reads.
    """
    spliced = -1
    for read in range(offsets.shape[0] - 1):
        for i in range(offsets[read], offsets[read + 1]):
            operation = cigar[i] & 15
            if operation == HARD_CLIP:
                if not hard_clips:
                    cigar[i] = HARD_CLIP
            elif operation == REFERENCE_SKIP and spliced < 0:
                spliced = read
    return spliced


@exact_kernel
def count_columns(alignments, bases, base_offsets, codes, columns):
    """Count the aligned columns of reads, and those with equal bases.

    Columns with an A of the reference are skipped, as unknown bases become A, and so are reads with another number of
    bases than their alignment.

    Parameters
    ----------
    bases, base_offsets : uint8, int64
        Letters of the reads as sequenced.
    columns : int64, shape (n, 2)
        Added to, of the first n reads.
    """
    for read in range(columns.shape[0]):
        first, end = alignments.cigar_offsets[read], alignments.cigar_offsets[read + 1]
        n_bases = np.int64(0)
        for i in range(first, end):
            if OF_READ >> (alignments.cigar[i] & 15) & 1:
                n_bases += np.int64(alignments.cigar[i] >> 4)
        if n_bases != base_offsets[read + 1] - base_offsets[read]:
            continue
        place = alignments.reference_offsets[read]
        base, step = (base_offsets[read + 1] - 1, -1) if alignments.reverse[read] else (base_offsets[read], 1)
        for i in range(first, end):
            operation = alignments.cigar[i] & 15
            n = np.int64(alignments.cigar[i] >> 4)
            if ALIGNED >> operation & 1:
                for j in range(n):
                    expected = codes[alignments.reference[place + j]]
                    code = codes[bases[base + step * j]]
                    columns[read, 0] += expected > 0
                    columns[read, 1] += expected > 0 and expected == (3 - code if step < 0 else code)
            if OF_REFERENCE >> operation & 1:
                place += n
            if OF_READ >> operation & 1:
                base += step * n


@dataclass(frozen=True)
class RecordSlice:
    """Consecutive records of one chunk of the alignment file in a batch."""

    # data, starts: the chunk; see `f5py.io.bam.bam_records.record_chunks`
    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    # first, end: of its records
    first: int
    end: int
    chosen: NDArray[np.int64]  # shape (n,): those that are used
    rows: NDArray[np.int64]  # shape (n,): their reads in the index of the reads
    read_index: NDArray[np.int64]  # shape (n,): their numbers among all records visited
    ultra: NDArray[np.int64]  # those of very long reads

    @classmethod
    def of(
        cls,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        kinds: NDArray[np.uint8],
        rows: NDArray[np.int64],
        first: int,
        end: int,
        n_before: int,
    ) -> RecordSlice:
        """Select the records `first` to `end` of a chunk with `n_before` records before it."""
        chosen, ultra = (first + np.flatnonzero(kinds[first:end] == kind) for kind in (KEPT, ULTRA))
        return cls(data, starts, first, end, chosen, rows[chosen], n_before + chosen, ultra)

    def columns(self) -> RecordColumns:
        """Decode the records."""
        return RecordColumns.of(self.data, self.starts, self.chosen)

    def tags(self, tag: str) -> list[str | None]:
        """Decode the values of a tag."""
        return tag_values(self.data, self.starts, self.chosen, tag)

    def raw(self, with_passed_over: bool) -> RawRecords:
        """Return the bytes of the records, with skipped ones on request."""
        whole = self.data[self.starts[self.first] : self.starts[self.end]].copy()
        read = np.full(self.end - self.first, -1)
        read[self.chosen - self.first] = np.arange(len(self.chosen))
        records = RawRecords(whole, self.starts[self.first : self.end + 1] - self.starts[self.first], read)
        return records if with_passed_over else records.of_reads(0, len(self.chosen))

    def ultra_records(self) -> NDArray[np.uint8]:
        """Return the bytes of the records of very long reads."""
        return chosen_records(self.data, self.starts, self.ultra)[0]


@dataclass(frozen=True)
class BatchRecords:
    """Records of a batch to be loaded."""

    # number, part: those of the batch
    number: int
    stretches: list[RecordSlice]
    partition: NDArray[np.int32]  # see `ReadBatch`
    seconds: float  # that it took to find them
    share: float | None = None  # see `ReadBatch.share_of_input`
    part: int = -1
    is_earlier: bool = False  # see `ReadBatch`


def bases_of(
    stretches: list[RecordSlice], reads: ReadIndex | RecordReads, pool: WorkerPool | None
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Gather the bases of a batch's reads as sequenced, and compare them with their records.

    Returns letters and offsets, and masks of reads with other bases than their records, and of compared reads. `pool`
    copies bases of records; those of `ReadIndex` are read and compared by the calling thread, as waiting for busy
    workers takes longer.
    """
    compared = [one.rows >= 0 for one in stretches]
    if isinstance(reads, RecordReads):
        found = [reads.sequences(one.data, one.starts, one.chosen, one.rows, pool) for one in stretches]
        bases = np.concatenate([part for part, _ in found])
        offsets = offsets_of(np.concatenate([np.diff(ends) for _, ends in found]))
    else:
        bases, offsets = reads.sequences_of(np.concatenate([one.rows for one in stretches]))
    is_other, first = [], 0
    for one, chosen in zip(stretches, compared, strict=True):
        its = offsets[first : first + len(chosen) + 1]
        is_other.append(differ_from_records(one.data, one.starts, one.chosen, bases, its, chosen))
        first += len(chosen)
    is_compared = np.concatenate(compared)
    if isinstance(reads, RecordReads):
        is_compared[:] = True  # the others have the bases of their records
    return bases, offsets, np.concatenate(is_other), is_compared


def check_ends(alignments: AlignmentFile, names: Names, contigs: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
    """Raise `InputFileError` for an alignment that ends beyond its contig."""
    beyond = np.flatnonzero(ends > np.array(alignments.contig_lengths, np.int64)[contigs])
    if len(beyond):
        read = int(beyond[0])
        raise InputFileError(
            f"{alignments.name}: the alignment of read {names[read]} extends past the end of contig "
            f"{alignments.contigs[contigs[read]]}; map the reads again"
        )


def prepare_cigars(names: Names, columns: RecordColumns, hard_clips: bool, spliced: bool) -> None:
    """Remove hard clips unless they count. Raises `UnsupportedDataError` for an unsupported spliced alignment."""
    read = prepare(columns.cigar, columns.cigar_offsets, hard_clips)
    if read >= 0 and not spliced:
        raise UnsupportedDataError(
            f"read {names[read]}: spliced alignment (N in the CIGAR); methylation calling needs reads "
            "mapped without splicing, e.g. minimap2 -ax map-ont"
        )


def columns_of(batch: ReadBatch) -> NDArray[np.int64]:
    """Count the aligned columns of a batch's first reads; 0 for reads with other bases. See `ReadBatch.columns`."""
    columns = np.zeros((min(len(batch), FIRST_READS), 2), np.int64)
    count_columns(batch.alignments, batch.bases, batch.base_offsets, base_codes(), columns)
    columns[batch.cause[:FIRST_READS] == Cause.OTHER_BASES] = 0
    return columns
