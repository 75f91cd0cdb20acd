"""Places, lengths and strands of the molecules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.errors import F5pyError
from f5py.simulation.genome import Genome, random_genome
from f5py.simulation.plan import plan_reads
from f5py.simulation.settings import SimulationSettings

SETTINGS = SimulationSettings(n_reads=20_000)


@pytest.fixture(scope="module")
def genome() -> Genome:
    return random_genome(1_000_000, 0.5, np.random.default_rng(1))


def test_lengths_are_lognormal(genome):
    plan = plan_reads(genome, replace(SETTINGS, length_sigma=1.086), np.random.default_rng(1))
    assert len(plan.lengths) == 20_000
    assert np.median(plan.lengths) == pytest.approx(8000, rel=0.05)
    assert (plan.lengths > 100_000).mean() == pytest.approx(0.01, abs=0.002)
    assert plan.lengths.min() >= 200


def test_fixed_length_and_ultra_long_reads(genome):
    settings = replace(SETTINGS, n_reads=50, fixed_length=500, ultra_long=(1_000_000, 300_000))
    lengths = plan_reads(genome, settings, np.random.default_rng(1)).lengths
    assert sorted(lengths.tolist()) == [500] * 50 + [300_000, 1_000_000]


def test_coverage_decides_the_number_of_reads(genome):
    settings = replace(SETTINGS, n_reads=None, coverage=30.0)
    total = plan_reads(genome, settings, np.random.default_rng(1)).lengths.sum()
    assert 30e6 <= total < 31e6


@pytest.mark.parametrize(("strand", "share"), [("+", 0.0), ("-", 1.0), ("both", 0.5)])
def test_strands(genome, strand, share):
    plan = plan_reads(genome, replace(SETTINGS, strand=strand), np.random.default_rng(1))
    assert plan.reverse.mean() == pytest.approx(share, abs=0.02)


def test_every_place_is_equally_likely():
    # stretches of 5, 3 and 2 bases: a read of 3 has 3 + 1 places
    codes = np.array([0, 0, 0, 0, 0, 4, 1, 1, 1, 4, 2, 2], dtype=np.uint8)
    genome = Genome(["x"], np.array([0, 12]), codes)
    settings = replace(SETTINGS, fixed_length=3)
    starts, counts = np.unique(plan_reads(genome, settings, np.random.default_rng(1)).starts, return_counts=True)
    assert starts.tolist() == [0, 1, 2, 6]
    np.testing.assert_allclose(counts, 5000, atol=300)  # 5 standard deviations


@given(st.lists(st.text("ACGTN", max_size=30), min_size=1, max_size=5), st.integers(1, 30), st.integers(0, 99))
def test_molecules_have_no_other_letter_and_stay_in_their_contig(contigs, length, seed):
    codes = np.array(["ACGTN".index(base) for base in "".join(contigs)], dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, contigs)]).astype(np.int64)
    genome = Genome([str(i) for i in range(len(contigs))], offsets, codes)
    settings = replace(SETTINGS, n_reads=20, fixed_length=length)
    longest = max(len(run) for contig in contigs for run in contig.split("N"))
    if longest < length:
        with pytest.raises(F5pyError, match="does not fit"):
            plan_reads(genome, settings, np.random.default_rng(seed))
        return
    plan = plan_reads(genome, settings, np.random.default_rng(seed))
    ends = plan.starts + plan.lengths
    assert (genome.contig_of(plan.starts) == genome.contig_of(ends - 1)).all()
    assert all(codes[start:end].max() < 4 for start, end in zip(plan.starts, ends, strict=True))


def test_a_read_longer_than_the_genome_is_refused(genome):
    with pytest.raises(F5pyError, match="2000000 bases does not fit"):
        plan_reads(genome, replace(SETTINGS, ultra_long=(2_000_000,)), np.random.default_rng(1))
