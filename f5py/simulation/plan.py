"""Sequenced molecules: their places, lengths and strands."""

import uuid
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError
from f5py.simulation.genome import Genome
from f5py.simulation.settings import SimulationSettings


@dataclass(frozen=True)
class ReadPlan:
    """Molecules to simulate, in sequencing order."""

    names: list[str]  # read ids in the layout of a UUID
    # starts, lengths: shape (n,): first base (flat position) and number of bases
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    reverse: NDArray[np.bool_]  # shape (n,): True for molecules of the reverse strand
    slow: NDArray[np.bool_]  # shape (n,): True for reads whose bases take longer
    haplotype: NDArray[np.int64]  # shape (n,): 0 or 1; all 0 if there are none


def plan_reads(genome: Genome, settings: SimulationSettings, rng: np.random.Generator) -> ReadPlan:
    """Draw all molecules, each within one run of A, C, G and T of a contig.

    Raises `F5pyError` if the reference is too short for the requested reads.
    """
    begins, sizes = genome.stretches()
    longest = int(sizes.max(initial=0))
    shortest = max(settings.ultra_long, default=0)
    shortest = max(shortest, settings.fixed_length or settings.min_length)
    if longest < shortest:
        raise F5pyError(
            f"a read of {shortest} bases does not fit: the longest run of A, C, G and T in the reference has "
            f"{longest} bases; take a larger genome or shorter reads"
        )
    lengths = np.minimum(_draw_lengths(settings, len(genome.codes), longest, rng), longest)
    lengths = rng.permutation(np.concatenate((lengths, np.array(settings.ultra_long, dtype=np.int64))))
    n = len(lengths)
    if settings.chemistry.rna:
        starts, lengths = _place_at_ends(lengths, begins, sizes, shortest, rng)
        reverse = np.zeros(n, dtype=bool)
    else:
        starts = _place(lengths, begins, sizes, rng)
        reverse = rng.random(n) < {"+": 0.0, "-": 1.0, "both": 0.5}[settings.strand]
    slow = np.zeros(n, dtype=bool)
    slow[rng.permutation(n)[: round(settings.slow_fraction * n)]] = True
    random_bytes = rng.bytes(16 * n)
    names = [str(uuid.UUID(bytes=random_bytes[16 * i : 16 * i + 16], version=4)) for i in range(n)]
    haplotype = rng.integers(0, 2, size=n) if settings.haplotypes else np.zeros(n, dtype=np.int64)
    return ReadPlan(names, starts, lengths, reverse, slow, haplotype)


def _draw_lengths(
    settings: SimulationSettings, genome_size: int, longest: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the requested number of lengths, or enough for the coverage, plus ultra-long reads."""

    def draw(n: int) -> NDArray[np.int64]:
        if settings.fixed_length is not None:
            return np.full(n, settings.fixed_length, dtype=np.int64)
        lengths = np.exp(rng.normal(np.log(settings.median_length), settings.length_sigma, size=n))
        return np.maximum(np.minimum(lengths, longest), settings.min_length).astype(np.int64)

    if settings.n_reads is not None:
        return draw(settings.n_reads)
    wanted = settings.coverage * genome_size
    parts: list[NDArray[np.int64]] = []
    total = 0
    while total < wanted:
        parts.append(draw(1000))
        total += int(parts[-1].sum())
    lengths = np.concatenate(parts) if parts else draw(0)
    return lengths[: int(np.searchsorted(np.cumsum(lengths), wanted)) + 1]


def _place_at_ends(
    lengths: NDArray[np.int64], begins: NDArray[np.int64], sizes: NDArray[np.int64], shortest: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Choose transcripts uniformly; reads begin at their 3' ends, so longer ones are whole transcripts."""
    begins, sizes = begins[sizes >= shortest], sizes[sizes >= shortest]
    which = rng.integers(len(sizes), size=len(lengths))
    lengths = np.minimum(lengths, sizes[which])
    return begins[which] + sizes[which] - lengths, lengths


def _place(
    lengths: NDArray[np.int64], begins: NDArray[np.int64], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Choose every start uniformly among the places for a read of that length."""
    # With the stretches from long to short, a read of length l fits those before index `fit`, and the number
    # of its places there is the running sum of (size - l + 1).
    order = np.argsort(-sizes, kind="stable")
    sizes, begins = sizes[order], begins[order]
    running = np.concatenate(([0], np.cumsum(sizes)))
    fit = np.searchsorted(-sizes, -lengths, side="right")
    places = running[fit] - fit * (lengths - 1)
    place = np.minimum((rng.random(len(lengths)) * places).astype(np.int64), places - 1)
    if len(sizes) == 1:
        return begins[0] + place
    # The stretch of a place: the last s with running[s] - s * (l - 1) <= place.
    low = np.zeros(len(lengths), dtype=np.int64)
    for i, n in enumerate(fit.tolist()):
        low[i] = np.searchsorted(running[:n] - np.arange(n) * (lengths[i] - 1), place[i], side="right") - 1
    return begins[low] + place - (running[low] - low * (lengths - 1))
