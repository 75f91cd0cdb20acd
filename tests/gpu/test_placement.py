"""Which reads go to the GPU, and how large the arena is."""

import numpy as np
import pytest

from f5py.gpu.arena import ArenaSize, bytes_per_base, capacity, memory_fraction, reclaimable_memory
from f5py.gpu.placement import Reason, place

from ..abea.batch_maker import made_batch


@pytest.fixture
def batch():
    return made_batch(np.random.default_rng(4), 60)


def _reasons(batch, **limits):
    defaults = {"max_lf": 3.0, "max_epk": 5.0, "capacity_bases": 10**9, "capacity_events": 10**9}
    placement = place(batch, np.arange(len(batch))[::-1], **(defaults | limits))
    assert placement.reads.tolist() == list(range(len(batch)))
    return placement


def test_long_and_over_segmented_reads_go_to_the_cpu(batch):
    placement = _reasons(batch)
    lengths, epb = batch.read_length, batch.n_events / batch.read_length
    for read, reason in zip(placement.reads, placement.reason, strict=True):
        if lengths[read] >= 3 * lengths.mean():
            assert reason == Reason.LONG
        elif epb[read] >= 5:
            assert reason == Reason.MANY_EVENTS
        else:
            assert reason == Reason.GPU
    assert {Reason(reason) for reason in placement.reason} == {Reason.GPU, Reason.LONG, Reason.MANY_EVENTS}
    assert placement.having(*Reason).tolist() == placement.reads.tolist()
    assert sum(placement.count(reason) for reason in Reason) == len(batch)


@pytest.mark.parametrize(("bases", "events"), [(5000, 10**9), (10**9, 5000), (1, 1)])
def test_what_does_not_fit_goes_to_the_cpu_but_later_smaller_reads_may_fit(batch, bases, events):
    placement = _reasons(batch, capacity_bases=bases, capacity_events=events)
    gpu = placement.having(Reason.GPU)
    assert (batch.read_length[gpu] + 1).sum() <= bases
    assert batch.n_events[gpu].sum() <= events
    left_bases, left_events = bases, events
    for read, reason in zip(placement.reads, placement.reason, strict=True):
        if reason in (Reason.GPU, Reason.NO_MEMORY):
            fits = batch.read_length[read] + 1 <= left_bases and batch.n_events[read] <= left_events
            assert fits == (reason == Reason.GPU)
            if fits:
                left_bases -= batch.read_length[read] + 1
                left_events -= batch.n_events[read]


def test_the_capacity_fills_the_memory_and_no_more():
    memory = 2e9
    size = capacity(memory, 2.0, 512, 2)
    assert size.events == 2 * size.bases
    assert 0.98 * memory < 2 * size.device_bytes <= memory
    assert capacity(1000.0, 2.0, 512, 2).bases == 0


def test_bytes_per_base_are_an_eighth_of_the_reference_design_or_less():
    assert bytes_per_base(2.0) <= (521 + 548 * 2) / 8


def test_trace_words_hold_every_band_of_every_read():
    """The closed form of the kernels' header, against the sum over reads."""
    rng = np.random.default_rng(1)
    bases, events = rng.integers(1, 40, 200), rng.integers(1, 90, 200)
    p, q = np.cumsum(bases), np.cumsum(events)
    starts = (np.concatenate([[0], p + q]) // 4 + 3 * np.arange(201)) * 32
    needed = (bases + events + 2 + 3) // 4 * 32
    assert (starts[:-1] + needed <= starts[1:]).all()
    assert starts[-1] <= ArenaSize(int(p[-1]), int(q[-1]), 200).trace_words


@pytest.mark.parametrize(
    ("requested", "integrated", "expected"),
    [(None, False, 0.9), (None, True, 0.7), (0.5, True, 0.5), (0.0, False, 0.9), (1.0, True, 0.7), (-1, False, 0.9)],
)
def test_memory_fraction(requested, integrated, expected):
    assert memory_fraction(requested, integrated) == expected


def test_page_cache_counts_as_free_on_integrated_gpus():
    meminfo = "MemTotal: 8000000 kB\nMemFree: 100 kB\nBuffers:  20 kB\nCached: 300 kB\nSwapCached: 7 kB\n"
    assert reclaimable_memory(meminfo) == 320 * 1024
