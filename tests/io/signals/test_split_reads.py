from __future__ import annotations

import array

import numpy as np
import pysam
import pytest

from f5py.core.names import Names
from f5py.io.bam.bam_records import RawRecords, RecordColumns
from f5py.io.signals.source import BlockBuilder
from f5py.io.signals.split_reads import TO_THE_END, UNKNOWN_START, fetch_split

from .made_signals import CALIBRATION, MadeRead, assert_holds, assert_same_block, assert_unreadable

HEADER = pysam.AlignmentHeader.from_references(["chr1"], [1000])


def split_read_tags(records):
    """Make what the loader reads of the records' tags: parents, starts and lengths."""
    raw = RawRecords.of(records, HEADER)
    columns = RecordColumns.of(raw.data, raw.starts, np.arange(len(raw)))
    return Names(columns.parents, columns.parent_offsets), columns.split_start, columns.split_length


class Source:
    """Made reads, and what was asked for."""

    def __init__(self, reads: list[MadeRead], unreadable: tuple[str, ...] = ()) -> None:
        self._reads = {read.name: read for read in reads}
        self._unreadable = unreadable
        self.asked: list[list[str]] = []

    def fetch(self, names):
        self.asked.append(list(names))
        block = BlockBuilder(names, ["a.file"] * len(names))
        for i, name in enumerate(names):
            if name in self._unreadable:
                block.add(i, "has damaged signal data")
            elif name in self._reads:
                read = self._reads[name]
                block.add(i, (read.samples, [getattr(read, what) for what in CALIBRATION]))
            else:
                block.add(i, "is not in this file")
        return block.build()


def split(source, *reads):
    """Split `reads`, which are (name, parent, start, number of samples)."""
    names, parents, starts, lengths = zip(*reads, strict=True)
    return fetch_split(source, names, parents, np.array(starts), np.array(lengths))


def part(read: MadeRead, begin: int, end: int | None) -> MadeRead:
    values = {what: getattr(read, what) for what in CALIBRATION}
    return MadeRead("part", read.samples[begin:end], **values)


@pytest.fixture
def parent(made_reads):
    return max(made_reads, key=lambda read: read.samples.size)


def test_without_split_reads_the_source_is_asked_once(made_reads):
    source = Source(made_reads)
    names = [read.name for read in made_reads] + ["nobody"]
    block = split(source, *((name, "", UNKNOWN_START, TO_THE_END) for name in names))
    assert_same_block(block, Source(made_reads).fetch(names))
    assert source.asked == [names]


def test_parts_between_whole_reads(made_reads, parent):
    n = parent.samples.size
    source = Source(made_reads)
    block = split(
        source,
        ("part-a", parent.name, 0, 100),
        (made_reads[0].name, "", UNKNOWN_START, 7),
        ("part-b", parent.name, 100, n - 100),
        ("nobody", "", UNKNOWN_START, TO_THE_END),
        ("part-c", made_reads[1].name, 3, TO_THE_END),
        (parent.name, "", UNKNOWN_START, TO_THE_END),
        ("part-d", parent.name, n - 1, 1),
    )
    assert_holds(block, 0, part(parent, 0, 100))
    assert_holds(block, 1, made_reads[0])
    assert_holds(block, 2, part(parent, 100, None))
    assert_unreadable(block, 3, "nobody", "is not in this file")
    assert_holds(block, 4, part(made_reads[1], 3, None))
    assert_holds(block, 5, parent)
    assert_holds(block, 6, part(parent, n - 1, None))
    assert list(block.problems) == [3]
    assert source.asked[1:] == [[parent.name, made_reads[1].name]]  # each parent once
    assert block.samples.dtype == np.int16
    assert block.offsets.dtype == np.int64


def test_a_part_that_ends_beyond_its_parent_is_cut_there(made_reads, parent, capfd):
    n = parent.samples.size
    block = split(Source(made_reads), ("part-a", parent.name, 5, n), ("part-b", parent.name, n, 1))
    assert_holds(block, 0, part(parent, 5, None))
    assert_unreadable(block, 1, "part-b", f"is to be samples {n} to {n + 1}")
    assert "1 of 2 split reads of a batch end beyond their parents' last samples" in capfd.readouterr().err


def test_a_part_that_the_source_knows_by_its_own_name_is_taken_whole(made_reads, parent):
    own = made_reads[0]
    block = split(Source(made_reads), (own.name, parent.name, 5, 10), ("part", parent.name, 5, 10))
    assert_holds(block, 0, own)
    assert_holds(block, 1, part(parent, 5, 15))
    block = split(Source(made_reads), (own.name, "gone", 5, 10))
    assert_holds(block, 0, own)
    assert block.problems == {}


def test_a_part_outside_of_its_parent(made_reads, parent):
    n = parent.samples.size
    wrong = [(n, 1), (5, 0), (-2, 10), (n, TO_THE_END), (n + 9, TO_THE_END), (3, -5)]
    parts = [(f"part-{i}", parent.name, *where) for i, where in enumerate(wrong)]
    block = split(Source(made_reads), *parts, ("whole", parent.name, 0, n))
    for i in range(len(wrong)):
        assert_unreadable(block, i, f"part-{i}", parent.name, f"which has {n}", str(wrong[i][0]))
    assert_holds(block, len(wrong), parent)
    assert list(block.problems) == list(range(len(wrong)))


def test_a_record_that_does_not_say_where_the_part_is(made_reads, parent):
    block = split(Source(made_reads), ("part", parent.name, UNKNOWN_START, 5))
    assert_unreadable(block, 0, "part", parent.name, "tag sp", "samtools fastq -T pi,sp,ns")


def test_a_parent_that_is_missing_or_damaged(made_reads, parent):
    source = Source(made_reads, unreadable=(parent.name,))
    block = split(source, ("part-a", "gone", 0, 5), ("part-b", parent.name, 0, 5), ("part-c", "gone", 0, 5))
    assert_unreadable(block, 0, "a.file", "read gone", "is not in this file", "part-a")
    assert_unreadable(block, 1, "a.file", parent.name, "has damaged signal data", "part-b")
    assert_unreadable(block, 2, "gone", "part-c")


def test_duplex_reads_are_called_so(made_reads):
    template, complement = "0a0b0c0d-0000-4000-8000-00000000000a", "0a0b0c0d-0000-4000-8000-00000000000b"
    duplex = f"{template};{complement}"
    found = split(Source(made_reads), (duplex, "", 0, 0), (f"{template};x", "", 0, 0))
    assert found.problems[0].startswith(f"read {duplex} is a duplex read, which has no signal of its own")
    assert "is not in this file" in found.problems[1]


def record(**tags) -> pysam.AlignedSegment:
    made = pysam.AlignedSegment(HEADER)
    made.query_name = "r"
    for tag, value in tags.items():
        made.set_tag(tag, value)
    return made


def test_tags_of_records():
    records = [
        record(pi="parent", sp=1200, ns=3400, ts=10),
        record(ns=3400, ts=10),
        record(pi="parent"),
        record(pi="parent", sp=0),
        record(pi="parent", sp="text", ns=1.5),
        record(pi=array.array("B", [1, 2]), sp=3),
    ]
    parents, starts, lengths = split_read_tags(records)
    assert list(parents) == ["parent", "", "parent", "parent", "parent", ""]
    assert starts.tolist() == [1200, UNKNOWN_START, UNKNOWN_START, 0, UNKNOWN_START, 3]
    assert lengths.tolist() == [3400, 3400, TO_THE_END, TO_THE_END, TO_THE_END, TO_THE_END]
    assert starts.dtype == lengths.dtype == np.int64
