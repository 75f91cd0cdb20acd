"""Simulated sites: places, methylation rates, and states in molecules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import Motif, reverse_complement
from f5py.simulation.genome import Genome
from f5py.simulation.settings import RateMixture, SimulationSettings

_BOTH, _FORWARD, _REVERSE = 0, 1, 2


@dataclass
class SimulatedSites:
    """Sites of a motif in a genome, with counts of molecules so far."""

    motif: Motif
    positions: NDArray[np.int64]  # shape (n,): flat positions of the first base on the forward strand, ascending
    strand: NDArray[np.uint8]  # shape (n,): 0 both, 1 forward, 2 reverse: only palindromic motifs have both
    blocks: NDArray[np.int64]  # shape (n,): sites of the same block share rate and state
    rates: NDArray[np.float64]  # shape (h, n): probability of methylation, in each of h haplotypes
    # n_reads, n_methylated: shape (h, n): molecules that contain the site (all of its bases), and those in which it is
    # methylated
    n_reads: NDArray[np.int64]
    n_methylated: NDArray[np.int64]
    per_read: bool  # True if a molecule is methylated as a whole or not at all; the rates are then all equal
    complete: float = 1.0  # share of the sites of a methylated molecule that are methylated, if `per_read`

    @classmethod
    def none(cls, motif: Motif) -> SimulatedSites:
        """Make an empty set, for models without methylated bases."""
        nothing = np.zeros(0, dtype=np.int64)
        counts = np.zeros((1, 0), dtype=np.int64)
        return cls(motif, nothing, nothing.astype(np.uint8), nothing, np.zeros((1, 0)), counts, counts, False)

    @classmethod
    def find(
        cls, genome: Genome, settings: SimulationSettings, rng: np.random.Generator, motif: Motif
    ) -> SimulatedSites:
        """Find all sites and draw their rates."""
        positions = genome.occurrences(motif.pattern)
        strand = np.full(len(positions), _BOTH if motif.is_palindromic else _FORWARD, np.uint8)
        if not motif.is_palindromic and not settings.chemistry.rna:
            others = genome.occurrences(reverse_complement(motif.pattern))
            positions = np.concatenate((positions, others))
            strand = np.concatenate((strand, np.full(len(others), _REVERSE, np.uint8)))
            order = np.argsort(positions, kind="stable")
            positions, strand = positions[order], strand[order]
        n = len(positions)
        contigs = genome.contig_of(positions)
        new_block = (np.diff(positions) > settings.linked_within) | (np.diff(contigs) != 0)
        blocks = np.concatenate(([0], np.cumsum(new_block)))[:n].astype(np.int64)
        n_haplotypes = 2 if settings.haplotypes else 1
        if settings.per_read:
            rates = np.full((n_haplotypes, n), settings.methylated_reads)
        else:
            n_blocks = int(blocks[-1]) + 1 if n else 0
            mixture = RateMixture.parse(settings.site_rates)
            of_blocks = [mixture.draw(n_blocks, rng)]
            if settings.haplotypes:
                own = rng.random(n_blocks) < settings.haplotype_sites
                of_blocks.append(np.where(own, mixture.draw(n_blocks, rng), of_blocks[0]))
            rates = np.stack(of_blocks)[:, blocks]
        zeros = np.zeros((n_haplotypes, n), dtype=np.int64)
        return cls(motif, positions, strand, blocks, rates, zeros, zeros.copy(), settings.per_read, settings.complete)

    def methylate(
        self, start: int, end: int, rng: np.random.Generator, reverse: bool = False, haplotype: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Draw the states of the sites in a molecule that spans ``[start, end)`` and count them.

        Return the flat positions of the sites that the molecule's strand contains completely, and their states.
        """
        first, stop = np.searchsorted(self.positions, (start, end - len(self.motif.pattern) + 1))
        chosen = np.arange(first, max(stop, first))
        chosen = chosen[self.strand[chosen] != (_FORWARD if reverse else _REVERSE)]
        if not len(chosen):
            return self.positions[:0], np.zeros(0, dtype=bool)
        blocks = self.blocks[chosen] - self.blocks[chosen[0]]
        # one draw per block, or one for the whole molecule; the rate is the same wherever the draw is shared
        shared = rng.random(1 if self.per_read else int(blocks[-1]) + 1)
        draws = shared[0] if self.per_read else shared[blocks]
        methylated = draws < self.rates[haplotype, chosen]
        if self.per_read and self.complete < 1:
            methylated &= rng.random(len(chosen)) < self.complete
        self.n_reads[haplotype, chosen] += 1
        self.n_methylated[haplotype, chosen] += methylated
        return self.positions[chosen], methylated
