"""The vectorised aligner against a plain one, and against f5c's own pairs."""

import gzip

import numpy as np
import pytest

from f5py.abea import align as cpu
from f5py.abea.align import F5C_LIMITS, AlignmentLimits
from f5py.pore_model import builtin

from ..compiled import compiled
from . import plain_aligner
from .made_reads import map_of

MODEL = builtin("r9.4_450bps.nucleotide.6mer")
_REASONS = {
    cpu.ALIGNED: None,
    cpu.LOW_EMISSION: "low emission",
    cpu.NOT_SPANNING: "not spanning",
    cpu.LONG_GAP: "long gap",
}


def _read(rng, n_kmers, events_per_kmer=1.7, noise=1.0):
    ranks = rng.integers(0, 4**6, n_kmers).astype(np.int32)
    repeats = 1 + rng.poisson(max(events_per_kmer - 1, 0), n_kmers)
    index = np.repeat(ranks, repeats)
    events = MODEL.level_mean[index] + noise * MODEL.level_stdv[index] * rng.normal(size=len(index))
    return events.astype(np.float32), ranks


def _align(events, ranks, shift=0.0, scale=1.0):
    n, m = len(events), len(ranks)
    first, last = np.empty(m, np.int32), np.empty(m, np.int32)
    pairs = np.empty((n + m, 2), np.int32)
    events_of_kmers = cpu.EventMap(first, last, pairs)
    verdict, n_pairs, span = compiled(cpu.align_read)(
        events, ranks, MODEL.levels, np.float32(shift), np.float32(scale), events_of_kmers, F5C_LIMITS
    )
    return verdict, [tuple(pair) for pair in pairs[n + m - n_pairs :].tolist()], first, last, span


def _check(events, ranks, shift=0.0, scale=1.0):
    expected, reason = plain_aligner.align(events, ranks, MODEL, shift, scale)
    verdict, pairs, first, last, span = _align(events, ranks, shift, scale)
    assert _REASONS[verdict] == reason
    if reason is None:
        assert pairs == expected
        expected_first, expected_last = map_of(expected, len(ranks))
        np.testing.assert_array_equal(first, expected_first)
        np.testing.assert_array_equal(last, expected_last)
        assert span == expected[-1][1] - min(e for _, e in expected)
    else:
        assert pairs == []
        assert (first == -1).all()
    return reason


def test_limits_of_the_users_own():
    """A gap and a mean emission that f5c's constants refuse are let through, and the other way round."""
    rng = np.random.default_rng(3)
    n = 200
    bases = rng.integers(0, 4**6, n).astype(np.int32)
    events = MODEL.level_mean[bases].astype(np.float32)
    first, last = np.empty(n, np.int32), np.empty(n, np.int32)

    def verdict(limits: AlignmentLimits, noise: float) -> int:
        noisy = (events + noise * rng.normal(size=n) * MODEL.level_stdv[bases]).astype(np.float32)
        return compiled(cpu.align_read)(
            noisy, bases, MODEL.levels, np.float32(0), np.float32(1),
            cpu.EventMap(first, last, np.empty((0, 2), np.int32)), limits,
        )[0]  # fmt: skip

    assert verdict(F5C_LIMITS, 0.5) == cpu.ALIGNED
    assert verdict(F5C_LIMITS._replace(min_mean_emission=0.0), 0.5) == cpu.LOW_EMISSION
    assert verdict(F5C_LIMITS._replace(min_mean_emission=-1e9, max_gap=0), 5.0) == cpu.LONG_GAP
    assert verdict(F5C_LIMITS._replace(min_mean_emission=-1e9, max_gap=10_000), 5.0) == cpu.ALIGNED


@pytest.mark.parametrize("n_kmers", [1, 2, 5, 49, 50, 51, 99, 100, 101, 333])
def test_equals_the_plain_aligner(n_kmers):
    reason = _check(*_read(np.random.default_rng(n_kmers), n_kmers))
    assert reason is None or n_kmers < 10  # a handful of events may happen to fit badly


def test_leading_and_trailing_events_are_trimmed():
    rng = np.random.default_rng(9)
    events, ranks = _read(rng, 150)
    stall = np.full(40, 200.0, np.float32)
    reason = _check(np.concatenate([stall, events, stall]), ranks)
    assert reason is None
    _, pairs, *_ = _align(np.concatenate([stall, events, stall]), ranks)
    assert pairs[0][1] >= 39
    assert pairs[-1][1] <= len(events) + 41


def test_ties():
    """One k-mer over and over: many paths have the same score, and the order of preference decides."""
    ranks = np.zeros(80, np.int32)
    events = np.full(130, MODEL.level_mean[0], np.float32)
    assert _check(events, ranks) is None


def test_noise_is_rejected_for_low_emission():
    rng = np.random.default_rng(10)
    ranks = rng.integers(0, 4**6, 200).astype(np.int32)
    assert _check(rng.uniform(0, 250, 350).astype(np.float32), ranks) == "low emission"


def test_a_long_gap_is_rejected():
    """Sixty k-mers without events in a read that is good otherwise: skipping them beats misaligning events."""
    rng = np.random.default_rng(11)
    events, ranks = _read(rng, 360, 2.0, noise=0.3)
    at = 180
    here = MODEL.level_mean[ranks[at - 1]]
    distance = (MODEL.level_mean - here) / MODEL.level_stdv
    foreign = np.flatnonzero((distance > 7) & (distance < 9)).astype(np.int32)
    ranks = np.concatenate([ranks[:at], rng.choice(foreign, 60), ranks[at:]])
    assert _check(events, ranks) == "long gap"


@pytest.mark.parametrize("seed", range(12))
def test_random_reads(seed):
    rng = np.random.default_rng(100 + seed)
    n_kmers = int(rng.integers(1, 250))
    _check(*_read(rng, n_kmers, float(rng.uniform(0.8, 4)), float(rng.uniform(0.3, 2.5))))


@pytest.mark.shared
def test_pairs_equal_those_of_f5c(ecoli, call_ecoli):
    """110,438 pairs of nine records."""
    expected = gzip.decompress((ecoli / "expected" / "stages" / "banded_aln.txt.gz").read_bytes())
    out = call_ecoli("reads8.bam", "--print-banded-aln=yes")
    printed = b"".join(line for line in out.splitlines(keepends=True) if line.startswith((b">", b"{")))
    assert printed.split() == expected.split()
