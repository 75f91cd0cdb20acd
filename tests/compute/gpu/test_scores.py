"""Scores of site groups on a GPU, a played and a real one: those of the CPU threads, bit by bit."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from f5py.core.batch import Calls, ReadBatch, ReadStatus
from f5py.core.motifs import MOTIFS
from f5py.core.noise import OF_PORES, STUDENT, Noise
from f5py.core.offsets import offsets_of, used_elements
from f5py.methylation.calls import call_methylation
from f5py.pore_model import builtin

from ...abea.batch_maker import made_batch

CPG = builtin("r9.4_450bps.cpg.6mer")


def made_aligned_batch(seed: int, n_reads: int, events_per_base: float = 1.6) -> ReadBatch:
    """Make reads of both strands on references full of CpGs, with some of their k-mers without events."""
    rng = np.random.default_rng(seed)
    batch = made_batch(rng, n_reads)
    lengths = rng.integers(60, 700, n_reads)
    letters = rng.choice(np.frombuffer(b"ACGT", np.uint8), lengths.sum() + n_reads)
    sites = np.flatnonzero(rng.random(len(letters) - 1) < 0.06)
    letters[sites], letters[sites + 1] = ord("C"), ord("G")
    letters[rng.integers(0, len(letters), 5)] = ord("N")
    batch.reference, batch.reference_offsets = letters, offsets_of(lengths + 1)
    batch.cigar, batch.cigar_offsets = (lengths * 16).astype(np.uint32), np.arange(n_reads + 1)
    batch.reference_start = rng.integers(0, 10_000, n_reads)
    batch.reverse = rng.random(n_reads) < 0.5
    batch.base_offsets = offsets_of(lengths)
    first_event = np.full(lengths.sum(), -1, np.int32)
    batch.base_map = batch.base_map._replace(offsets=batch.base_offsets, first_event=first_event)
    counts = []
    for first, n in zip(batch.base_offsets, lengths - 5, strict=False):
        events = rng.poisson(events_per_base, n)
        begins = np.cumsum(events) - events
        batch.base_map.first_event[first : first + n] = np.where(events > 0, begins, -1)
        counts.append(events.sum() + 1)
    batch.events = batch.events._replace(offsets=offsets_of(np.array(counts)))
    batch.events = batch.events._replace(mean=rng.normal(95, 12, batch.events.offsets[-1]).astype(np.float32))
    batch.events.mean[rng.integers(0, len(batch.events.mean), 30)] = 400.0  # what no k-mer explains
    batch.shift = rng.normal(0, 5, n_reads).astype(np.float32)
    batch.scale = rng.normal(1, 0.05, n_reads).astype(np.float32)
    batch.var = rng.uniform(0.8, 1.6, n_reads).astype(np.float32)
    batch.events_per_base = rng.uniform(0.9, 2.5, n_reads)
    batch.status[::7] = ReadStatus.NO_ALIGNMENT
    return batch


class Scorer:
    """The part of an arena as it is left by what comes before the scores."""

    results = "calls"

    def __init__(self, pool, batch: ReadBatch, max_bases: int) -> None:
        from f5py.compute.gpu.arena import Density
        from f5py.compute.gpu.buffers import ArenaPart, DeviceTables
        from f5py.compute.gpu.results.scores import GpuScores
        from f5py.compute.gpu.sources import functions

        self.part = ArenaPart(
            Density(4.0, 1.0, scores=True, site_scores=self.results == "sites").size(max_bases, 64), zero_copy=False
        )
        self.reads = np.flatnonzero(batch.status == ReadStatus.OK)
        counts = batch.n_events[self.reads]
        with self.part.stream:
            events = [
                batch.events.mean[a:b] for a, b in zip(batch.events.offsets, batch.events.offsets[1:], strict=False)
            ]
            self.part.put("event_mean", np.concatenate([events[read] for read in self.reads]))
            self.part.put("q", offsets_of(counts))
            for name in ("shift", "scale", "var"):
                self.part.put(f"fit_{name}", getattr(batch, name)[self.reads])
        self.part.stream.synchronize()
        self.n_launches = 0
        counted = {name: self._counted(kernel) for name, kernel in functions(0, ("-DW=100",), self.results).items()}
        self._scores = GpuScores(self.part, DeviceTables(counted), self.reads, pool)

    def _counted(self, kernel):
        def launch(*arguments):
            self.n_launches += 1
            kernel(*arguments)

        return launch

    def scores(self, batch, motifs):
        from f5py.compute.gpu.results.part_results import reads_that_fit
        from f5py.compute.gpu.results.scores import can_be_scored

        if not can_be_scored(motifs, self.part.size.site_scores):
            return np.zeros(len(batch), np.bool_)
        return reads_that_fit(batch, self.reads, batch.status == ReadStatus.OK, self.part)

    def view(self, batch):
        return batch.view

    def begin_scores(self, batch, model, motifs, listing, noise):
        self.listing = listing
        self._scores.put_reads(batch, self.scores(batch, motifs))
        reads = self.scores(batch, motifs)
        given_back = self._scores.begin(batch, reads, model, motifs, listing, noise)
        self.begun, self.n_given_back = reads & ~given_back, int(given_back.sum())
        return given_back

    def fetch_scores(self, calls):
        return self._scores.fetch(calls)


def called(batch: ReadBatch, pool, motif=MOTIFS["cpg"], model=CPG, elsewhere=None, **options) -> dict[str, np.ndarray]:
    """Call, and return the calls without what lies in unused slots."""
    batch = copy.copy(batch)
    call_methylation(batch, motif, model, pool, elsewhere=elsewhere, **options)
    used = used_elements(batch.calls.offsets, batch.calls.n)
    return {
        name: values if name in ("offsets", "n") else values[used]
        for name in Calls._fields
        for values in [getattr(batch.calls, name)]
    }


def assert_same(one: dict, other: dict) -> None:
    for name in Calls._fields:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert np.isfinite(other["methylated"]).all()


@pytest.mark.parametrize("noise", [*OF_PORES.values(), Noise(-0.2, 0.7, STUDENT)], ids=["R9", "R10", "another"])
@pytest.mark.parametrize(("seed", "events_per_base"), [(1, 1.6), (2, 0.4), (3, 4.0)])
def test_the_same_bits(device, pool, seed, events_per_base, noise):
    """Of correlated noise, and of independent noise with the same reads after it."""
    batch = made_aligned_batch(seed, 24, events_per_base)
    scorer = Scorer(pool, batch, 20_000)
    for n_launches, options in enumerate(({"noise": noise}, {}), 1):
        expected = called(batch, pool, **options)
        assert_same(called(batch, pool, elsewhere=scorer, **options), expected)
        assert len(expected["first"]) > 100
        assert scorer.n_launches == n_launches


@pytest.mark.parametrize("motif", MOTIFS)
def test_every_motif(device, pool, motif):
    """Also those that are longer, may overlap, or have letters for several bases."""
    batch = made_aligned_batch(4, 24)
    rng = np.random.default_rng(5)
    pattern = {"W": b"A", "M": b"A"}
    site = b"".join(pattern.get(letter, letter.encode()) for letter in MOTIFS[motif].pattern)
    for place in rng.integers(0, len(batch.reference) - 10, len(batch.reference) // 20):
        batch.reference[place : place + len(site)] = np.frombuffer(site, np.uint8)
    model = builtin(MOTIFS[motif].model)
    expected = called(batch, pool, MOTIFS[motif], model)
    assert_same(called(batch, pool, MOTIFS[motif], model, Scorer(pool, batch, 20_000)), expected)
    assert len(expected["first"]) > 50


def test_few_events_under_many_kmers(device, pool):
    """A dozen events under a hundred k-mers: the end is reached by skips alone."""
    batch = made_aligned_batch(6, 60, 0.15)
    assert_same(called(batch, pool, elsewhere=Scorer(pool, batch, 20_000)), called(batch, pool))


def test_long_groups_with_paths_far_behind(device, pool):
    """Groups of several blocks of k-mers, and stretches of events that none of them explains."""
    batch = made_aligned_batch(13, 24, 1.9)
    rng = np.random.default_rng(13)
    sites = np.flatnonzero(rng.random(len(batch.reference) - 1) < 0.15)
    batch.reference[sites], batch.reference[sites + 1] = ord("C"), ord("G")
    for first in rng.integers(0, len(batch.events.mean), 200):
        batch.events.mean[first : first + rng.integers(1, 40)] = rng.uniform(50, 400)
    expected = called(batch, pool)
    assert (expected["sites"] >= 8).sum() > 50
    assert np.ptp(expected["methylated"]) > 100
    assert_same(called(batch, pool, elsewhere=Scorer(pool, batch, 20_000)), expected)


def test_several_motifs_and_batches_one_after_the_other(device, pool):
    batch = made_aligned_batch(7, 24)
    scorer = Scorer(pool, batch, 20_000)
    for motif in ("cpg", "gpc", "cpg"):
        model = builtin(MOTIFS[motif].model)
        assert_same(called(batch, pool, MOTIFS[motif], model, scorer), called(batch, pool, MOTIFS[motif], model))


@pytest.mark.parametrize("limits", [{"trace_words": 40_000}, {"groups": 48}], ids=["scratch memory", "groups"])
def test_groups_that_do_not_fit_at_once_are_scored_in_turns(device, pool, limits):
    batch = made_aligned_batch(8, 40)
    scorer = Scorer(pool, batch, 20_000)
    object.__setattr__(scorer.part, "size", Small(scorer.part.size, **limits))
    assert_same(called(batch, pool, elsewhere=scorer), called(batch, pool))
    assert scorer.n_launches > 3


class Small:
    """A size, but for some of its numbers."""

    def __init__(self, size, **others) -> None:
        self._size, self._others = size, others

    def __getattr__(self, name):
        return self._others[name] if name in self._others else getattr(self._size, name)
