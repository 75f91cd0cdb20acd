"""Made-up alignment records, and batches of them as methylation calling leaves them."""

from __future__ import annotations

import array
from typing import NamedTuple

import numpy as np
import pysam

from f5py.core.batch import Calls
from f5py.core.offsets import offsets_of
from f5py.io.bam.bam_records import RawRecords

from ..made_batches import read_batch

REVERSE, SECONDARY, SUPPLEMENTARY = 16, 256, 2048
HEADER = pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6", "SO": "coordinate"}, "SQ": [{"SN": "chr1", "LN": 5000}]})
#                  0         1         2
#                  0123456789012345678901234567
GENOME = "AACGTTCCGATCGAACCGGTTACGCATA"


def made_record(sequence, cigar, start=0, flag=0, name="r", quality=60, header=HEADER, **tags):
    record = pysam.AlignedSegment(header)
    record.query_name = name
    record.flag = flag
    record.reference_id = 0
    record.reference_start = start
    record.mapping_quality = quality
    record.query_sequence = sequence
    record.cigarstring = cigar
    if sequence is not None:
        record.query_qualities = array.array("B", [7] * len(sequence))
    for tag, value in tags.items():
        record.set_tag(tag, value)
    return record


def made_batch(genome, records, calls, passed_over=()):
    """Make a batch of `records` on `genome` as calling leaves it; a call is (first, last, sites, ratio)."""
    n = len(records)
    ends = np.array([record.reference_end for record in records])
    segments = [genome[record.reference_start : end + 1].encode() for record, end in zip(records, ends, strict=True)]
    cigars = [[length << 4 | kind for kind, length in record.cigartuples] for record in records]
    flat = [call for of_read in calls for call in [*of_read, (0, 0, 99, 0.0)]]  # one element of each read is unused
    return read_batch(
        n,
        names=[record.query_name for record in records],
        reference_start=np.array([record.reference_start for record in records]),
        reference_end=ends,
        reverse=np.array([record.is_reverse for record in records], np.bool_),
        cigar=np.array([piece for cigar in cigars for piece in cigar], np.uint32),
        cigar_offsets=offsets_of(np.array([len(cigar) for cigar in cigars])),
        reference=np.frombuffer(bytearray().join(segments), np.uint8),
        reference_offsets=offsets_of(np.array([len(segment) for segment in segments])),
        calls=Calls(
            offsets_of(np.array([len(of_read) + 1 for of_read in calls])),
            np.array([len(of_read) for of_read in calls]),
            np.array([call[0] for call in flat], np.int64),
            np.array([call[1] for call in flat], np.int64),
            np.array([call[2] for call in flat], np.int32),
            np.array([call[3] - 900 for call in flat], np.float32),
            np.full(len(flat), -900, np.float32),
        ),
        records=raw_records(records, passed_over),
    )


def raw_records(records, passed_over=()):
    """Encode a batch's records; one that was left out comes with the read before which it stands."""
    merged = list(enumerate(records))
    for before, record in reversed(passed_over):
        merged.insert(before, (-1, record))
    raw = RawRecords.of([record for _, record in merged], records[0].header if records else HEADER)
    raw.read = np.array([read for read, _ in merged], np.int64)
    return raw


def has_tags(tags, read):
    return bool(tags.probability_offsets[read] < tags.probability_offsets[read + 1])


def listed_tags(tags, read):
    """List a read's tags as (name, value), as pysam takes them."""
    values = tags.probability[tags.probability_offsets[read] : tags.probability_offsets[read + 1]]
    return [
        ("MM", tags.text[tags.text_offsets[read] : tags.text_offsets[read + 1]].tobytes().decode()),
        ("ML", array.array("B", values.tobytes())),
        ("MN", int(tags.length[read])),
    ]


class ModifiedBase(NamedTuple):
    position: int  # in SEQ
    base: str  # as sequenced
    code: str
    probability: int  # the byte


def modified_bases(record):
    """List the calls of a record, as htslib reads its tags, by position."""
    found = record.modified_bases or {}
    return sorted(
        ModifiedBase(at, base, code, value) for (base, _, code), calls in found.items() for at, value in calls
    )
