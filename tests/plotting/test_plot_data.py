"""Data of a plot, from made batches whose alignment is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from f5py.core.batch import Events, ReadBatch, Rows, RowState
from f5py.errors import F5pyError
from f5py.plotting import data as plot_data
from f5py.plotting.data import PlotData, ReadSource, read_data, reference_data
from f5py.pore_model.model import PoreModel

from ..made_batches import read_batch

K = 2
DNA = ReadSource("made DNA", False, "contig")
RNA = ReadSource("made RNA", True, "contig")
READ = ReadSource("made DNA", False, None)
MODEL = PoreModel(
    "folder/made", K, "ACGT", np.arange(16, dtype=np.float32), np.arange(16, dtype=np.float32) / np.float32(8)
)
REFERENCE = b"ACGTTGCAAC"
START = 100
LENGTHS = [3, 5, 2, 4, 6, 3]


def made_batch(rows: list[tuple[int, int, int]], reverse: bool = False, rna: bool = False) -> ReadBatch:
    """Six events on ten bases; `rows` are event, position and state."""
    n_events = len(LENGTHS)
    length = np.array(LENGTHS, np.int32)
    start = (4 + np.cumsum(length) - length).astype(np.int32)  # after four samples that belong to no event
    event, position, state = np.array([(0, 0, 0)] * n_events).T
    event[: len(rows)], position[: len(rows)], state[: len(rows)] = np.array(rows, np.int64).reshape(-1, 3).T
    if rna:
        start, length = start[::-1].copy(), length[::-1].copy()
    return read_batch(
        1,
        names=["made"],
        reference_start=np.array([START]),
        reference_end=np.array([START + len(REFERENCE)]),
        reverse=np.array([reverse]),
        reference=np.frombuffer(REFERENCE, np.uint8),
        reference_offsets=np.array([0, len(REFERENCE)]),
        bases=np.frombuffer(REFERENCE, np.uint8),
        base_offsets=np.array([0, len(REFERENCE)]),
        samples=np.arange(40, dtype=np.int16),
        sample_offsets=np.array([0, 40]),
        offset=np.array([10], np.float32),
        unit=np.array([0.5], np.float32),
        events=Events(
            np.array([0, n_events]),
            start,
            length,
            np.arange(n_events, dtype=np.float32) + 50,
            np.ones(n_events, np.float32),
        ),
        shift=np.array([5], np.float32),
        scale=np.array([2], np.float32),
        var=np.array([4], np.float32),
        rows=Rows(
            np.array([0, n_events]),
            np.array([len(rows)]),
            event.astype(np.int32),
            position.astype(np.int32),
            state.astype(np.uint8),
        ),
    )


def letters(data: PlotData) -> str:
    return data.letter.tobytes().decode()


def kmers(data: PlotData) -> list[str]:
    return [kmer.tobytes().decode() for kmer in data.kmers]


# Event 2 is aligned to nothing, event 4 fits no k-mer, and position 102 has no event.
FORWARD = [(0, 100, 0), (1, 101, 0), (3, 103, 0), (4, 103, RowState.BAD), (5, 104, 0)]


def test_forward_read():
    data = reference_data(made_batch(FORWARD), 0, MODEL, DNA, None)
    assert data.strand == "+"
    assert not data.descending
    assert data.region == "contig:101-105"
    assert data.position.tolist() == [100, 101, 102, 103, 104]
    assert letters(data) == "ACGTT"
    assert kmers(data) == ["AC", "CG", "GT", "TT", "TG"]
    assert data.skipped.tolist() == [False, False, True, False, False]
    assert data.event_index.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.event_start.tolist() == [4, 7, 12, 14, 18, 24]
    assert data.event_length.tolist() == LENGTHS
    assert data.event_kmer.tolist() == [0, 1, -1, 3, 3, 4]
    assert data.event_bad.tolist() == [False, False, False, False, True, False]
    assert data.kmer_start.tolist() == [4, 7, 12, 14, 24]
    assert data.kmer_end.tolist() == [7, 12, 12, 24, 27]
    assert data.first_sample == 4
    assert data.current.dtype == np.float32
    assert data.current.tolist() == [(sample + 10) * 0.5 for sample in range(4, 27)]
    rank = [1, 6, 11, 15, 14]  # AC, CG, GT, TT, TG
    assert data.level.tolist() == [5 + 2 * r for r in rank]
    assert data.level_stdv.tolist() == [4 * r / 8 for r in rank]
    assert not data.new_segment.any()
    assert data.title == "made  contig:101-105 (+)"
    assert data.subtitle == "made DNA, model made, shift 5.00, scale 2.000, var 4.000"


@pytest.mark.parametrize("rna", [False, True])
def test_reverse_dna_and_rna_are_shown_in_the_signals_order_on_their_own_strand(rna: bool):
    rows = [(5, 100, 0), (4, 101, 0), (2, 103, 0), (1, 103, RowState.BAD), (0, 104, 0)]
    batch = made_batch(FORWARD, rna=True) if rna else made_batch(rows, reverse=True)
    data = reference_data(batch, 0, MODEL, RNA if rna else DNA, None)
    assert data.strand == ("+" if rna else "-")
    assert data.descending
    assert data.position.tolist() == [104, 103, 102, 101, 100]
    assert letters(data) == ("TTGCA" if rna else "AACGT")  # else the complements of TTGCA, from right to left
    assert kmers(data) == (["TG", "TT", "GT", "CG", "AC"] if rna else ["CA", "AA", "AC", "CG", "GT"])
    assert data.event_index.tolist() == ([5, 4, 3, 2, 1, 0] if rna else [0, 1, 2, 3, 4, 5])
    assert data.event_start.tolist() == [4, 7, 12, 14, 18, 24]
    assert data.event_mean.tolist() == ([55, 54, 53, 52, 51, 50] if rna else [50, 51, 52, 53, 54, 55])
    assert data.event_kmer.tolist() == [0, 1, 1, -1, 3, 4]
    assert data.event_bad.tolist() == [False, True, False, False, False, False]
    assert data.skipped.tolist() == [False, False, True, False, False]
    assert data.kmer_start.tolist() == [4, 7, 14, 18, 24]
    assert data.kmer_end.tolist() == [7, 14, 14, 24, 27]
    if not rna:
        assert data.level.tolist() == [5 + 2 * rank for rank in (4, 0, 1, 6, 11)]


def test_region_keeps_the_events_of_its_k_mers():
    data = reference_data(made_batch(FORWARD), 0, MODEL, DNA, (101, 104))
    assert data.position.tolist() == [101, 102, 103]
    assert data.event_index.tolist() == [1, 2, 3, 4]
    assert data.first_sample == 7
    assert len(data.current) == 24 - 7


@pytest.mark.parametrize(("reverse", "expected"), [(False, [100, 101]), (True, [104, 103])])
def test_default_region_is_what_the_signal_passes_first(
    monkeypatch: pytest.MonkeyPatch, reverse: bool, expected: list[int]
):
    monkeypatch.setattr(plot_data, "DEFAULT_POSITIONS", 2)
    rows = [(5 - event, position, state) for event, position, state in FORWARD] if reverse else FORWARD
    data = reference_data(made_batch(rows, reverse=reverse), 0, MODEL, DNA, None)
    assert data.position.tolist() == expected


@pytest.mark.parametrize("reverse", [False, True])
def test_positions_outside_of_the_alignment_are_no_skipped_k_mers(reverse: bool):
    rows = [(0, 100, 0), (1, 101, 0), (2, 106, RowState.NEW_SEGMENT), (3, 108, RowState.BAD)]
    if reverse:
        rows = [(5 - event, position, state) for event, position, state in rows]
    data = reference_data(made_batch(rows, reverse=reverse), 0, MODEL, DNA, None)
    positions = [100, 101, 106, 107, 108]
    assert data.position.tolist() == (positions[::-1] if reverse else positions)
    assert data.skipped.tolist() == [False, reverse, False, not reverse, False]
    assert data.new_segment.tolist() == [False, False, not reverse, reverse, False]


def test_own_bases():
    batch = made_batch([])
    batch.base_map = batch.base_map._replace(
        first_event=np.array([0, 1, -1, 3, 5, -1, -1, -1, -1, 7], np.int32)
    )  # the last is no k-mer's
    batch.base_map = batch.base_map._replace(last_event=np.array([0, 1, -1, 4, 5, -1, -1, -1, -1, 7], np.int32))
    data = read_data(batch, 0, MODEL, READ, None)
    assert data.strand is None
    assert data.region == "1-5"
    assert letters(data) == "ACGTT"
    assert data.event_kmer.tolist() == [0, 1, -1, 3, 3, 4]
    assert not data.event_bad.any()
    assert data.kmer_start.tolist() == [4, 7, 12, 14, 24]
    assert data.kmer_end.tolist() == [7, 12, 12, 24, 27]
    assert data.title == "made  bases 1-5 of the read"
    assert read_data(batch, 0, MODEL, READ, (3, 5)).position.tolist() == [3, 4]


def test_region_without_events_and_too_many_k_mers(monkeypatch: pytest.MonkeyPatch):
    batch = made_batch(FORWARD)
    with pytest.raises(F5pyError, match=r"no event of read made .* positions 101-105"):
        reference_data(batch, 0, MODEL, DNA, (102, 103))
    monkeypatch.setattr(plot_data, "MAX_KMERS", 4)
    with pytest.raises(F5pyError, match=r"has 5 k-mers of read made, too many to be drawn; .* at most 4"):
        reference_data(batch, 0, MODEL, DNA, None)
    batch.rows.n[:] = 0
    with pytest.raises(F5pyError, match="read made: no event is aligned"):
        reference_data(batch, 0, MODEL, DNA, None)


def test_title_has_no_characters_that_cannot_be_shown():
    data = replace(reference_data(made_batch(FORWARD), 0, MODEL, DNA, None), name="a\x01b\udc80<$&")
    assert data.title.startswith("a?b?<$&  ")
