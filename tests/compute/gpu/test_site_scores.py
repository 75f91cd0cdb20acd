"""Scores of single sites on a GPU, a played and a real one: those of the CPU threads, bit by bit."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from f5py.core.batch import ReadBatch
from f5py.core.motifs import MOTIFS, Motif, parse_motif
from f5py.core.noise import GAUSSIAN, OF_PORES, STUDENT, Noise
from f5py.core.offsets import used_elements
from f5py.pore_model import PoreModel, builtin

from ...compiled import compiled
from ...methylation.site_likelihoods import ReadWindows
from .test_scores import CPG, Scorer, Small, assert_same, called, made_aligned_batch

_called = partial(called, per_site=True)
NOISES = [None, *OF_PORES.values(), Noise(-0.3, 0.6, GAUSSIAN), Noise(0.5, -0.2, STUDENT)]


class _SiteScorer(Scorer):
    """Scores sites, too, and keeps what it has found of each."""

    results = "sites"

    def begin_sites(self, batch, sites):
        from f5py.compute.gpu.results.site_scores import GpuSites

        scores = self._scores
        self._sites = GpuSites(self.part, scores._tables, self.reads, scores._pool)
        given_back = self._sites.begin(batch, scores, sites)
        self.listed, self.groups, self.of_sites = self.begun & ~given_back, batch.calls, sites
        self.n_given_back += int(given_back.sum())
        return given_back

    def fetch_sites(self):
        self.found = self._sites.fetch()
        return self.found


def _assert_same_shares(scorer: _SiteScorer, batch: ReadBatch, motif: Motif, model: PoreModel, noise) -> int:
    """Compare probabilities in doubles, before logarithms round them; return how many windows there were."""
    from f5py.methylation.group_scores import fill_plain

    fill_plain = compiled(fill_plain)

    (sites, exponents), groups, listing = scorer.found, scorer.groups, scorer.listing
    total = 0
    for read in np.flatnonzero(scorer.listed):
        slots = groups.offsets[read] + np.arange(groups.n[read])
        slots = slots[groups.sites[slots] > 1]
        if not len(slots):
            continue
        reverse = bool(batch.reverse[read])
        segment = batch.reference[batch.reference_offsets[read] : batch.reference_offsets[read + 1]]
        codes = np.empty(listing.n_bases[slots].sum(), np.uint8)
        base = np.cumsum(listing.n_bases[slots]) - listing.n_bases[slots]
        for first, length, at in zip(listing.window[slots], listing.n_bases[slots], base, strict=True):
            fill_plain(segment, first, length, motif.codes(reverse), reverse, codes[at : at + length])
        of_windows = [
            np.arange(n) + scorer.of_sites.first[slot] for slot, n in zip(slots, groups.sites[slots], strict=True)
        ]
        at = np.concatenate(of_windows)
        site = np.cumsum(groups.sites[slots]) - groups.sites[slots]
        windows = ReadWindows(
            codes, scorer.of_sites.place[at].astype(np.int64), base, listing.n_bases[slots], site, groups.sites[slots],
            listing.begin[slots], listing.end[slots],
        )  # fmt: skip
        fit = batch.shift[read], batch.scale[read], batch.var[read], float(batch.events_per_base[read])
        events = batch.events.mean[batch.events.offsets[read] : batch.events.offsets[read + 1]]
        shares, widths = windows.shares(events, fit, reverse, model, noise)
        np.testing.assert_array_equal(exponents[slots], shares.exponents)
        np.testing.assert_array_equal(scorer.of_sites.width[slots], widths)
        np.testing.assert_array_equal(sites[at], shares.sites)
        total += len(slots)
    return total


def _with_more_sites(batch: ReadBatch, share: float, seed: int) -> ReadBatch:
    """Give the reference more CpGs, so that many share k-mers."""
    sites = np.flatnonzero(np.random.default_rng(seed).random(len(batch.reference) - 1) < share)
    batch.reference[sites], batch.reference[sites + 1] = ord("C"), ord("G")
    return batch


@pytest.mark.parametrize("noise", NOISES, ids=["none", *OF_PORES, "Gaussian", "Student"])
@pytest.mark.parametrize(("seed", "events_per_base"), [(1, 1.6), (2, 0.4), (3, 4.0)])
def test_the_same_bits(device, pool, seed, events_per_base, noise):
    batch = _with_more_sites(made_aligned_batch(seed, 16, events_per_base), 0.1, seed)
    expected = _called(batch, pool, noise=noise)
    scorer = _SiteScorer(pool, batch, 20_000)
    assert_same(_called(batch, pool, elsewhere=scorer, noise=noise), expected)
    assert scorer.n_launches >= 2
    assert _assert_same_shares(scorer, batch, MOTIFS["cpg"], CPG, noise) > 50
    assert set(scorer.of_sites.width[used_elements(scorer.groups.offsets, scorer.groups.n)]) >= {0, 1, 2, 3}


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    events_per_base=st.floats(0.3, 4.0),
    share=st.floats(0.0, 0.25),
    noise=st.none()
    | st.builds(Noise, st.floats(-0.9, 0.9), st.floats(-0.9, 0.9), st.sampled_from([GAUSSIAN, STUDENT])),
)
@example(seed=5, events_per_base=1.6, share=0.0, noise=None)
def test_any_windows(device, pool, seed, events_per_base, share, noise):
    batch = _with_more_sites(made_aligned_batch(seed, 6, events_per_base), share, seed)
    scorer = _SiteScorer(pool, batch, 20_000)
    found = _called(batch, pool, elsewhere=scorer, noise=noise)
    assert_same(found, _called(batch, pool, noise=noise))
    _assert_same_shares(scorer, batch, MOTIFS["cpg"], CPG, noise)


@pytest.mark.parametrize("agreement", [0.0, 0.7])
def test_a_given_agreement(device, pool, agreement):
    batch = _with_more_sites(made_aligned_batch(4, 12), 0.1, 4)
    found = _called(batch, pool, elsewhere=_SiteScorer(pool, batch, 20_000), agreement=agreement)
    assert_same(found, _called(batch, pool, agreement=agreement))


@pytest.mark.parametrize("motif", MOTIFS)
def test_every_motif(device, pool, motif):
    batch = made_aligned_batch(4, 16)
    rng = np.random.default_rng(5)
    pattern = {"W": b"A", "M": b"A"}
    site = b"".join(pattern.get(letter, letter.encode()) for letter in MOTIFS[motif].pattern)
    for place in rng.integers(0, len(batch.reference) - 10, len(batch.reference) // 12):
        batch.reference[place : place + len(site)] = np.frombuffer(site, np.uint8)
    model = builtin(MOTIFS[motif].model)
    scorer = _SiteScorer(pool, batch, 20_000)
    found = _called(batch, pool, MOTIFS[motif], model, scorer)
    assert_same(found, _called(batch, pool, MOTIFS[motif], model))
    assert scorer.n_launches > 1


def test_several_motifs_and_batches_one_after_the_other(device, pool):
    batch = _with_more_sites(made_aligned_batch(7, 12), 0.1, 7)
    scorer = _SiteScorer(pool, batch, 20_000)
    for motif, noise in (("cpg", None), ("gpc", OF_PORES["r9"]), ("cpg", OF_PORES["r10"])):
        arguments = MOTIFS[motif], builtin(MOTIFS[motif].model)
        found = _called(batch, pool, *arguments, scorer, noise=noise)
        assert_same(found, _called(batch, pool, *arguments, noise=noise))


@pytest.mark.parametrize("noise", [None, OF_PORES["r10"]], ids=["independent", "correlated"])
def test_five_sites_under_a_kmer_of_nine_bases(device, pool, noise):
    """A window takes a whole warp."""
    batch = made_aligned_batch(8, 10)
    for first in range(50, len(batch.reference) - 60, 90):
        batch.reference[first : first + 14] = np.frombuffer(b"CG" * 7, np.uint8)
    k = 9
    rng = np.random.default_rng(3)
    n = 5**k
    model = PoreModel(
        "made", k, "ACGMT", rng.uniform(60, 120, n).astype(np.float32), rng.uniform(1, 3, n).astype(np.float32)
    )
    scorer = _SiteScorer(pool, batch, 200_000)
    found = _called(batch, pool, MOTIFS["cpg"], model, scorer, noise=noise)
    assert_same(found, _called(batch, pool, MOTIFS["cpg"], model, noise=noise))
    used = used_elements(scorer.groups.offsets, scorer.groups.n)
    assert scorer.of_sites.width[used].max() == 5
    assert scorer.n_given_back == 0
    assert _assert_same_shares(scorer, batch, MOTIFS["cpg"], model, noise) > 20


def test_more_sites_under_a_kmer_than_a_warp_has_lanes_for_are_left_to_the_cpu(device, pool):
    batch = made_aligned_batch(9, 12)
    batch.reference[400:700] = ord("C")
    motif = parse_motif("C")
    scorer = _SiteScorer(pool, batch, 20_000)
    found = _called(batch, pool, motif, elsewhere=scorer)
    assert_same(found, _called(batch, pool, motif))
    assert 0 < scorer.n_given_back < len(scorer.reads)


def test_windows_that_do_not_fit_at_once_are_scored_in_turns(device, pool):
    batch = _with_more_sites(made_aligned_batch(8, 16), 0.1, 8)
    expected = _called(batch, pool)
    scorer = _SiteScorer(pool, batch, 20_000)
    by_work = scorer.n_launches
    object.__setattr__(scorer.part, "size", Small(scorer.part.size, sites=60))
    assert_same(_called(batch, pool, elsewhere=scorer), expected)
    assert scorer.n_launches > by_work + 5
    assert _assert_same_shares(scorer, batch, MOTIFS["cpg"], CPG, None) > 50


@pytest.mark.parametrize("noise", [None, Noise(-0.3, 0.6, GAUSSIAN)], ids=["independent", "correlated"])
def test_long_windows_with_paths_far_behind(device, pool, noise):
    batch = _with_more_sites(made_aligned_batch(13, 12, 1.9), 0.15, 13)
    rng = np.random.default_rng(13)
    for first in rng.integers(0, len(batch.events.mean), 100):
        batch.events.mean[first : first + rng.integers(1, 40)] = rng.uniform(50, 400)
    scorer = _SiteScorer(pool, batch, 60_000)
    found = _called(batch, pool, elsewhere=scorer, noise=noise)
    assert_same(found, _called(batch, pool, noise=noise))
    assert _assert_same_shares(scorer, batch, MOTIFS["cpg"], CPG, noise) > 30
    assert (scorer.groups.sites[used_elements(scorer.groups.offsets, scorer.groups.n)] > 8).sum() > 10


_TRIED = """
extern "C" __global__ void try_products(const double* a, const double* b, const double* c, double* out) {
    const int i = 3 * threadIdx.x;
    out[i] = times(a[threadIdx.x], b[threadIdx.x]);
    out[i + 1] = fused(a[threadIdx.x], b[threadIdx.x], c[threadIdx.x]);
    out[i + 2] = exp2_of(-1000.0 - threadIdx.x);
}
"""


def test_doubles_too_small_for_the_cpu_are_zero(device):
    """By the kernel's own doing: compilers of CUDA have an option for that in single precision only."""
    import cupy

    from f5py.compute.gpu.sources import machine_code, source

    rng = np.random.default_rng(1)
    a, b = rng.uniform(1, 2, (2, 32)) * 2.0 ** rng.integers(-515, -508, (2, 32))
    c = np.where(np.arange(32) % 2, 2.0**-1022, 0.0)
    capability = cupy.cuda.Device(0).compute_capability
    module = cupy.cuda.function.Module()
    module.load(machine_code(source("site_hmm") + _TRIED, ("-std=c++14", "--fmad=false"), capability))
    out = cupy.empty(96, np.float64)
    arguments = tuple(cupy.asarray(one) for one in (a, b, c))
    module.get_function("try_products")((1,), (32,), (*arguments, out))
    cupy.cuda.get_current_stream().synchronize()
    least = np.finfo(np.float64).tiny
    products, sums, powers = a * b, a * b + c, 2.0 ** (-1000.0 - np.arange(32))
    assert 5 < (products < least).sum() < 27
    assert (powers < least).any()
    expected = np.stack([np.where(one < least, 0.0, one) for one in (products, sums, powers)], axis=1)
    np.testing.assert_allclose(out.get().reshape(32, 3), expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("noise", [None, OF_PORES["r9"]], ids=["independent", "correlated"])
def test_scratch_memory_is_written_before_it_is_read_and_not_beyond_its_end(device, pool, noise):
    batch = _with_more_sites(made_aligned_batch(14, 5), 0.1, 14)
    scorer = _SiteScorer(pool, batch, 60_000)
    trace = scorer.part.device["trace"]
    nans = np.full(len(trace), 0xFFFFFFFF, np.uint32)
    with scorer.part.stream:
        trace.set(nans, stream=scorer.part.stream)
    found = _called(batch, pool, elsewhere=scorer, noise=noise)
    assert_same(found, _called(batch, pool, noise=noise))
    assert scorer.n_launches == 2
    of_sites, of_groups = scorer._sites._work, scorer._scores._order
    end = max(of_sites[-1], of_groups.work[-(-of_groups.n[0] // 16)])
    left = np.empty_like(nans)
    with scorer.part.stream:
        trace.get(stream=scorer.part.stream, out=left, blocking=False)
    scorer.part.stream.synchronize()
    assert (left[end:] == 0xFFFFFFFF).all()
    assert (left[: of_sites[1]] != 0xFFFFFFFF).any()
