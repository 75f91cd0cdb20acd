"""Alignment records decoded in bulk, against pysam, and what damage leaves of them."""

from __future__ import annotations

import array
import io
from pathlib import Path

import numpy as np
import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.errors import InputFileError
from f5py.io.bam.bam_records import RawRecords, RecordColumns, encode_chunks, record_chunks, tag_values
from f5py.io.bam.headers import parse_header
from f5py.io.bytes.bgzf_blocks import DamagedBlocksError
from f5py.text.encoding import undecoded

from ...examples import examples

HEADER = pysam.AlignmentHeader.from_references(["one", "two"], [1_000_000, 2_000_000])


def made_records(n: int, seed: int = 1) -> list[pysam.AlignedSegment]:
    rng = np.random.default_rng(seed)
    records = []
    for i in range(n):
        record = pysam.AlignedSegment(HEADER)
        record.query_name = f"read-{i}" + "x" * int(rng.integers(0, 200))
        record.flag = int(rng.choice([0, 16, 256, 2048, 1024]))
        record.reference_id = int(rng.integers(0, 2))
        record.reference_start = int(rng.integers(0, 900_000))
        record.mapping_quality = int(rng.integers(0, 60))
        kinds, sizes = rng.choice([0, 1, 2, 3, 7, 8], rng.integers(1, 30)).tolist(), rng.integers(1, 50, 30).tolist()
        operations = [(4, 3), *zip(kinds, sizes, strict=False), (5, 7)]
        length = sum(size for kind, size in operations if kind in (0, 1, 4, 7, 8))
        record.query_sequence = "".join(rng.choice(list("ACGT"), length))
        record.cigartuples = operations
        if rng.random() < 0.5:
            record.set_tag("pi", f"parent-{i}")
            record.set_tag("sp", int(rng.integers(0, 100_000)))
        if rng.random() < 0.5:
            record.set_tag("mv", array.array("b", [5] + [1] * int(rng.integers(0, 300))))
        if rng.random() < 0.5:
            record.set_tag("ns", int(rng.integers(0, 2**31)))
        records.append(record)
    return records


def bam_bytes(records: list[pysam.AlignedSegment], folder: Path) -> bytes:
    path = folder / "records.bam"
    with pysam.AlignmentFile(str(path), "wb", header=HEADER) as file:
        for record in records:
            file.write(record)
    return path.read_bytes()


def check(records: list[pysam.AlignedSegment], data, starts, n) -> None:
    columns = RecordColumns.of(data, starts, np.arange(n))
    for i, record in enumerate(records[:n]):
        name = columns.names[columns.name_offsets[i] : columns.name_offsets[i + 1]].tobytes().decode()
        cigar = columns.cigar[columns.cigar_offsets[i] : columns.cigar_offsets[i + 1]]
        parent = columns.parents[columns.parent_offsets[i] : columns.parent_offsets[i + 1]].tobytes().decode()
        assert name == record.query_name
        assert (columns.contig[i], columns.start[i]) == (record.reference_id, record.reference_start)
        assert columns.end[i] == (record.reference_end or record.reference_start)
        assert columns.reverse[i] == record.is_reverse
        assert [(int(piece) & 15, int(piece) >> 4) for piece in cigar] == (record.cigartuples or [])
        assert parent == (record.get_tag("pi") if record.has_tag("pi") else "")
        assert columns.split_start[i] == (record.get_tag("sp") if record.has_tag("sp") else -1)
        assert columns.split_length[i] == (record.get_tag("ns") if record.has_tag("ns") else -1)


@pytest.mark.parametrize("n", [0, 1, 50, 3000])
def test_columns_are_pysams(n: int, tmp_path: Path):
    records = made_records(n)
    found = 0
    for data, starts, count in record_chunks(io.BytesIO(bam_bytes(records, tmp_path)), 2):
        check(records[found:], data, starts, count)
        found += count
    assert found == n


def test_a_cigar_of_more_operations_than_a_record_has_room_for():
    """It stands in the tag CG."""
    record = pysam.AlignedSegment(HEADER)
    record.query_name, record.reference_id, record.reference_start = "long", 1, 5
    operations = [(0, 2), (2, 1)] * 40_000 + [(0, 3)]
    record.query_sequence = "A" * 80_003
    record.cigartuples = operations
    raw = RawRecords.of([record], HEADER)
    check([record], raw.data, raw.starts, 1)


def test_records_go_through_htslib_and_back():
    records = made_records(200)
    raw = RawRecords.of(records, HEADER)
    assert [record.to_string() for record in raw.segments(HEADER)] == [record.to_string() for record in records]
    some = raw.of_reads(50, 60)
    assert [record.query_name for record in some.segments(HEADER)] == [record.query_name for record in records[50:60]]
    parts = RawRecords.joined([raw.of_reads(0, 3), raw.of_reads(3, 7)])
    assert parts.read.tolist() == list(range(7))
    assert parts.data.tobytes() == raw.of_reads(0, 7).data.tobytes()
    sizes = [n for _, _, n in encode_chunks(records, HEADER, at_most=64)]
    assert sizes == [64, 64, 64, 8]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("x", "A", "x"), (-5, "c", "-5"), (250, "C", "250"), (-300, "s", "-300"), (60_000, "S", "60000"),
        (-70_000, "i", "-70000"), (4_000_000_000, "I", "4000000000"), (1.5, "f", "1.5"),
        ("some text", "Z", "some text"), ("", "Z", ""), (array.array("h", [1, -2]), None, "1,-2"),
    ],
)  # fmt: skip
def test_values_of_tags(value, kind: str | None, text: str):
    records = made_records(3)
    records[1].set_tag("HP", value, kind) if kind else records[1].set_tag("HP", value)
    raw = RawRecords.of(records, HEADER)
    assert tag_values(raw.data, raw.starts, np.arange(3), "HP") == [None, text, None]


def read_until_damage(content: bytes) -> tuple[int, bool]:
    """Count the records before the damage; also return whether there is any."""
    n = 0
    try:
        for _, _, count in record_chunks(io.BytesIO(content), 2):
            n += count
    except DamagedBlocksError:
        return n, True
    return n, False


N_WHOLE = 600


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Make a file of so many records."""
    return bam_bytes(made_records(N_WHOLE), tmp_path_factory.mktemp("whole"))


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_a_cut_file_has_its_first_records(whole: bytes, data):
    end_mark = 28
    cut_at = data.draw(st.integers(1, len(whole) - end_mark - 1))
    n, damaged = read_until_damage(whole[:cut_at])
    assert n <= N_WHOLE
    assert damaged or n < N_WHOLE  # a cut between two blocks shows in the missing end mark only


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_a_flipped_bit_is_noticed(whole: bytes, data):
    flipped = bytearray(whole)
    flipped[data.draw(st.integers(18, len(whole) - 29))] ^= 1 << data.draw(st.integers(0, 7))
    n, damaged = read_until_damage(bytes(flipped))
    header_field = n == N_WHOLE  # times and the like in a block's header mean nothing
    assert damaged or header_field


def test_records_that_cannot_be(tmp_path: Path):
    raw = RawRecords.of(made_records(5), HEADER)
    from f5py.io.bam._bam_numba import list_records

    for field, value in ((0, 3), (12, 0), (20, 1 << 30), (4, 2), (4, -2)):
        data = raw.data.copy()
        at = int(raw.starts[2]) + field
        size = 1 if field == 12 else 4
        data[at : at + size] = np.frombuffer(value.to_bytes(4, "little", signed=True), np.uint8)[:size]
        starts = np.empty(7, np.int64)
        assert list_records(data, 2, starts) == (2, True), field


def test_lines_come_back():
    text = "@HD\tVN:1.6\n@SQ\tSN:one\tLN:3000\n@RG\tID:a\tSM:b\n@CO\tfree text\n"
    assert str(parse_header(text)) == text


def test_what_is_not_utf8_stays_as_it_is():
    header = parse_header("@HD\tVN:1.6\n@CO\tfree \udcff text\n")
    assert undecoded(header.__str__) == b"@HD\tVN:1.6\n@CO\tfree \xff text\n"


@pytest.mark.parametrize("line", ["@SQ\tSN:one", "@SQ\tXN:one\tLN:3", "@SQ\tSN:one\tLN:many"])
def test_damaged_lines_are_told_in_one_line(line: str):
    with pytest.raises(
        InputFileError, match=r"^the header of the alignments is damaged \(.*make the alignments again$"
    ):
        parse_header(f"@HD\tVN:1.6\n{line}\n")
