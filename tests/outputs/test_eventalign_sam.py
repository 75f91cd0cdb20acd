"""SAM of event alignment: f5c's bytes, and what pysam reads in it."""

from __future__ import annotations

import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.errors import OutputFileError
from f5py.io.bam.bam_records import RawRecords
from f5py.outputs.events.eventalign_sam import EventalignSam, SamToBam

from ..examples import examples
from .made_rows import CONTIG_LENGTHS, CONTIGS, MadeRead, made_reads, rows_batch, walk_ends

HEADER = pysam.AlignmentHeader.from_references(CONTIGS, CONTIG_LENGTHS)
MATCH, INSERTION, DELETION, SKIP, CLIP = range(5)


def with_records(reads: list[MadeRead], tags: str = "NM:i:3"):
    """Make a batch whose reads have records."""
    batch = rows_batch(reads)
    records = []
    for i, read in enumerate(reads):
        line = f"{batch.names[i]}\t{16 * read.reverse}\t{CONTIGS[i % 2]}\t8\t60\t4M\t*\t0\t0\tACGT\t*\t{tags}"
        records.append(pysam.AlignedSegment.fromstring(line, HEADER))
    batch.records = RawRecords.of(records, HEADER)
    return batch


@pytest.mark.parametrize("rna", [False, True])
@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_strings_lead_back_to_the_rows(rna, data):
    reads = data.draw(st.lists(made_reads(rna), min_size=1, max_size=3))
    batch = with_records(reads)
    lines = EventalignSam(HEADER, 2, rna).format(batch, 0, len(batch)).decode().splitlines()
    for i, read in enumerate(reads):
        if not read.rows:
            continue
        record = pysam.AlignedSegment.fromstring(lines.pop(0), HEADER)
        ends = list(map(int, record.get_tag("si").split(",")))
        pieces, _ = walk_ends(record.get_tag("ss"), ends[0], ends[2], ends[3], rna, read.reverse)
        assert pieces == read.intervals(rna)
        assert record.query_name == batch.names[i]
        assert record.get_tag("sc") == pytest.approx(float(batch.scale[i]), rel=1e-5)
        assert record.get_tag("sh") == pytest.approx(float(batch.shift[i]), rel=1e-5)
    assert not lines


@settings(deadline=None, max_examples=examples(150))
@given(read=made_reads(False))
def test_version_1_leads_back_to_the_rows(read):
    batch = with_records([read])
    text = EventalignSam(HEADER, 1, rna=False).format(batch, 0, 1).decode()
    if not read.rows:
        assert text == ""
        return
    record = pysam.AlignedSegment.fromstring(text.rstrip("\n"), HEADER)
    event = first_event = read.rows[0][0]
    position = record.reference_start - 1  # of the k-mer before the first
    step = record.get_tag("ES")
    assert step == (1 if first_event < read.rows[-1][0] else -1)
    found, jumps = {}, []
    for operation, length in record.cigartuples:
        if operation == CLIP:
            assert length == first_event
        elif operation in (DELETION, SKIP):
            position += length
            jumps.append((operation, length))
        else:
            for _ in range(length):
                position += operation == MATCH
                found[event] = position
                event += step
    for number, position, _ in read.rows:
        assert found[number] == position
    assert event == read.rows[-1][0] + step
    expected = []
    for (_, before, _), (_, position, new_segment) in zip(read.rows, read.rows[1:], strict=False):
        if position - before > 1:
            expected.append((SKIP if new_segment else DELETION, position - before - 1))
    assert jumps == expected
    assert record.query_name == "read_0.template"
    assert record.flag == 16 * read.reverse
    assert record.mapping_quality == 60


def test_version_1_of_a_spliced_read():
    events = [10 * i for i in range(8)], [10] * 8
    rows = [(1, 20, False), (2, 21, False), (3, 21, False), (6, 500, True), (7, 503, False)]
    batch = with_records([MadeRead(False, *events, rows)])
    text = EventalignSam(HEADER, 1, rna=False).format(batch, 0, 1)
    assert text.split(b"\t")[5] == b"1S2M3I478N1M2D1M"


def test_tags_of_an_earlier_run_are_replaced():
    read = MadeRead(False, [5], [10], [(0, 7, False)])
    batch = with_records([read], "sc:f:9\tNM:i:3\tss:Z:1,\tsi:Z:1,2,3,4\tsh:f:8\tAS:i:5")
    fields = EventalignSam(HEADER, 2, rna=False).format(batch, 0, 1).decode().rstrip("\n").split("\t")
    assert [field[:4] for field in fields[11:]] == ["NM:i", "AS:i", "si:Z", "ss:Z", "sc:f", "sh:f"]
    assert fields[13:15] == ["si:Z:5,15,7,8", "ss:Z:10,"]


def test_records_that_bam_cannot_take(tmp_path):
    path = tmp_path / "out.bam"
    record = b"\t0\t%s\t8\t60\t4M\t*\t0\t0\tACGT\t*\n" % CONTIGS[0].encode()
    with path.open("wb") as out, SamToBam(out, str(path), HEADER, 1) as bam:
        bam.write(b"n" * 254 + record)
        with pytest.raises(OutputFileError, match=r"out.bam: the record of n{255} has a name of 255 bytes, but 254"):
            bam.write(b"n" * 255 + record)
        with pytest.raises(OutputFileError, match=r"out.bam: the record of caf\\xe9 is not valid; leave the read out"):
            bam.write(b"caf\xe9" + record.replace(b"4M", b"4?"))
    with pysam.AlignmentFile(str(path)) as file:
        assert [record.query_name for record in file] == ["n" * 254]
