"""The outputs of resquiggle: f5c's bytes, and what they say about made-up maps."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.batch import BaseMap, Cause, ReadBatch, ReadStatus
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.errors import UnsupportedDataError
from f5py.outputs.formatted_text import OrderedFormatter
from f5py.outputs.resquiggle.resquiggle_writer import ResquigglePaf, ResquiggleTable
from f5py.text.encoding import PartialTextError

from ..examples import examples
from .made_rows import K, MadeRead, parse_paf, rows_batch, walk_ends

Map = list[tuple[int, int] | None]


def map_batch(reads: list[Map], rna: bool) -> ReadBatch:
    """Make reads with a base-to-event map: per k-mer its first and last event, or None.

    Event i takes the samples from 100 + 10 * i on, counted against time in RNA.
    """
    n_events = [max((ends[1] for ends in read if ends), default=0) + 1 for read in reads]
    step = -1 if rna else 1
    events = [([100 + 10 * i for i in range(n)][::step], [10] * n) for n in n_events]
    batch = rows_batch([MadeRead(False, *table, []) for table in events])
    batch.base_offsets = offsets_of(np.array([len(read) + K - 1 for read in reads]))
    first_event, last_event = np.full((2, batch.base_offsets[-1]), -1, np.int32)
    batch.base_map = BaseMap(batch.base_offsets, first_event, last_event)
    for read, first in zip(reads, batch.base_offsets.tolist(), strict=False):
        for kmer, ends in enumerate(read, first):
            if ends:
                first_event[kmer], last_event[kmer] = ends
    return batch


@st.composite
def maps(draw: st.DrawFn) -> Map:
    """Draw a map in which events follow one another, with k-mers that have none anywhere."""
    found: Map = []
    event = 0
    for count in draw(st.lists(st.integers(0, 3), min_size=1, max_size=40)):
        found.append((event, event + count - 1) if count else None)
        event += count
    return found


def intervals(read: Map, rna: bool) -> dict[int, tuple[int, int]]:
    """First sample and end of every k-mer that has events, in the order of the signal."""
    n_events = max((ends[1] for ends in read if ends), default=0) + 1
    found = {}
    for kmer, ends in enumerate(read):
        if ends and rna:
            found[kmer] = (100 + 10 * (n_events - 1 - ends[1]), 110 + 10 * (n_events - 1 - ends[0]))
        elif ends:
            found[kmer] = (100 + 10 * ends[0], 110 + 10 * ends[1])
    return dict(sorted(found.items(), reverse=rna))


@pytest.mark.parametrize("rna", [False, True])
@settings(deadline=None, max_examples=examples(100))
@given(reads=st.lists(maps(), min_size=1, max_size=4))
def test_table_says_what_the_map_says(rna, reads):
    batch = map_batch(reads, rna)
    table = ResquiggleTable(rna, K)
    rows = [line.split("\t") for line in bytes(table.format(batch, 0, len(batch))).decode().splitlines()]
    expected = []
    for read, name in zip(reads, batch.names, strict=True):
        found = intervals(read, rna)
        for kmer in range(len(read))[:: -1 if rna else 1]:
            expected.append([name, str(kmer), *map(str, found.get(kmer, (".", ".")))])
    assert rows == expected


@pytest.mark.parametrize("rna", [False, True])
@settings(deadline=None, max_examples=examples(100))
@given(reads=st.lists(maps(), min_size=1, max_size=4))
def test_paf_leads_back_to_the_map(rna, reads):
    batch = map_batch(reads, rna)
    lines = parse_paf(ResquigglePaf(rna, K).format(batch, 0, len(batch)))
    for read, name in zip(reads, batch.names, strict=True):
        found = intervals(read, rna)
        if not found:
            continue
        line = lines.pop(0)
        pieces, passed = walk_ends(line.tags["ss:Z"], line.raw_start, line.kmer_start, line.kmer_end, rna, False)
        assert pieces == [(kmer, *ends) for kmer, ends in found.items()]
        assert passed == abs(line.kmer_end - line.kmer_start)
        assert (line.name, line.target, line.strand, line.quality) == (name, name, "+", 255)
        assert line.target_length == line.block == len(read)
        assert line.matches == len(pieces)
        assert line.raw_end == pieces[-1][2]
    assert not lines


def test_reads_that_have_dropped_out_or_are_shorter_than_a_kmer_have_no_lines():
    batch = map_batch([[(0, 1)], [(0, 0)], []], rna=False)
    batch.drop(np.array([True, False, False]), ReadStatus.NOT_CALIBRATED, Cause.NOISY)
    batch.base_offsets[-1] -= 2  # the last read is now shorter than a k-mer
    assert bytes(ResquiggleTable(False, K).format(batch, 0, 3)) == b"read_1\t0\t100\t110\n"
    assert [line.name for line in parse_paf(ResquigglePaf(False, K).format(batch, 0, 3))] == ["read_1"]
    assert bytes(ResquiggleTable(False, K).format(batch, 1, 1)) == b""


@pytest.mark.parametrize("rna", [False, True])
def test_rows_end_before_an_interval_that_is_empty_or_negative(rna):
    read: Map = [(0, 0), (1, 2), (3, 3)]
    batch = map_batch([read, read, read], rna)
    batch.base_map.first_event[batch.base_offsets[1] + 1] = 3  # after its last
    table = ResquiggleTable(rna, K)
    good = bytes(table.format(batch, 0, 1))
    first_row = good.splitlines(keepends=True)[0].replace(b"read_0", b"read_1")
    for first, end, expected in ((0, 3, good + first_row), (1, 2, first_row)):
        with pytest.raises(PartialTextError) as stopped:
            table.format(batch, first, end)
        assert bytes(stopped.value.text) == expected
        assert isinstance(stopped.value.problem, UnsupportedDataError)
        assert "read_1: the samples of k-mer 1 end before" in str(stopped.value.problem)
    assert table.format(batch, 2, 3)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_nothing_is_written_behind_a_bad_kmer(n_threads):
    """The reads are formatted one by one in several threads; those after the bad one are good."""
    read: Map = [(0, 0), (1, 2), (3, 3)]
    batch = map_batch([read] * 6, False)
    batch.base_map.first_event[batch.base_offsets[2] + 1] = 3
    table = ResquiggleTable(False, K)
    out = io.BytesIO()
    formatter = OrderedFormatter(n_threads)
    with pytest.raises(UnsupportedDataError, match="read_2: the samples of k-mer 1 end before"):
        formatter.write(out, batch, table.format, np.full(6, 100_000))
    formatter.close()
    assert out.getvalue() == bytes(table.format(batch, 0, 2)) + b"read_2\t0\t100\t110\n"


def test_names_that_are_not_utf8_come_out_as_they_were():
    batch = map_batch([[(0, 1)]], rna=False)
    batch.names = Names.of([b"caf\xe9".decode("utf-8", "surrogateescape")])
    assert bytes(ResquiggleTable(False, K).format(batch, 0, 1)).startswith(b"caf\xe9\t0\t")
    assert ResquigglePaf(False, K).format(batch, 0, 1).startswith(b"caf\xe9\t")
