"""Alignment records: filters, counters, windows and damage."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pysam
import pytest

from f5py.core.windows import Windows
from f5py.errors import InputFileError
from f5py.io.bam.alignments import AlignmentFile, RecordCounts
from f5py.io.bytes.bgzf_blocks import END_BLOCK
from f5py.io.bytes.watched_pipe import WatchedPipe

from ...patience import PATIENCE

LENGTHS = {"chr1": 5000, "chr2": 3000}
HEADER = {"HD": {"VN": "1.6", "SO": "coordinate"}, "SQ": [{"SN": n, "LN": x} for n, x in LENGTHS.items()]}


def write_bam(path, rows, index=True):
    """Rows are (contig, start, bases, flag, mapping quality), in order."""
    with pysam.AlignmentFile(str(path), "wb", header=HEADER) as file:
        for i, (contig, start, bases, flag, quality) in enumerate(rows):
            record = pysam.AlignedSegment(file.header)
            record.query_name = f"r{i}"
            record.flag = flag
            record.reference_id, record.reference_start = contig, start
            record.mapping_quality = quality
            if bases and not flag & 4:
                record.cigartuples = [(0, bases)]
            record.query_sequence = "A" * max(bases, 1)
            file.write(record)
    if index:
        pysam.index(str(path))
    return str(path)


def opened(path, min_mapq=20, secondary=False):
    return AlignmentFile(path, "unused.fa", min_mapq, secondary)


def names(records):
    return [(read_index, record.query_name) for read_index, record in records]


@pytest.fixture
def mixed(tmp_path):
    """One record for every way through the filters."""
    rows = [
        (0, 10, 50, 0, 60),
        (0, 20, 50, 0, 19),  # low
        (0, 30, 50, 256, 60),  # secondary
        (0, 40, 50, 256, 3),  # low comes first
        (0, 50, 50, 2048 + 1024 + 512, 60),  # supplementary, duplicate and bad quality are kept
        (0, 60, 0, 4, 60),  # unmapped, placed, with a quality
        (1, 5, 40, 16, 20),
        (-1, -1, 0, 4, 0),  # unmapped counts as low, because its quality is 0
    ]
    return write_bam(tmp_path / "m.bam", rows)


def test_filters_and_counters(mixed):
    file = opened(mixed)
    assert file.expected_records() == 6
    assert names(file.records()) == [(0, "r0"), (4, "r4"), (6, "r6")]
    assert file.counts == RecordCounts(unmapped=1, secondary=1, low_mapq=3, unmapped_low_mapq=1, kept=3)
    file.close()


def test_read_index_counts_what_windows_visit(mixed):
    file = opened(mixed)
    assert names(file.records(Windows([(0, 85, 100), (1, 0, 100)]))) == [(1, "r4"), (2, "r6")]
    file.close()


def test_every_record_of_the_windows_once_and_in_order(tmp_path):
    rng = np.random.default_rng(5)
    rows = sorted(
        (int(contig), int(rng.integers(0, 2500)), int(rng.integers(1, 500)), 0, 60)
        for contig in rng.integers(0, 2, 300)
    )
    file = opened(write_bam(tmp_path / "r.bam", rows))
    for _ in range(60):
        intervals = []
        for _ in range(rng.integers(1, 6)):
            start = int(rng.integers(0, 3200))
            intervals.append((int(rng.integers(0, 2)), start, start + int(rng.integers(1, 800))))
        expected = [
            f"r{i}"
            for i, (contig, start, bases, *_) in enumerate(rows)
            if any(c == contig and start < e and start + bases > s for c, s, e in intervals)
        ]
        found = names(file.records(Windows(intervals)))
        assert [name for _, name in found] == expected
        assert [i for i, _ in found] == list(range(len(expected)))
    file.close()


def test_position_missing_without_the_flag(tmp_path):
    file = opened(write_bam(tmp_path / "p.bam", [(0, 5, 9, 0, 60), (-1, -1, 9, 0, 60)], index=False))
    assert names(file.records()) == [(0, "r0")]
    assert file.counts.unmapped == 1
    file.close()


@pytest.fixture
def piped(tmp_path):
    """Return a function that makes a named pipe of some bytes."""
    threads = []

    def make(content: bytes) -> str:
        path = tmp_path / f"pipe{len(threads)}"
        os.mkfifo(path)

        def write() -> None:
            with suppress(BrokenPipeError), path.open("wb") as pipe:
                pipe.write(content)

        threads.append(threading.Thread(target=write))
        threads[-1].start()
        return str(path)

    yield make
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_named_pipe(mixed, tmp_path, piped):
    for kind in ("bam", "sam"):
        path = tmp_path / f"x.{kind}"
        pysam.view("-h", *(["-b"] if kind == "bam" else []), "-o", str(path), str(mixed), catch_stdout=False)
        file = opened(piped(path.read_bytes()))
        assert names(file.records()) == [(0, "r0"), (4, "r4"), (6, "r6")]
        assert file.is_pipe
        with pytest.raises(InputFileError, match="-w needs an indexed BAM file"):
            file.check_index()
        file.close()


def test_a_stream_whose_writer_has_died_between_two_blocks(mixed, piped):
    content = Path(mixed).read_bytes()
    assert content.endswith(END_BLOCK)
    file = opened(piped(content[: -len(END_BLOCK)]))
    with pytest.raises(InputFileError, match=r"truncated or damaged after 3 usable records \(it has no end mark\)"):
        names(file.records())
    file.close()

    file = opened(piped(content[: -len(END_BLOCK)]))
    n_records = 0
    with pytest.raises(InputFileError, match="it has no end mark"):  # noqa: PT012 - the records before are the point
        for _, _, n in file.chunks():
            n_records += n
    assert n_records == 8
    file.close()


def test_a_pipe_that_cannot_be_read_is_not_a_short_one(tmp_path):
    pipe = WatchedPipe(str(tmp_path))  # a folder can be opened and not read
    with open(pipe.descriptor, "rb") as passed_on:
        assert passed_on.read() == b""
    assert pipe.problem is not None
    assert pipe.problem.errno == errno.EISDIR
