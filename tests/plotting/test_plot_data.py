"""Data of a plot, from made batches whose alignment is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from f5py.core.batch import Events, ReadBatch, Rows, RowState
from f5py.errors import F5pyError
from f5py.plotting import data as plot_data
from f5py.plotting.data import ReadSource, reference_data
from f5py.pore_model.model import PoreModel

from ..made_batches import read_batch

K = 2
DNA = ReadSource("made DNA", False, "contig")
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


# Event 2 is aligned to nothing, event 4 fits no k-mer, and position 102 has no event.
FORWARD = [(0, 100, 0), (1, 101, 0), (3, 103, 0), (4, 103, RowState.BAD), (5, 104, 0)]


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
