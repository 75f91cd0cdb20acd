"""Alignment of events to the reference against a plain one, on made-up reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.batch import ReadStatus, RowState
from f5py.core.windows import Windows
from f5py.event_alignment.align import align_events, transitions
from f5py.event_alignment.viterbi import (
    KMER_SLOTS,
    MARGIN,
    SCRATCH,
    BlockEmissions,
    fill,
    trace,
    words_needed,
)
from f5py.threads.pool import WorkerPool

from ..compiled import compiled
from ..examples import examples
from .made_alignments import level_model, made_batch, made_model, made_read
from .plain_viterbi import BAD, plain_rows, viterbi

fill, trace, words_needed = map(compiled, (fill, trace, words_needed))

F = np.float32


def random_model(seed, k=6):
    rng = np.random.default_rng(seed)
    return rng, made_model(rng, k)


def align(batch, model, windows=None, n_threads=1):
    pool = WorkerPool(n_threads)
    align_events(batch, model, pool, windows)
    pool.close()


def rows_of(batch, read: int) -> list[tuple[int, int, bool, bool]]:
    """Position, event, whether bad, whether the first of a further segment."""
    at = slice(batch.events.offsets[read], batch.events.offsets[read] + batch.rows.n[read])
    states = [RowState(state) for state in batch.rows.state[at].tolist()]
    return [
        (position, event, RowState.BAD in state, RowState.NEW_SEGMENT in state)
        for position, event, state in zip(
            batch.rows.position[at].tolist(), batch.rows.event[at].tolist(), states, strict=True
        )
    ]


def expected(batch, read, model, **bounds):
    rows = plain_rows(batch, read, model, **bounds)
    return [(position, event, state == BAD, new) for position, event, state, new in rows]


def align_one(rng, model, cigar: str, windows=None, **how):
    batch = made_batch([made_read(rng, model, cigar, **how)])
    align(batch, model, windows)
    return batch


def n_new_segments(rows) -> int:
    return sum(new for *_, new in rows)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("k", [5, 6, 9])
def test_rows_are_those_of_the_plain_algorithm(k, reverse):
    rng, model = random_model(10 * k + reverse, k)
    cigars = ["7S300M9S", "120M2I60M5D80M1I3D30M", "20S10=1X60=2P40=1X33=", "100M40D100M", f"{3 * k + 1}M"]
    batch = made_batch([made_read(rng, model, cigar, reverse, noise=rng.uniform(0.5, 3)) for cigar in cigars])
    align(batch, model)
    n_bad = 0
    for read in range(len(batch)):
        rows = rows_of(batch, read)
        assert rows == expected(batch, read, model), cigars[read]
        n_bad += sum(bad for _, _, bad, _ in rows)
    assert batch.rows.n.min() > 2
    assert n_bad > 3


@pytest.mark.parametrize("reverse", [False, True])
def test_the_later_candidate_wins_a_tie(reverse):
    rng = np.random.default_rng(3)
    model = level_model(6)
    read = made_read(rng, model, "150M", reverse, noise=0, wrong=0.1)
    batch = made_batch([read])
    align(batch, model)
    rows = [row[:2] for row in rows_of(batch, 0)]
    assert rows == [row[:2] for row in plain_rows(batch, 0, model)]
    assert rows != [row[:2] for row in plain_rows(batch, 0, model, later_wins=False)]


def test_paths_with_ties():
    """Small whole numbers in the place of log-probabilities, so that nearly every choice is between equals."""
    rng = np.random.default_rng(1)
    differ = 0
    for _ in range(150):
        n_events, n_kmers = int(rng.integers(3, 24)), int(rng.integers(2, 40))
        transitions = -rng.integers(0, 3, 8).astype(np.float32)
        events = 2 * rng.integers(0, 2, n_events).astype(np.float32)
        level, stdv, constant = np.zeros(KMER_SLOTS, F), np.ones(KMER_SLOTS, F), np.zeros(KMER_SLOTS, F)
        level[:n_kmers] = 2 * rng.integers(0, 2, n_kmers)
        constant[:n_kmers] = -rng.integers(0, 2, n_kmers)
        reversed_events = np.zeros(n_events + 2 * MARGIN, F)
        reversed_events[MARGIN : MARGIN + n_events] = events[::-1]
        words = np.full(words_needed(n_events, n_kmers), 0xAAAA, np.uint16)
        path = np.empty((n_events + n_kmers, 3), np.int32)
        emissions, scratch = BlockEmissions(level, stdv, constant), np.full(SCRATCH, np.nan, F)
        possible = fill(reversed_events, n_events, n_kmers, emissions, transitions, scratch, words)
        n_path = trace(words, n_events, n_kmers, possible, path)
        found = [(row - 1, kmer, "MBK"[state]) for row, kmer, state in path[:n_path][::-1].tolist()]
        parameters = [array[:n_kmers] for array in (level, stdv, constant)]
        assert possible
        assert found == viterbi(events, *parameters, transitions)
        differ += found != viterbi(events, *parameters, transitions, later_wins=False)
    assert differ > 100


def test_transitions():
    logs = transitions(np.array([0.0, 0.9, 1.0, 1.6, 4.0]))
    assert logs.dtype == np.float32
    assert np.isfinite(logs).all()
    stay, step, to_bad, to_skip, bad_bad, from_bad, skip_skip, from_skip = np.exp(logs.astype(float)).T
    np.testing.assert_allclose(stay, [0.001, 0.001, 0.001, 0.375, 0.75], rtol=1e-6)
    np.testing.assert_allclose(stay + step + to_bad + to_skip, 1, rtol=1e-6)
    np.testing.assert_allclose(bad_bad + 3 * from_bad, 1, rtol=1e-6)
    np.testing.assert_allclose(skip_skip + from_skip, 1, rtol=1e-6)
    np.testing.assert_allclose(to_skip, 0.0025, rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_region_takes_one_base_more_at_its_end(reverse):
    rng, model = random_model(11)
    read = made_read(rng, model, "3S400M", reverse=reverse)
    batch = made_batch([read])
    outcomes = []
    for end in range(1225, 1235):
        align(batch, model, Windows.parse([f"chr:1101-{end}"], ["chr"]))
        rows = rows_of(batch, 0)
        assert rows == expected(batch, 0, model, region=(1100, end))
        assert all(1100 <= position <= end for position, *_ in rows)
        outcomes.append(tuple(rows))
        align(batch, model, Windows([(0, 1100, end + 1)]))
        assert rows_of(batch, 0) == rows
        align(batch, model, Windows([(0, 1100, end)]))
        assert rows_of(batch, 0) == expected(batch, 0, model, windows=[(1100, end)])
    assert len(set(outcomes)) > 1


@pytest.mark.parametrize("region", ["chr:1-1000", "chr:1401-1500", "chr:1402", "other"])
def test_a_region_beside_the_read(region):
    rng, model = random_model(12)
    batch = align_one(rng, model, "400M", windows=Windows.parse([region], ["chr", "other"]))
    assert batch.rows.n.tolist() == [0]


def test_a_region_without_the_first_exon():
    """As in the reference the read then has no rows; windows of a BED file take the second exon."""
    rng, model = random_model(13)
    batch = made_batch([made_read(rng, model, "100M1000N200M")])
    align(batch, model, Windows.parse(["chr:2000-3000"], ["chr"]))
    assert rows_of(batch, 0) == expected(batch, 0, model, region=(1999, 3000)) == []
    align(batch, model, Windows([(0, 1999, 3000)]))
    assert rows_of(batch, 0) == expected(batch, 0, model, windows=[(1999, 3000)])
    assert batch.rows.n[0] > 200


@pytest.mark.parametrize("reverse", [False, True])
def test_every_window_is_a_segment(reverse):
    rng, model = random_model(14)
    batch = made_batch([made_read(rng, model, "250M60N400M", reverse=reverse)])
    windows = [(0, 900), (950, 1050), (1100, 1108), (1120, 1180), (1200, 1400), (1690, 1800), (5000, 6000)]
    align(batch, model, Windows([(0, *window) for window in windows] + [(1, 0, 9999)]))
    rows = rows_of(batch, 0)
    assert rows == expected(batch, 0, model, windows=windows)
    assert n_new_segments(rows) == 4  # the intron cuts one of the windows in two
    alone = []
    for window in windows:
        align(batch, model, Windows([(0, *window)]))
        alone += [row[:3] for row in rows_of(batch, 0)]
    assert [row[:3] for row in rows] == alone


def test_hard_clips_that_count_move_the_read():
    rng, model = random_model(15)
    read = made_read(rng, model, "90H200M50H")
    batch = made_batch([read])
    align(batch, model)
    rows = rows_of(batch, 0)
    assert rows == expected(batch, 0, model)
    assert len(rows) > 300
    read["cigar"] = np.array([5, 200 << 4, 5], np.uint32)
    shifted = made_batch([read])
    align(shifted, model)
    assert rows_of(shifted, 0) == expected(shifted, 0, model) != rows


def test_reads_without_rows():
    rng, model = random_model(16)
    unmapped = made_read(rng, model, "200M")
    unmapped["first_event"][:] = -1
    few_events = made_read(rng, model, "200M")
    few_events["first_event"][:] = np.where(few_events["first_event"] >= 0, 7, -1)
    failed = made_read(rng, model, "200M")
    no_cigar = made_read(rng, model, "200S")
    no_cigar["cigar"] = no_cigar["cigar"][:0]
    reads = [
        unmapped, few_events, failed, no_cigar, made_read(rng, model, "200S"), made_read(rng, model, "11M"),
        made_read(rng, model, "190S16M"), made_read(rng, model, "200M"),
    ]  # fmt: skip
    batch = made_batch(reads)
    batch.status[2] = ReadStatus.NO_ALIGNMENT
    batch.events_per_base[2] = 0
    align(batch, model)
    assert batch.rows.n[:7].tolist() == [0] * 7
    assert batch.rows.n[7] > 300
    assert rows_of(batch, 6) == expected(batch, 6, model)


def test_events_that_are_no_current():
    """An event so far off that its odds underflow: there is no path if it is the first one."""
    rng, model = random_model(17)
    read = made_read(rng, model, "90M", wrong=0)
    used = read["first_event"][read["first_event"] >= 0]
    for event in (used[0], used[20], used[-1]):
        batch = made_batch([read])
        batch.events.mean[event] = 1e30
        align(batch, model)
        assert rows_of(batch, 0) == expected(batch, 0, model)
    batch = made_batch([read])
    batch.events.mean[used[0]] = 1e30
    align(batch, model)
    assert batch.rows.n[0] == 1
    batch.events.mean[:] = np.nan
    align(batch, model)  # nothing sensible, but it ends
    assert batch.rows.n[0] < len(batch.events.mean)


def test_a_stall():
    """Far more events in one block than in the one before."""
    rng, model = random_model(18)
    read = made_read(rng, model, "400M")
    stall = int(np.flatnonzero(read["first_event"] > 0)[200])
    event = int(read["first_event"][stall])
    read["means"] = np.insert(read["means"], event, rng.normal(100, 3, 400).astype(np.float32))
    read["first_event"][read["first_event"] > event] += 400
    batch = made_batch([read])
    align(batch, model)
    assert rows_of(batch, 0) == expected(batch, 0, model)
    assert batch.rows.n[0] > 1000


@settings(deadline=None, max_examples=examples(60))
@given(
    seed=st.integers(0, 10**6),
    reverse=st.booleans(),
    operations=st.lists(st.tuples(st.integers(1, 160), st.sampled_from("MMMMIDNS=X")), max_size=12),
    windows=st.just([]) | st.lists(st.tuples(st.integers(900, 2000), st.integers(1, 300)), max_size=4),
)
def test_rows_of_any_alignment(seed, reverse, operations, windows):
    """The plain algorithm's; no event has two rows, and rows are in the order of reference and events, in windows."""
    rng, model = random_model(seed, 5)
    cigar = "20M" + "".join(f"{length}{name}" for length, name in operations)
    batch = made_batch([made_read(rng, model, cigar, reverse=reverse, events_per_base=rng.uniform(0.7, 5))])
    bounds = [(start, start + length) for start, length in windows]
    align(batch, model, Windows([(0, *window) for window in bounds]) if bounds else None)
    if not bounds:
        assert rows_of(batch, 0) == expected(batch, 0, model)
    rows = np.array(rows_of(batch, 0)).reshape(-1, 4)
    position, event = rows[:, 0], rows[:, 1]
    assert (np.diff(event) < 0).all() if reverse else (np.diff(event) > 0).all()
    assert (np.diff(position) >= 0).all()
    assert ((event >= 0) & (event < len(batch.events.mean))).all()
    assert ((position >= 1000) & (position <= batch.reference_end[0] - model.k)).all()
    if bounds:
        assert all(any(a <= p < b for a, b in bounds) for p in position)
