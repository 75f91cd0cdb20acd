"""Event alignment as SAM, in two layouts."""

from contextlib import AbstractContextManager
from typing import BinaryIO

import numpy as np
import pysam

from f5py.core.batch import ReadBatch, RowState
from f5py.errors import InputFileError, OutputFileError
from f5py.io.bam.headers import LONGEST_NAME
from f5py.io.bam.modifications.modification_calls import read_name
from f5py.jit.kernel import inner, kernel
from f5py.outputs.resquiggle.signal_strings import strings_of_rows
from f5py.text._format_numba import append_int
from f5py.text.encoding import encoded, undecoded

_FIRST_TAG = 11
#: Tags of an earlier event alignment, which are replaced.
_OWN_TAGS = (b"si:", b"ss:", b"sc:", b"sh:")

_MATCH = np.uint8(ord("M"))
_INSERTION = np.uint8(ord("I"))
_DELETION = np.uint8(ord("D"))
_SKIP = np.uint8(ord("N"))
_CLIP = np.uint8(ord("S"))
_NEW_SEGMENT = np.uint8(RowState.NEW_SEGMENT)

#: Bytes that a row needs at most: three operations with lengths of int32's size.
MAX_OPERATIONS = 36


class SamToBam(AbstractContextManager["SamToBam"]):
    """Text output that writes BAM to a file with a descriptor, which is not closed; a context manager.

    Raises `OutputFileError` if the file cannot be written, or BAM cannot hold a record.
    """

    def __init__(self, file: BinaryIO, path: str, header: pysam.AlignmentHeader, n_threads: int) -> None:
        self._path = path
        self._header = header
        self._parse = pysam.AlignedSegment.fromstring
        self._bam = pysam.AlignmentFile(file, "wb", header=header, threads=n_threads)
        self._rest = b""  # of a line

    def write(self, text: bytes) -> None:
        """Append lines of SAM; later text completes the last one."""
        *lines, self._rest = (self._rest + text).split(b"\n")
        try:
            for line in lines:
                self._bam.write(self._record(line))
        except OSError:  # which does not tell why
            raise OutputFileError(f"{self._path}: cannot write; is the disk full?") from None

    def _record(self, line: bytes) -> pysam.AlignedSegment:
        try:
            return self._parse(line, self._header)
        except ValueError:  # which does not tell why
            name = line.replace(b"\0", b"\t").partition(b"\t")[0]  # the parser leaves zeros between fields
            why = "is not valid; leave the read out of the input"
            if len(name) > LONGEST_NAME:
                why = (
                    f"has a name of {len(name)} bytes, but {LONGEST_NAME} are allowed; "
                    "--sam-out-version 2 keeps the read's own name"
                )
            raise OutputFileError(
                f"{self._path}: the record of {name.decode('utf-8', 'backslashreplace')} {why}"
            ) from None

    def flush(self) -> None:
        """Do nothing: the file appears when complete."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._bam.close()
        except OSError:
            if kind is None:
                raise OutputFileError(f"{self._path}: cannot write; is the disk full?") from None


@inner
def _append_operation(out, at, length, operation):
    at = append_int(out, at, length)
    out[at] = operation
    return at + 1


@kernel
def format_cigars(out, offsets, n_rows, event_offsets, row_event, row_position, row_state):
    """Write the CIGARs of events against k-mers of all reads, with their offsets.

    Parameters
    ----------
    out : uint8
        Filled; of `MAX_OPERATIONS` bytes for each row.
    """
    at = 0
    offsets[0] = 0
    for read in range(n_rows.shape[0]):
        first = event_offsets[read]
        n = n_rows[read]
        if n > 0:
            if row_event[first] > 0:
                at = _append_operation(out, at, row_event[first], _CLIP)
            # the operation that may still grow
            pending = np.int64(1)
            kind = _MATCH
            for row in range(first + 1, first + n):
                kmers = abs(np.int64(row_position[row]) - row_position[row - 1])
                events = abs(np.int64(row_event[row]) - row_event[row - 1])
                if events > 1:  # only between segments: events of bases that neither of them has a k-mer for
                    if kind != _INSERTION:
                        at = _append_operation(out, at, pending, kind)
                        kind = _INSERTION
                        pending = np.int64(0)
                    pending += events - 1
                if kmers > 1:
                    at = _append_operation(out, at, pending, kind)
                    at = _append_operation(out, at, kmers - 1, _SKIP if row_state[row] & _NEW_SEGMENT else _DELETION)
                    kind = _MATCH
                    pending = np.int64(1)
                else:
                    wanted = _MATCH if kmers == 1 else _INSERTION
                    if kind != wanted:
                        at = _append_operation(out, at, pending, kind)
                        kind = wanted
                        pending = np.int64(0)
                    pending += 1
            at = _append_operation(out, at, pending, kind)
        offsets[read + 1] = at


class EventalignSam:
    """Format a record per read with rows; thread-safe.

    Version 2 is the read's own record with the tags ``si`` (first and last sample, first and last k-mer), ``ss``,
    ``sc`` (scale) and ``sh`` (shift). Version 1, nanopolish's, is an alignment of events to k-mers: the query of its
    CIGAR counts events, its reference k-mers, and the tag ``ES`` is the direction of the event numbers. Unlike f5c,
    version 1 supports alignments with skipped reference (N in the CIGAR): it has N there too, and events between the
    two sides are inserted. `header` is that of the alignment file. Batches need their records.
    """

    def __init__(self, header: pysam.AlignmentHeader, version: int, rna: bool) -> None:
        self._header = header
        self._version = version
        self._rna = rna

    def header(self) -> bytes:
        """Return the alignment file's header, unchanged."""
        return undecoded(self._header.__str__)

    def format(self, batch: ReadBatch, first: int, end: int) -> bytes:
        """Format the records of the reads from `first` up to `end`."""
        return self._alignments(batch, first, end) if self._version == 2 else self._events(batch, first, end)

    def _alignments(self, batch: ReadBatch, first: int, end: int) -> bytes:
        strings = strings_of_rows(batch, first, end, self._rna)
        records = batch.records.of_reads(first, end).segments(self._header)
        ends = np.stack([strings.raw_start, strings.raw_end, strings.kmer_start, strings.kmer_end], axis=1).tolist()
        pieces = []
        for i in np.flatnonzero(strings.matches).tolist():
            read = first + i
            scaling = f"\tsc:f:{float(batch.scale[read]):g}\tsh:f:{float(batch.shift[read]):g}\n"
            pieces += [
                _without_own_tags(_as_text(records[i])),
                b"\tsi:Z:%d,%d,%d,%d\tss:Z:" % tuple(ends[i]),
                strings[i],
                scaling.encode(),
            ]
        return b"".join(pieces)

    def _events(self, batch: ReadBatch, first: int, end: int) -> bytes:
        n_rows, rows = batch.rows.n[first:end], batch.rows
        text = np.empty(int(n_rows.sum()) * MAX_OPERATIONS, np.uint8)  # mostly never touched, so never given memory
        offsets = np.empty(end - first + 1, np.int64)
        format_cigars(text, offsets, n_rows, batch.events.offsets[first:end], rows.event, rows.position, rows.state)
        records = batch.records.of_reads(first, end).segments(self._header)
        pieces = []
        for i in np.flatnonzero(n_rows).tolist():
            read = first + i
            row = batch.events.offsets[read]
            last_row = row + batch.rows.n[read] - 1
            record = records[i]
            start = (
                f"{batch.names[read]}.template\t{16 if batch.reverse[read] else 0}\t{record.reference_name}\t"
                f"{batch.rows.position[row] + 1}\t{record.mapping_quality}\t"
            )
            goes_up = batch.rows.event[row] < batch.rows.event[last_row]
            pieces += [
                encoded(start),
                text[offsets[i] : offsets[i + 1]].tobytes(),
                b"\t*\t0\t0\t*\t*\tES:i:%d\n" % (1 if goes_up else -1),
            ]
        return b"".join(pieces)


def _as_text(record: pysam.AlignedSegment) -> bytes:
    try:
        return undecoded(record.to_string)
    except ValueError:
        raise InputFileError(
            f"read {read_name(record)}: its alignment record has damaged tags; make the alignments again"
        ) from None


def _without_own_tags(record: bytes) -> bytes:
    """Remove the tags of an earlier event alignment from a record's text."""
    fields = record.split(b"\t")
    tags = [field for field in fields[_FIRST_TAG:] if not field.startswith(_OWN_TAGS)]
    return b"\t".join(fields[:_FIRST_TAG] + tags)
