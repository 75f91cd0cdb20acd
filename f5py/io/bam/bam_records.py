"""Encoded BAM records and their columns."""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from f5py.core.names import Names
from f5py.core.offsets import concatenate_tuples, gather_slices, offsets_of
from f5py.io.bam._bam_numba import (
    CONTIG,
    FLAGS,
    IS_REVERSE,
    IS_UNMAPPED,
    NAME_LENGTH,
    POSITION,
    cigars_of,
    end_of_contigs,
    find_tags,
    list_records,
    split_tags,
)
from f5py.io.bam.bam_blocks import N_THREADS, READ_BYTES, inflate_portions
from f5py.io.bam.headers import FIXED_SIZE, TagChanges
from f5py.io.bytes.bgzf_blocks import END_BLOCK, MAX_BLOCK, DamagedBlocksError, bgzf_blocks
from f5py.io.files.memory_file import memory_file
from f5py.text.encoding import undecoded

if TYPE_CHECKING:
    import pysam

_MAGIC = b"BAM\1"
#: About the size of a group of records converted by htslib.
_CONVERTED_BYTES = 1 << 22
#: Struct formats of numeric tag types.
_NUMBERS = {b"c": "<b", b"C": "<B", b"s": "<h", b"S": "<H", b"i": "<i", b"I": "<I", b"f": "<f", b"d": "<d"}


class RecordColumns(NamedTuple):
    """Columns of n records."""

    names: NDArray[np.uint8]
    name_offsets: NDArray[np.int64]
    contig: NDArray[np.int32]
    start: NDArray[np.int64]  # 0-based
    end: NDArray[np.int64]  # exclusive
    reverse: NDArray[np.bool_]
    cigar: NDArray[np.uint32]  # length << 4 | operation
    cigar_offsets: NDArray[np.int64]
    parents: NDArray[np.uint8]  # names of the reads that these were split from (tag pi), or empty
    parent_offsets: NDArray[np.int64]
    split_start: NDArray[np.int64]  # tag sp, or -1
    split_length: NDArray[np.int64]  # tag ns, or -1

    @classmethod
    def of(cls, data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> RecordColumns:
        """Decode the chosen records; `starts` includes the end of the last one."""
        at = starts[chosen]
        names = record_names(data, starts, chosen)
        places, n_operations, span, parent, parent_size, *split = np.empty((7, len(chosen)), np.int64)
        cigars_of(data, starts, chosen, places, n_operations, span)
        cigar, cigar_offsets = gather_slices(data, places, 4 * n_operations)
        split_tags(data, starts, chosen, parent, parent_size, *split)
        parents = gather_slices(data, parent, parent_size)
        begin = fixed_numbers(data, at, POSITION, np.int32).astype(np.int64)
        return cls(
            names.text, names.offsets, fixed_numbers(data, at, CONTIG, np.int32), begin,
            begin + np.where(n_operations > 0, np.maximum(span, 1), 0),  # 1 as htslib takes it
            fixed_numbers(data, at, FLAGS, np.uint16) & IS_REVERSE != 0,
            cigar.view(np.uint32), cigar_offsets // 4, *parents, *split,
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: list[RecordColumns]) -> RecordColumns:
        return parts[0] if len(parts) == 1 else concatenate_tuples(parts)


@dataclass
class RawRecords:
    """Encoded records."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]  # shape (n + 1,): record i is ``data[starts[i]:starts[i + 1]]``
    read: NDArray[np.int64]  # shape (n,): the record's read in the batch, -1 for rejected records

    def __len__(self) -> int:
        return len(self.read)

    @classmethod
    def joined(cls, parts: list[RawRecords]) -> RawRecords:
        """Join records; reads are renumbered."""
        reads, n_reads = [], 0
        for part in parts:
            reads.append(np.where(part.read >= 0, part.read + n_reads, -1))
            n_reads += int((part.read >= 0).sum())
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(part.starts) for part in parts)])
        data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
        return cls(data, offsets_of(sizes), np.concatenate([np.empty(0, np.int64), *reads]))

    @classmethod
    def of(cls, records: Iterable[pysam.AlignedSegment], header: pysam.AlignmentHeader) -> RawRecords:
        """Encode records, one per read."""
        parts = []
        for data, starts, n in encode_chunks(records, header):
            parts.append(cls(data, starts[: n + 1], np.arange(n)))
        return cls.joined(parts)

    def of_reads(self, first: int, end: int) -> RawRecords:
        """Return the records of reads `first` to `end` - 1."""
        chosen = np.flatnonzero((self.read >= first) & (self.read < end))
        return RawRecords(*chosen_records(self.data, self.starts, chosen), self.read[chosen] - first)

    def segments(self, header: pysam.AlignmentHeader) -> list[pysam.AlignedSegment]:
        return segments_of(self.data, header)


def segments_of(data: NDArray[np.uint8], header: pysam.AlignmentHeader) -> list[pysam.AlignedSegment]:
    """Decode records to pysam objects."""
    import pysam

    with memory_file("f5py records") as file:
        # htslib warns of a file without an end block
        file.writelines([*bgzf_blocks(bam_header(header) + data.tobytes()), END_BLOCK])
        file.seek(0)
        with pysam.AlignmentFile(file, "rb", check_sq=False) as records:
            return list(records.fetch(until_eof=True))


def bam_header(header: pysam.AlignmentHeader) -> bytes:
    """Encode a BAM header."""
    text = undecoded(header.__str__)
    pieces = [_MAGIC, struct.pack("<i", len(text)), text, struct.pack("<i", header.nreferences)]
    for name, length in zip(header.references, header.lengths, strict=True):
        encoded = name.encode("utf-8", "surrogateescape") + b"\0"
        pieces += [struct.pack("<i", len(encoded)), encoded, struct.pack("<i", length)]
    return b"".join(pieces)


def _tag_places(
    data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64], tag: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the begin of a tag's type and the end of its value, both -1 for records without it."""
    begin, end = np.empty((2, len(chosen)), np.int64)
    find_tags(data, starts, chosen, np.uint16(int.from_bytes(tag.encode("latin-1"), "little")), begin, end)
    return begin, end


def tag_texts(
    data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64], tag: str
) -> tuple[NDArray[np.int32], list[str]]:
    """Return the index of each chosen record's value of a tag (-1: none), and the distinct values."""
    begin, end = _tag_places(data, starts, chosen, tag)
    has_tag = begin >= 0
    begin, sizes = begin[has_tag], (end - begin)[has_tag]
    values = np.zeros((len(begin), sizes.max(initial=1)), np.uint8)
    values[np.arange(values.shape[1]) < sizes[:, np.newaxis]] = gather_slices(data, begin, sizes)[0]
    # a shorter value is no beginning of a longer one: the type comes first, and text ends with a zero
    _, first, which = np.unique(values.view(f"S{values.shape[1]}")[:, 0], return_index=True, return_inverse=True)
    index = np.full(len(chosen), -1, np.int32)
    index[has_tag] = which
    return index, [_value_text(data[begin[i] : begin[i] + sizes[i]].tobytes()) for i in first.tolist()]


def tag_values(
    data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64], tag: str
) -> list[str | None]:
    """Return the chosen records' values of a tag as text, None for a record without it."""
    index, texts = tag_texts(data, starts, chosen, tag)
    return [None if i < 0 else texts[i] for i in index.tolist()]


def change_tag_values(
    data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, changes: TagChanges
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Change values of tags in `n` records; return the records and their offsets."""
    if not changes:
        return data, starts
    for changed in dict.fromkeys(tag for tag, _ in changes):
        begins, ends = _tag_places(data, starts, np.arange(n), changed)
        records = []
        for start, end, begin, stop in zip(starts, starts[1:], begins, ends, strict=False):
            record = data[start:end].tobytes()
            value = data[begin + 1 : stop - 1].tobytes().decode("utf-8", "surrogateescape")
            if begin >= 0 and data[begin] == ord("Z") and (changed, value) in changes:
                changed_value = changes[changed, value].encode("utf-8", "surrogateescape")
                record = record[4 : begin + 1 - start] + changed_value + record[stop - 1 - start :]
                record = struct.pack("<i", len(record)) + record
            records.append(record)
        data, starts = np.frombuffer(bytearray().join(records), np.uint8), offsets_of(list(map(len, records)))
    return data, starts


def record_places(
    data: NDArray[np.uint8], starts: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return contig, -1 for none, start and end of `n` records. Without reference bases they have a length of one."""
    contig, begin = (fixed_numbers(data, starts[:n], at, np.int32) for at in (CONTIG, POSITION))
    span = np.empty((3, n), np.int64)
    cigars_of(data, starts, np.arange(n), *span)
    is_mapped = fixed_numbers(data, starts[:n], FLAGS, np.uint16) & IS_UNMAPPED == 0
    return contig, begin.astype(np.int64), begin + np.maximum(span[2] * is_mapped, 1)


def chosen_records(
    data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Copy the chosen records; return them and their offsets."""
    return gather_slices(data, starts[chosen], starts[chosen + 1] - starts[chosen])


def record_names(data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> Names:
    sizes = data[starts[chosen] + NAME_LENGTH].astype(np.int64) - 1
    return Names(*gather_slices(data, starts[chosen] + FIXED_SIZE, sizes))


def fixed_numbers(data: NDArray[np.uint8], starts: NDArray[np.int64], at: int, kind: DTypeLike) -> NDArray:
    """Read the numbers of dtype `kind` at offset `at` of each record."""
    return data[starts[:, np.newaxis] + np.arange(at, at + np.dtype(kind).itemsize)].view(kind)[:, 0]


def record_name(data: NDArray[np.uint8], start: int) -> str:
    begin = start + FIXED_SIZE
    return data[begin : begin + 255].tobytes().split(b"\0")[0].decode("utf-8", "replace")


def _value_text(value: bytes) -> str:
    """Format a tag's value, type first, as text."""
    kind, content = value[:1], value[1:]
    if kind in _NUMBERS:
        return str(struct.unpack(_NUMBERS[kind], content)[0])
    if kind == b"B":
        numbers = struct.iter_unpack(_NUMBERS[content[:1]], content[5:])
        return ",".join(str(number) for (number,) in numbers)
    return content.rstrip(b"\0").decode("utf-8", "surrogateescape")


def record_chunks(
    file: BinaryIO,
    n_contigs: int,
    skipped: int | None = None,
    first_bytes: int = READ_BYTES,
    n_threads: int = N_THREADS,
) -> Generator[tuple[NDArray[np.uint8], NDArray[np.int64], int], None, None]:
    """Yield the records of a BAM file or stream from its current position, many at a time.

    They are ``data[starts[i]:starts[i + 1]]`` for i below the number that is yielded with these arrays, at least one.
    `skipped` are the bytes of text before the first record, by default those of the header. Raises
    `DamagedBlocksError` after the records before the damage, `OSError` for failed reads.
    """
    rest = np.empty(0, np.uint8)
    is_before = True
    with closing(inflate_portions(file, first_bytes, n_threads)) as portions:
        for portion in portions:
            # by NumPy, which lets other threads run while it copies much
            data = np.concatenate([rest, np.frombuffer(portion, np.uint8)])
            if is_before:
                end = header_end(data) if skipped is None else skipped
                if end is None or end > len(data):
                    rest = data
                    continue
                data = data[end:]
                is_before = False
            starts = np.empty(len(data) // FIXED_SIZE + 2, np.int64)
            n, damaged = list_records(data, n_contigs, starts)
            rest = data[starts[n] :].copy()
            if n:
                yield data, starts, n
            if damaged:
                raise DamagedBlocksError("a record is damaged")
    if len(rest) or is_before:
        raise DamagedBlocksError("the file is truncated")


def header_size(file: BinaryIO) -> int:
    """Return the bytes of a BAM header; raise as `f5py.io.bam.bam_blocks.inflate_portions`."""
    text = bytearray()
    with closing(inflate_portions(file, MAX_BLOCK, 1)) as portions:
        for portion in portions:
            text += portion
            if (end := header_end(text)) is not None:
                return end
    raise DamagedBlocksError("the file is truncated")


def header_end(data: bytearray | NDArray[np.uint8]) -> int | None:
    """Return the offset of the first record, None if the header is incomplete."""
    if len(data) < 8:
        return None
    if bytes(data[:4]) != _MAGIC:
        raise DamagedBlocksError("it is not BAM")
    at = 8 + int.from_bytes(data[4:8], "little")
    if len(data) < at + 4:
        return None
    end = int(end_of_contigs(np.frombuffer(data, np.uint8), at))
    return end if 0 <= end <= len(data) else None


def overlaps(record: pysam.AlignedSegment, contig: int, start: int, end: int) -> bool:
    """Return whether an aligned record overlaps a 0-based, half-open interval."""
    record_end = record.reference_end or record.reference_start
    return record.reference_id == contig and record.reference_start < end and record_end > start


def encode_chunks(
    records: Iterable[pysam.AlignedSegment], header: pysam.AlignmentHeader, at_most: int = 4096
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], int]]:
    """Encode pysam records as `record_chunks` yields them; raise their `OSError` at the end."""
    import pysam

    remaining = iter(records)
    bytes_at_a_time = max(_CONVERTED_BYTES, 4 * len(undecoded(header.__str__)))
    problem: OSError | None = None
    while problem is None:
        group, problem = _next_group(remaining, at_most, bytes_at_a_time)
        if not group:
            break
        with memory_file("f5py records") as file:
            with pysam.AlignmentFile(file, "wbu", header=header) as out:
                for record in group:
                    out.write(record)
            file.seek(0)
            yield from record_chunks(file, header.nreferences)
    if problem is not None:
        raise problem


def _next_group(
    records: Iterator[pysam.AlignedSegment], at_most: int, n_bytes: int
) -> tuple[list[pysam.AlignedSegment], OSError | None]:
    """Return the next records, up to a number and about a size, and the error after them."""
    group: list[pysam.AlignedSegment] = []
    size = 0
    try:
        for record in records:
            group.append(record)
            size += FIXED_SIZE + 2 * record.query_length
            if size >= n_bytes or len(group) >= at_most:
                break
    except OSError as problem:
        return group, problem
    return group, None
