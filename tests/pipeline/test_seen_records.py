"""Records that repeat an earlier one are found, and no others."""

from __future__ import annotations

import numpy as np
import pysam
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.io.bam._bam_numba import DUPLICATE, KEPT, SECONDARY
from f5py.io.bam.bam_records import encode_chunks
from f5py.pipeline.record_filter import SeenRecords

HEADER = pysam.AlignmentHeader.from_references(["a", "b"], [10_000, 10_000])
#: Name, contig, position, strand, CIGAR, other flags, whether a filter has left it out.
RECORDS = st.tuples(
    st.sampled_from(["r", "rr", "s"]), st.integers(0, 1), st.sampled_from([0, 1, 256]), st.booleans(),
    st.sampled_from(["4M", "2M1D2M", "4="]), st.sampled_from([0, 256, 1024, 2048]), st.booleans(),
)  # fmt: skip


def record(name, contig, start, reverse, cigar, flags):
    made = pysam.AlignedSegment(HEADER)
    made.query_name, made.reference_id, made.reference_start = name, contig, start
    made.flag, made.cigarstring, made.query_sequence = flags | 16 * reverse, cigar, "ACGT"
    return made


@settings(deadline=None)
@given(records=st.lists(RECORDS, min_size=1, max_size=60), at_most=st.integers(1, 20))
def test_those_that_were_seen(records, at_most):
    seen, expected_seen, at = SeenRecords(), set(), 0
    for data, starts, n in encode_chunks([record(*one[:6]) for one in records], HEADER, at_most):
        kinds = np.array([SECONDARY if one[6] else KEPT for one in records[at : at + n]], np.uint8)
        expected = kinds.copy()
        for i, (*key, flags, is_left_out) in enumerate(records[at : at + n]):
            if is_left_out:
                continue
            if flags == 1024 or tuple(key) in expected_seen:
                expected[i] = DUPLICATE
            else:
                expected_seen.add(tuple(key))
        seen.mark(data, starts, n, kinds)
        assert kinds.tolist() == expected.tolist()
        at += n


def test_many():
    """The set grows, and forgets nothing."""
    seen = SeenRecords()
    made = [record(f"read{i}", 0, i % 9, False, "4M", 0) for i in range(6000)]
    for wanted in (KEPT, DUPLICATE):
        for data, starts, n in encode_chunks(made, HEADER, 700):
            kinds = np.full(n, KEPT, np.uint8)
            seen.mark(data, starts, n, kinds)
            assert set(kinds.tolist()) == {wanted}
