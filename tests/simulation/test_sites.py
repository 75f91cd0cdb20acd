"""Rates and states of the sites."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from f5py.core.motifs import IUPAC, motif_named, parse_motif, reverse_complement
from f5py.errors import F5pyError
from f5py.simulation.genome import LETTERS, random_genome
from f5py.simulation.settings import RateMixture, SimulationSettings
from f5py.simulation.sites import SimulatedSites

SETTINGS = SimulationSettings()
GENOME = random_genome(50_000, 0.5, np.random.default_rng(1))


def find(motif: str = "cpg", **changes) -> SimulatedSites:
    chosen = parse_motif(motif) if ":" in motif else motif_named(motif)
    return SimulatedSites.find(GENOME, replace(SETTINGS, **changes), np.random.default_rng(1), chosen)


def test_mixture_of_rates():
    rates = RateMixture.parse("0*2, beta:2:2 ,1*1").draw(40_000, np.random.default_rng(1))
    assert (rates == 0).mean() == pytest.approx(0.5, abs=0.01)
    assert (rates == 1).mean() == pytest.approx(0.25, abs=0.01)
    between = rates[(rates > 0) & (rates < 1)]
    assert between.mean() == pytest.approx(0.5, abs=0.01)
    assert between.std() == pytest.approx(np.sqrt(0.05), abs=0.01)


@pytest.mark.parametrize("text", ["", "x", "1.5", "-0.1", "nan", "beta:1", "beta:0:1", "beta:1:inf", "0*0", "0*x"])
def test_wrong_mixture_is_refused(text):
    with pytest.raises(F5pyError, match="neither a rate"):
        RateMixture.parse(text)


def test_linked_sites_share_rate_and_state():
    sites = find(linked_within=10)
    close = np.diff(sites.positions) <= 10
    assert close.sum() > 100
    np.testing.assert_array_equal(np.diff(sites.rates[0])[close], 0)
    assert (np.diff(sites.rates[0])[~close] != 0).mean() > 0.99
    rng = np.random.default_rng(2)
    for _ in range(5):
        _, methylated = sites.methylate(0, 50_000, rng)
        np.testing.assert_array_equal(np.diff(methylated)[close], False)


def test_unlinked_sites_are_independent():
    sites = find(linked_within=0, site_rates="0.5")
    rng = np.random.default_rng(2)
    close = np.diff(sites.positions) <= 10
    differ = np.concatenate([np.diff(sites.methylate(0, 50_000, rng)[1])[close] for _ in range(20)])
    assert differ.mean() == pytest.approx(0.5, abs=0.03)


def test_states_follow_the_rates():
    sites = find(linked_within=0)
    rng = np.random.default_rng(2)
    for _ in range(400):
        sites.methylate(0, 50_000, rng)
    assert (sites.n_reads == 400).all()
    spread = (sites.n_methylated / 400 - sites.rates) / np.sqrt(np.maximum(sites.rates * (1 - sites.rates), 1e-4) / 400)
    assert np.abs(spread.mean()) < 0.1
    assert spread.std() == pytest.approx(1.0, abs=0.15)


def test_whole_molecules_are_methylated_per_read():
    sites = find(per_read=True, methylated_reads=0.25)
    rng = np.random.default_rng(2)
    states = [sites.methylate(0, 50_000, rng)[1] for _ in range(400)]
    assert all(state.all() or not state.any() for state in states)
    assert np.mean([state[0] for state in states]) == pytest.approx(0.25, abs=0.07)


def test_only_sites_with_both_bases_in_the_molecule_count():
    sites = find()
    first, second, third = sites.positions[:3].tolist()
    found, _ = sites.methylate(first + 1, third + 1, np.random.default_rng(1))
    assert found.tolist() == [second]
    assert sites.n_reads[0, :3].tolist() == [0, 1, 0]
    found, _ = sites.methylate(first, third + 2, np.random.default_rng(1))
    assert found.tolist() == [first, second, third]
    assert len(sites.methylate(first + 1, second, np.random.default_rng(1))[0]) == 0


@pytest.mark.parametrize("motif", ["gpc", "dam", "dcm", "CHG:0", "DRACH:2"])
def test_sites_of_any_motif_are_where_the_strand_has_it(motif: str):
    sites = find(motif)
    text = LETTERS[GENOME.codes].tobytes().decode()
    for reverse in (False, True):
        found, _ = sites.methylate(0, len(text), np.random.default_rng(1), reverse)
        pattern = reverse_complement(sites.motif.pattern) if reverse else sites.motif.pattern
        regex = "(?=" + "".join(f"[{IUPAC[letter]}]" for letter in pattern) + ")"
        assert found.tolist() == [match.start() for match in re.finditer(regex, text)]
        offset = sites.motif.offset_reverse if reverse else sites.motif.offset_forward
        base = reverse_complement(sites.motif.canonical) if reverse else sites.motif.canonical
        assert {text[position + offset] for position in found.tolist()} == {base}
    strands = {0} if sites.motif.is_palindromic else {1, 2}
    assert set(sites.strand.tolist()) == strands


def test_haplotypes_differ_at_some_sites():
    sites = find(haplotypes=True, haplotype_sites=0.4, linked_within=0)
    first, second = sites.rates
    assert (first != second).mean() == pytest.approx(0.4, abs=0.05)
    _, methylated = sites.methylate(0, 50_000, np.random.default_rng(2), False, 1)
    assert sites.n_reads.sum(axis=1).tolist() == [0, len(first)]
    assert np.corrcoef(methylated, second)[0, 1] > np.corrcoef(methylated, first)[0, 1] + 0.1


def test_incomplete_methylation_of_whole_molecules():
    sites = find(per_read=True, methylated_reads=1.0, complete=0.9)
    _, methylated = sites.methylate(0, 50_000, np.random.default_rng(2))
    assert methylated.mean() == pytest.approx(0.9, abs=0.02)
