"""The CUDA kernels, run on the CPU, against the aligner of the CPU, a plain one, and f5c's pairs."""

from __future__ import annotations

import math
import platform
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.abea import align as cpu
from f5py.abea.align import ALIGNED, F5C_LIMITS, LONG_GAP, LOW_EMISSION, NOT_SPANNING
from f5py.pore_model import PoreModel

from ..compiled import compiled
from ..examples import examples
from . import plain_aligner
from .kernels_on_cpu import UNTOUCHED
from .made_reads import (
    MODEL,
    Read,
    dense,
    detours,
    homopolymer,
    long_gap,
    made_model,
    map_of,
    random_bases,
    repetitive,
    simulate,
    stalled,
    too_few_events,
    uneven,
    unrelated,
    unscalable,
    without_first_events,
)
from .real_reads import real_reads, reference_pairs

_VERDICTS = {None: ALIGNED, "low emission": LOW_EMISSION, "not spanning": NOT_SPANNING, "long gap": LONG_GAP}


@pytest.fixture(scope="module", autouse=True)
def _fused() -> None:
    """Scores are equal only where both sides fuse the same multiplications and additions."""
    from llvmlite.binding import get_host_cpu_features

    if platform.machine() == "x86_64" and not get_host_cpu_features().get("fma"):
        pytest.skip("Numba does not fuse multiply-add on this processor, so its scores differ in the last digit")


def _by_numba(read: Read, model=MODEL):
    ranks = read.ranks(model.k)
    found = cpu.EventMap(*np.empty((2, len(ranks)), np.int32), np.empty((0, 2), np.int32))
    fit = np.float32(read.shift), np.float32(read.scale)
    verdict, n_pairs, span = compiled(cpu.align_read)(read.events, ranks, model.levels, *fit, found, F5C_LIMITS)
    return verdict, n_pairs, span, found.first_event.tolist(), found.last_event.tolist()


def _bands_by_numba(read: Read, kmers: np.ndarray) -> tuple[int, int]:
    """Event of the best end cell and corner of the last band, which are known of rejected reads too."""
    before, after = cpu._PAD + cpu.BANDWIDTH, (cpu._VECTORS + 1) * 16
    n_events, n_kmers = len(read.events), len(kmers)
    columns = [np.pad(np.ascontiguousarray(column), (before, after)) for column in kmers.T[:3]]
    words = np.empty((n_events + n_kmers + 2) * cpu._WORDS, np.uint16)
    reversed_events = np.pad(read.events[::-1], (before, after))
    return compiled(cpu._fill_bands)(reversed_events, *columns, n_events, n_kmers, words)


def _by_plain(read: Read, bandwidth: int, model=MODEL):
    ranks = read.ranks(model.k)
    pairs, reason = plain_aligner.align(read.events, ranks, model, read.shift, read.scale, bandwidth, single=True)
    if reason is not None:
        return _VERDICTS[reason], 0, 0, [-1] * len(ranks), [-1] * len(ranks)
    return ALIGNED, len(pairs), pairs[-1][1] - pairs[0][1], *map_of(pairs, len(ranks))


def _check(kernels, reads: list[Read], model=MODEL) -> list[int]:
    """Compare one launch over all reads with Numba's results, in both orders of lanes; return the verdicts."""
    expected = [_by_numba(read, model) for read in reads]
    for descending in (False, True):
        found = kernels(cpu.BANDWIDTH).align(reads, model, descending)
        for i, read in enumerate(reads):
            n_kmers = len(read.bases) - model.k + 1
            where = f"read {i}, descending={descending}"
            assert found.of(i, n_kmers) == expected[i], where
            if not np.isnan(read.scale) and not np.isnan(read.events).any():  # with NaN only the verdict is the same
                bands = _bands_by_numba(read, found.kmers[found.p[i] : found.p[i] + n_kmers])
                assert (found.best_event[i], found.corner[i]) == bands, where
    return [one[0] for one in expected]


def test_many_lengths_in_one_launch(kernels):
    rng = np.random.default_rng(1)
    lengths = [6, 7, 8, 11, 29, 54, 55, 56, 57, 104, 105, 106, 107, 205, 333, 338, 1001]
    reads = [simulate(rng, random_bases(rng, length)) for length in lengths]
    verdicts = _check(kernels, reads)
    assert verdicts[5:] == [ALIGNED] * len(verdicts[5:])  # a handful of events may happen to fit badly


def _one_kmer(rng: np.random.Generator) -> list[Read]:
    reads = [Read(random_bases(rng, 6), rng.uniform(60, 120, n).astype(np.float32)) for n in (1, 2, 3, 50, 99, 400)]
    return reads + [simulate(rng, random_bases(rng, 6), events) for events in (1, 2, 8, 15)]


def _trimmed(rng: np.random.Generator) -> list[Read]:
    read = simulate(rng, random_bases(rng, 150))
    return [stalled(read, *ends) for ends in ((40, 40), (500, 0), (0, 500), (99, 101), (1, 1))]


def _repeats(rng: np.random.Generator) -> list[Read]:
    """Scores that differ in the last digit alone: additions in another order, or not fused, give other paths."""
    units = (b"A", b"C", b"AC", b"ACG", b"TTAGGG", b"GATTACAG")
    return [repetitive(rng, unit, int(rng.integers(60, 400)) // len(unit), 1.0) for unit in units for _ in range(4)]


_SCALINGS = [(-12.3, 1.13), (3.7, 0.937), (0.125, 1.0000001), (40.0, 0.5)]
#: Name -> seed, reads, and the fewest of them that are aligned.
_KINDS = {
    "one k-mer": (2, _one_kmer, 1),
    "sparse to dense": (
        3, lambda rng: [simulate(rng, random_bases(rng, 125), n) for n in (0.8, 1.05, 3.0, 8.0, 14.5)], 5
    ),
    "fifteen events per base": (4, lambda rng: [dense(rng, length) for length in (6, 7, 40, 126, 301)], 3),
    "shift and scale": (
        5, lambda rng: [simulate(rng, random_bases(rng, 200), shift=a, scale=b) for a, b in _SCALINGS], 4
    ),
    "trimmed ends": (6, _trimmed, 1),
    "ties": (0, lambda _: [homopolymer(*sizes) for sizes in ((85, 130), (6, 9), (300, 200), (205, 1500))], 1),
    "few events": (
        12, lambda rng: [too_few_events(rng, *sizes) for sizes in ((305, 3), (305, 1), (7, 1), (2000, 60))], 0
    ),
    "repeats": (20, _repeats, 24),
    "detours": (21, lambda rng: [detours(rng, int(rng.integers(100, 700))) for _ in range(40)], 21),
    "skips at the start": (
        22,
        lambda rng: [
            without_first_events(rng, int(rng.integers(30, 150)), int(rng.integers(1, 8))) for _ in range(30)
        ],
        21,
    ),
    "skips after stays": (23, lambda rng: [uneven(rng, 600) for _ in range(12)], 7),
}  # fmt: skip


@pytest.mark.parametrize(("seed", "make", "n_aligned"), _KINDS.values(), ids=_KINDS)
def test_reads_of_every_kind(kernels, seed, make, n_aligned):
    assert _check(kernels, make(np.random.default_rng(seed))).count(ALIGNED) >= n_aligned


def test_ends_that_tie(kernels):
    """One k-mer whose events each score exactly what trimming them costs: the earliest of the best ends is taken."""
    reads, tied = [], 0
    for n_events in range(2, 60):
        stay = np.float32(math.log(1 - 1 / (n_events + 1)))
        # ln(stdv) for which an event at the k-mer's level scores ln 0.01 in all
        ln_stdv = np.float32(-0.918938) - (np.float32(math.log(0.01)) - stay)
        levels = np.full(4, 100, np.float32)
        model = PoreModel("ties", 1, "ACGT", levels, np.full(4, np.exp(np.float64(ln_stdv)), np.float32))
        tied += np.float32(stay + (np.float32(-0.918938) - model.ln_stdv[0])) == np.float32(math.log(0.01))
        reads = [Read(np.frombuffer(b"A", np.uint8), np.full(n_events, 100, np.float32))]
        _check(kernels, reads, model)
    assert tied > 10


def test_each_failure_beside_good_reads(kernels):
    good = simulate(np.random.default_rng(7), random_bases(np.random.default_rng(8), 300))
    failures = [
        unrelated(np.random.default_rng(10), 205, 350),
        long_gap(np.random.default_rng(0)),
        unscalable(np.random.default_rng(11), 300),
        unscalable(np.random.default_rng(11), 6),
    ]
    verdicts = _check(kernels, [good, failures[0], good, failures[1], *failures[2:], good])
    assert verdicts == [ALIGNED, LOW_EMISSION, ALIGNED, LONG_GAP, NOT_SPANNING, NOT_SPANNING, ALIGNED]


def test_gaps_about_the_longest_allowed(kernels):
    """Gaps of 50 and of 51 k-mers among others."""
    reads = [long_gap(np.random.default_rng(seed), 300, n) for n in range(46, 60, 2) for seed in range(6)]
    verdicts = _check(kernels, reads)
    gaps = {_longest_gap(read): verdict for read, verdict in zip(reads, verdicts, strict=True)}
    assert (gaps[50], gaps[51]) == (ALIGNED, LONG_GAP)


def _longest_gap(read: Read) -> int:
    """Most k-mers reached by skips in a row on Numba's path, be it accepted or not."""
    ranks, unused = read.ranks(6), np.empty(len(read.bases) - 5, np.int32)
    pairs = np.full((len(ranks) + len(read.events), 2), -1, np.int32)
    found = cpu.EventMap(unused, unused.copy(), pairs)
    compiled(cpu.align_read)(read.events, ranks, MODEL.levels, np.float32(0), np.float32(1), found, F5C_LIMITS)
    events = pairs[pairs[:, 0] >= 0, 1]
    runs = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(events) > 0, [True]])))
    return int(runs.max()) - 1


def test_events_that_are_no_numbers(kernels):
    rng = np.random.default_rng(13)
    reads = []
    for value in (np.nan, np.inf, -np.inf, 3e38, 1e20):
        read = simulate(rng, random_bases(rng, 150))
        read.events[[0, 70, 71, -1]] = value
        reads.append(read)
    _check(kernels, reads)


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**32 - 1),
            st.integers(6, 160),
            st.integers(1, 400),
            st.sampled_from(["read", "noise", "one"]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_reads(kernels, recipes):
    reads = []
    for seed, n_bases, n_events, kind in recipes:
        rng = np.random.default_rng(seed)
        if kind == "read":
            reads.append(simulate(rng, random_bases(rng, n_bases), n_events / n_bases))
        else:
            reads.append(unrelated(rng, n_bases, n_events if kind == "noise" else 1))
    _check(kernels, reads)


@pytest.mark.parametrize("k", [1, 3, 5, 9])
def test_models_of_other_k(kernels, k):
    rng = np.random.default_rng(k)
    model = made_model(k, k)
    reads = [simulate(rng, random_bases(rng, n), 2.0, model=model) for n in (k, k + 1, 100, 211)]
    assert _check(kernels, reads, model)[-1] == ALIGNED


def test_letters_of_either_case_and_of_rna(kernels):
    """U counts as T, in either case; what is no base counts as A."""
    plain = b"ACGTTGCAACGTAATTGGCCAATTCGATCA"
    others = (b"acgttgcaacgtaattggccaattcgatca", b"ACGUUGCAACGUAAUUGGCCAAUUCGAUCA", b"NCGTTGCRACGT-ATuGGCCA@tTCGAUCn")
    for letters in others:
        reads = [Read(np.frombuffer(one, np.uint8), np.empty(0), 1.5, 1.1) for one in (plain, letters)]
        kmers = kernels(100).scaled_kmers(reads, MODEL)
        np.testing.assert_array_equal(kmers[: len(plain)], kmers[len(plain) :])


@pytest.mark.parametrize("threads", [1, 31, 33, 100, 256])
def test_first_kernel_in_blocks_of_any_size(kernels, threads):
    rng = np.random.default_rng(14)
    reads = [simulate(rng, random_bases(rng, n), shift=3.3, scale=0.937) for n in (6, 37, 400)]
    kmers = kernels(100).scaled_kmers(reads, MODEL, threads)
    first = 0
    for read in reads:
        ranks = read.ranks(6)
        # the product of two floats is exact in double precision, so the sum is rounded as a fused one is
        scale, shift = np.float32([0.937, 3.3]).astype(np.float64)
        level = scale * MODEL.level_mean[ranks].astype(np.float64) + shift
        here = kmers[first : first + len(ranks)]
        np.testing.assert_array_equal(here[:, 0], level.astype(np.float32))
        np.testing.assert_array_equal(here[:, 1], np.float32(math.sqrt(0.5)) / MODEL.level_stdv[ranks])
        np.testing.assert_array_equal(here[:, 2], np.float32(-0.918938) - MODEL.ln_stdv[ranks])
        first += len(ranks)
        assert (kmers[first : first + 5] == UNTOUCHED).all()
        first += 5


def test_blocks_beyond_the_last_read_do_nothing(kernels):
    rng = np.random.default_rng(15)
    reads = [simulate(rng, random_bases(rng, n)) for n in (80, 160)]
    found = kernels(100).align(reads, MODEL, spare=3)
    assert [found.of(i, len(read.bases) - 5) for i, read in enumerate(reads)] == [_by_numba(read) for read in reads]


# 1 and 2 cells a lane, 3 and 4; an odd width; 7, 16 and 35 cells, with directions of 1, 1 and 3 words
@pytest.mark.parametrize("bandwidth", [20, 32, 64, 101, 120, 200, 480, 1024])
def test_other_band_widths(kernels, bandwidth):
    rng = np.random.default_rng(bandwidth)
    reads = [simulate(rng, random_bases(rng, n)) for n in (6, 17, 60)]
    if bandwidth < 300:
        reads += [stalled(simulate(rng, random_bases(rng, 120)), 30, 40), simulate(rng, random_bases(rng, 160), 3.0)]
        reads += [unrelated(rng, 100, 150), homopolymer(60, 90), long_gap(rng, 206, 75)]
    if bandwidth < 65:  # paths that leave the band and come back
        reads += [long_gap(rng, 150, int(n)) for n in rng.integers(bandwidth // 2, 2 * bandwidth, 8)]
        reads += [detours(rng, 120, bandwidth) for _ in range(8)] + [repetitive(rng, b"AC", 40), uneven(rng, 100)]
    expected = [_by_plain(read, bandwidth) for read in reads]
    assert ALIGNED in [one[0] for one in expected]
    for descending in (False, True):
        found = kernels(bandwidth).align(reads, MODEL, descending)
        for i, read in enumerate(reads):
            assert found.of(i, len(read.bases) - 5) == expected[i], f"read {i}, descending={descending}"


@pytest.mark.shared
def test_maps_equal_those_of_f5c(kernels, ecoli: Path, indexed_ecoli: Path):
    """The real reads with f5c's aligned pairs: base-to-event map, number of pairs and span."""
    expected = reference_pairs(ecoli / "expected" / "stages" / "banded_aln.txt.gz")
    reads = real_reads(list(expected), indexed_ecoli / "reads.fasta")
    assert len(reads) == 9
    found = kernels(100).align(reads, MODEL)
    for i, (read, pairs) in enumerate(zip(reads, expected.values(), strict=True)):
        n_kmers = len(read.bases) - 5
        by_reference = ALIGNED, len(pairs), pairs[-1][1] - pairs[0][1], *map_of(pairs, n_kmers)
        assert found.of(i, n_kmers) == by_reference, f"read {i}"
        assert found.of(i, n_kmers) == _by_numba(read), f"read {i}"
