"""Reads for the tests of the aligners: bases, event means, scaling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f5py.core.kmers import base_codes
from f5py.pore_model import PoreModel, builtin

MODEL = builtin("r9.4_450bps.nucleotide.6mer")
LETTERS = np.frombuffer(b"ACGT", np.uint8)


@dataclass(frozen=True)
class Read:
    """Inputs of an aligner for one read: letters, event means in pA, shift and scale."""

    bases: np.ndarray
    events: np.ndarray
    shift: float = 0.0
    scale: float = 1.0

    def ranks(self, k: int) -> np.ndarray:
        """Ranks of the k-mers, int32."""
        codes = base_codes()[self.bases].astype(np.int32)
        n_kmers = len(codes) - k + 1
        return sum(codes[i : i + n_kmers] << (2 * (k - 1 - i)) for i in range(k)).astype(np.int32)


def random_bases(rng: np.random.Generator, n_bases: int) -> np.ndarray:
    """Letters ACGT, uint8."""
    return rng.choice(LETTERS, n_bases)


def simulate(
    rng: np.random.Generator,
    bases: np.ndarray,
    events_per_kmer: float = 1.7,
    noise: float = 1.0,
    shift: float = 0.0,
    scale: float = 1.0,
    model: PoreModel = MODEL,
) -> Read:
    """Simulate a read of these bases: one event of each k-mer and a random number of further ones."""
    n_kmers = len(bases) - model.k + 1
    repeats = 1 + rng.poisson(max(events_per_kmer - 1, 0), n_kmers)
    return events_of(rng, bases, repeats, noise, shift, scale, model)


def events_of(
    rng: np.random.Generator,
    bases: np.ndarray,
    repeats: np.ndarray,
    noise: float = 1.0,
    shift: float = 0.0,
    scale: float = 1.0,
    model: PoreModel = MODEL,
) -> Read:
    """Simulate a read with the given number of events of each k-mer."""
    index = np.repeat(Read(bases, np.empty(0)).ranks(model.k), repeats)
    levels = model.level_mean[index] + noise * model.level_stdv[index] * rng.normal(size=len(index))
    return Read(bases, (scale * levels + shift).astype(np.float32), shift, scale)


def dense(rng: np.random.Generator, n_bases: int, events_per_base: int = 15, noise: float = 1.0) -> Read:
    """Simulate a read of `n_bases` with exactly `events_per_base` times as many events."""
    bases = random_bases(rng, n_bases)
    n_kmers = n_bases - MODEL.k + 1
    extra = rng.multinomial(events_per_base * n_bases - n_kmers, np.full(n_kmers, 1 / n_kmers))
    return events_of(rng, bases, 1 + extra, noise)


def unrelated(rng: np.random.Generator, n_bases: int, n_events: int) -> Read:
    """Bases and events that have nothing to do with each other: rejected for low emission."""
    return Read(random_bases(rng, n_bases), rng.uniform(0, 250, n_events).astype(np.float32))


def too_few_events(rng: np.random.Generator, n_bases: int, n_events: int) -> Read:
    """Only the first events of a read: the band's path does not reach from end to end."""
    bases = random_bases(rng, n_bases)
    return Read(bases, MODEL.level_mean[Read(bases, np.empty(0)).ranks(MODEL.k)[:n_events]])


def long_gap(rng: np.random.Generator, n_bases: int = 366, n_skipped: int = 60, noise: float = 0.3) -> Read:
    """Simulate a read that is good but for many k-mers in its middle without events: skipping them is the best path."""
    bases = random_bases(rng, n_bases)
    at = n_bases // 2
    bases[at : at + n_skipped + MODEL.k - 1] = ord("A")
    repeats = 1 + rng.poisson(1.0, n_bases - MODEL.k + 1)
    repeats[at : at + n_skipped] = 0
    return events_of(rng, bases, repeats, noise)


def detours(rng: np.random.Generator, n_bases: int, most: int = 45, noise: float = 0.8) -> Read:
    """Simulate a read whose pore stalls and slips: runs of events of one k-mer, runs of k-mers without events.

    The path bends sharply and comes to the edges of the band, which has to find it again.
    """
    bases = random_bases(rng, n_bases)
    n_kmers = n_bases - MODEL.k + 1
    repeats = 1 + rng.poisson(0.7, n_kmers)
    for at in rng.integers(0, n_kmers, 1 + n_bases // 100):
        if rng.random() < 0.5:
            repeats[at] += rng.integers(20, 3 * most)
        else:
            repeats[at : at + rng.integers(5, most)] = 0
    repeats[n_kmers // 2] += 1
    return events_of(rng, bases, repeats, noise)


def uneven(rng: np.random.Generator, n_bases: int, noise: float = 0.2) -> Read:
    """Simulate a read in which many k-mers have no event, the others several: skips follow stays everywhere."""
    repeats = rng.choice([0, 2, 3, 4], n_bases - MODEL.k + 1)
    return events_of(rng, random_bases(rng, n_bases), repeats, noise)


def without_first_events(rng: np.random.Generator, n_bases: int, n_missing: int = 1, noise: float = 0.2) -> Read:
    """Simulate a good read whose first k-mers have no events: at best they are skipped, at the cost of no event."""
    repeats = 2 + rng.poisson(0.5, n_bases - MODEL.k + 1)
    repeats[:n_missing] = 0
    return events_of(rng, random_bases(rng, n_bases), repeats, noise)


def repetitive(rng: np.random.Generator, unit: bytes, n_units: int, noise: float = 1.0) -> Read:
    """Simulate a tandem repeat: paths of equal score differ in the last digit, by the order of the additions."""
    return simulate(rng, np.frombuffer(unit * n_units, np.uint8), 1.9, noise, 3.3, 0.937)


def homopolymer(n_bases: int, n_events: int) -> Read:
    """One k-mer over and over: many paths have the same score, and the order of preference decides."""
    return Read(np.full(n_bases, ord("A"), np.uint8), np.full(n_events, MODEL.level_mean[0], np.float32))


def stalled(read: Read, n_before: int, n_after: int, level: float = 200.0) -> Read:
    """Add constant events before and after a read, which the alignment trims."""
    before, after = np.full(n_before, level, np.float32), np.full(n_after, level, np.float32)
    return Read(read.bases, np.concatenate([before, read.events, after]), read.shift, read.scale)


def made_model(seed: int, k: int) -> PoreModel:
    rng = np.random.default_rng(seed)
    levels = rng.uniform(60, 130, 4**k).astype(np.float32)
    stdvs = rng.uniform(1, 3, 4**k).astype(np.float32)
    return PoreModel(f"made of seed {seed}", k, "ACGT", levels, stdvs)


def map_of(pairs: list[tuple[int, int]], n_kmers: int) -> tuple[list[int], list[int]]:
    """First and last event of each k-mer by the forward rule: a repeated event belongs to its first k-mer."""
    first, last = [-1] * n_kmers, [-1] * n_kmers
    previous = -1
    for j, e in pairs:
        if e != previous:
            if first[j] < 0:
                first[j] = e
            last[j] = e
        previous = e
    return first, last


def unscalable(rng: np.random.Generator, n_bases: int) -> Read:
    """Simulate a read whose scaling failed: no score is a number, so the band goes astray and misses the last k-mer."""
    read = simulate(rng, random_bases(rng, n_bases))
    return Read(read.bases, read.events, 0.0, float("nan"))
