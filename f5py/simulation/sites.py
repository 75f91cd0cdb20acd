"""Where the CpG sites are, how often each is methylated, and the state of each in a given molecule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.simulation.genome import Genome
from f5py.simulation.settings import RateMixture, SimulationSettings


@dataclass
class Sites:
    """The CpG sites of a genome and what was made of them so far.

    Attributes
    ----------
    positions : int64, shape (n,)
        Flat positions of the C on the forward strand, ascending.
    blocks : int64, shape (n,)
        Sites of the same block share rate and state.
    rates : float64, shape (n,)
        Probability of methylation.
    n_reads, n_methylated : int64, shape (n,)
        Molecules that contain the site (both bases), and those in which it is methylated.
    per_read : bool
        True if a molecule is methylated as a whole or not at all; the rates are then all equal.
    """

    positions: NDArray[np.int64]
    blocks: NDArray[np.int64]
    rates: NDArray[np.float64]
    n_reads: NDArray[np.int64]
    n_methylated: NDArray[np.int64]
    per_read: bool

    @classmethod
    def find(cls, genome: Genome, settings: SimulationSettings, rng: np.random.Generator) -> Sites:
        """Find all sites and draw their rates."""
        positions = genome.cpg_sites()
        n = len(positions)
        contigs = genome.contig_of(positions)
        new_block = (np.diff(positions) > settings.linked_within) | (np.diff(contigs) != 0)
        blocks = np.concatenate(([0], np.cumsum(new_block)))[:n].astype(np.int64)
        if settings.per_read:
            rates = np.full(n, settings.methylated_reads)
        else:
            n_blocks = int(blocks[-1]) + 1 if n else 0
            rates = RateMixture.parse(settings.site_rates).draw(n_blocks, rng)[blocks]
        zeros = np.zeros(n, dtype=np.int64)
        return cls(positions, blocks, rates, zeros, zeros.copy(), settings.per_read)

    def methylate(self, start: int, end: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Draw the states of the sites in a molecule that spans ``[start, end)`` and count them.

        Returns
        -------
        positions : int64, shape (m,)
            Flat positions of the sites whose two bases are in the molecule.
        methylated : bool, shape (m,)
            Their states.
        """
        first, stop = np.searchsorted(self.positions, (start, end - 1))
        if first >= stop:
            return self.positions[:0], np.zeros(0, dtype=bool)
        blocks = self.blocks[first:stop] - self.blocks[first]
        # one draw per block, or one for the whole molecule; the rate is the same wherever the draw is shared
        shared = rng.random(1 if self.per_read else int(blocks[-1]) + 1)
        draws = shared[0] if self.per_read else shared[blocks]
        methylated = draws < self.rates[first:stop]
        self.n_reads[first:stop] += 1
        self.n_methylated[first:stop] += methylated
        return self.positions[first:stop], methylated
