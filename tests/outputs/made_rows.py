"""Made-up reads with rows of an event alignment, and a plain reader of ss strings."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from f5py.core.batch import Events, ReadBatch, Rows, RowState
from f5py.core.offsets import offsets_of

from ..made_batches import read_batch

CONTIGS = ["one", "two"]
CONTIG_LENGTHS = [50_000, 40_000]
SAMPLING_RATE = 4000.0
K = 6


@dataclass
class MadeRead:
    """Rows of one read. `rows` are (event, position, new segment), with positions going up."""

    reverse: bool
    event_start: list[int]
    event_length: list[int]
    rows: list[tuple[int, int, bool]]

    def intervals(self, rna: bool) -> list[tuple[int, int, int]]:
        """(position, first sample, end) of every position with rows, in the order of the signal."""
        spans: dict[int, list[int]] = {}
        for event, position, _ in self.rows:
            start = self.event_start[event]
            spans.setdefault(position, []).extend((start, start + self.event_length[event]))
        found = [(position, min(ends), max(ends)) for position, ends in spans.items()]
        return found[::-1] if self.reverse != rna else found


@st.composite
def made_reads(draw: st.DrawFn, rna: bool) -> MadeRead:
    """Rows as the event alignment makes them; in RNA event numbers go against time."""
    reverse = draw(st.booleans())
    lengths = draw(st.lists(st.integers(1, 120), min_size=1, max_size=60))
    starts = [draw(st.integers(0, 500))]
    for length in lengths[:-1]:
        starts.append(starts[-1] + length)
    if rna:
        starts, lengths = starts[::-1], lengths[::-1]
    position = draw(st.integers(0, 3000))
    event = draw(st.integers(0, len(lengths)))  # as many events before the first row
    rows = []
    while event < len(lengths):
        new_segment = bool(rows) and draw(st.integers(0, 9)) == 0
        if new_segment:
            position += draw(st.integers(2, 5000))
            event += draw(st.integers(0, 3))
        elif rows:
            position += draw(st.sampled_from([0, 0, 1, 1, 1, 2, 5]))
        if event < len(lengths):
            rows.append((len(lengths) - 1 - event if reverse else event, position, new_segment))
        event += 1
    return MadeRead(reverse, starts, lengths, rows)


def rows_batch(reads: list[MadeRead]) -> ReadBatch:
    """Make a batch of these reads."""
    n = len(reads)
    n_events = [len(read.event_start) for read in reads]
    event_offsets = offsets_of(np.array(n_events, np.int64))
    rng = np.random.default_rng(3)
    batch = read_batch(
        n,
        names=[f"read_{i}" for i in range(n)],
        read_index=np.arange(n) * 2 + 1,
        contig=np.arange(n, dtype=np.int32) % 2,
        reverse=np.array([read.reverse for read in reads], np.bool_),
        sample_offsets=np.arange(n + 1, dtype=np.int64) * 9000,
        events=Events.none()._replace(
            offsets=event_offsets,
            start=np.array([x for read in reads for x in read.event_start], np.int32),
            length=np.array([x for read in reads for x in read.event_length], np.int32),
        ),
        shift=rng.normal(0, 10, n).astype(np.float32),
        scale=rng.normal(1, 0.1, n).astype(np.float32),
        var=rng.normal(1, 0.1, n).astype(np.float32),
        rows=Rows(
            event_offsets,
            np.array([len(read.rows) for read in reads], np.int64),
            np.full(event_offsets[-1], -9, np.int32),
            np.full(event_offsets[-1], -9, np.int32),
            np.zeros(event_offsets[-1], np.uint8),
        ),
    )
    for read, first in zip(reads, event_offsets.tolist(), strict=False):
        for row, (event, position, new_segment) in enumerate(read.rows, first):
            batch.rows.event[row] = event
            batch.rows.position[row] = position
            batch.rows.state[row] = RowState.NEW_SEGMENT if new_segment else 0
    return batch


@dataclass
class PafLine:
    """The columns of a PAF line."""

    name: str
    n_samples: int
    raw_start: int
    raw_end: int
    strand: str
    target: str
    target_length: int
    kmer_start: int
    kmer_end: int
    matches: int
    block: int
    quality: int
    tags: dict[str, str]


def parse_paf(text: bytes) -> list[PafLine]:
    """Read PAF."""
    lines = []
    for line in text.decode().splitlines():
        fields = line.split("\t")
        numbers = [int(field) for field in (*fields[1:4], *fields[6:12])]
        tags = {tag[:4]: tag[5:] for tag in fields[12:]}
        lines.append(PafLine(fields[0], *numbers[:3], fields[4], fields[5], *numbers[3:], tags))
    return lines


def walk(ss: str, raw_start: int, kmer: int, step: int) -> tuple[list[tuple[int, int, int]], int]:
    """(k-mer, first sample, end) for each k-mer with samples, and the k-mers passed, which is those and the skipped."""
    assert re.fullmatch(r"(\d+[DI]|\d+,)*\d+,", ss)
    found = []
    cursor, passed = raw_start, 0
    for number, kind in re.findall(r"(\d+)([DI,])", ss):
        if kind == "D":
            passed += int(number)
        elif kind == "I":
            cursor += int(number)
        else:
            found.append((kmer + step * passed, cursor, cursor + int(number)))
            cursor += int(number)
            passed += 1
    return found, passed


def walk_ends(ss: str, raw_start: int, kmer_start: int, kmer_end: int, rna: bool, reverse: bool):
    """`walk` from the columns of PAF: from the k-mer at which the signal begins, in the signal's direction."""
    lowest, highest = (kmer_end, kmer_start - 1) if rna else (kmer_start, kmer_end - 1)
    return walk(ss, raw_start, highest, -1) if reverse != rna else walk(ss, raw_start, lowest, 1)
