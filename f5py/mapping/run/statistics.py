"""Distributions and sums by contig for the report of ``f5py map``."""

import numpy as np

from f5py.compute.statistics import LENGTH_EDGES
from f5py.mapping.batch import MappingBatch
from f5py.mapping.hit_table import BLEN, CONTIG, MAPQ, MLEN, PRIMARY, QE, QS, RE, READ, RS

#: The best mapping quality.
MOST_MAPQ = 60
#: Identities are counted in bins of this many per cent.
IDENTITY_WIDTH = 1
_N_IDENTITIES = 100 // IDENTITY_WIDTH


class MapStatistics:
    """Sums over the batches of a run, with one alignment, the primary, for each read.

    Attributes
    ----------
    lengths, yields : int64
        Reads by length (`f5py.compute.statistics.LENGTH_EDGES`), and their aligned bases.
    qualities : int64, shape (MOST_MAPQ + 1,)
        Reads by mapping quality.
    identities : int64
        Reads by the per cent of equal columns in their alignment; 100 counts in the last bin.
    reads, covered : int64, shape (n_contigs,)
        Reads, and bases that their alignments span.
    aligned_bases, columns, equal_columns : int
        Aligned bases of reads, and columns of alignments.
    """

    def __init__(self, n_contigs: int) -> None:
        self.lengths, self.yields = np.zeros((2, len(LENGTH_EDGES) - 1), np.int64)
        self.qualities = np.zeros(MOST_MAPQ + 1, np.int64)
        self.identities = np.zeros(_N_IDENTITIES, np.int64)
        self.reads, self.covered = np.zeros((2, n_contigs), np.int64)
        self.aligned_bases = self.columns = self.equal_columns = 0

    def add(self, batch: MappingBatch) -> None:
        """Count a batch with hits."""
        assert batch.hits is not None
        hits = batch.hits.table
        primary = hits[hits[:, PRIMARY] != 0]
        lengths = np.clip(batch.lengths, LENGTH_EDGES[0], LENGTH_EDGES[-1])
        self.lengths += np.histogram(lengths, LENGTH_EDGES)[0]
        aligned = primary[:, QE] - primary[:, QS]
        of_read = lengths[primary[:, READ]]
        self.yields += np.histogram(of_read, LENGTH_EDGES, weights=aligned)[0].astype(np.int64)
        self.qualities += np.bincount(primary[:, MAPQ], minlength=MOST_MAPQ + 1)
        columns, equal = primary[:, BLEN], primary[:, MLEN]
        share = 100 * equal // np.maximum(columns, 1) // IDENTITY_WIDTH
        self.identities += np.bincount(np.minimum(share, _N_IDENTITIES - 1), minlength=_N_IDENTITIES)
        contig, n_contigs = primary[:, CONTIG], len(self.reads)
        self.reads += np.bincount(contig, minlength=n_contigs)
        self.covered += np.bincount(contig, primary[:, RE] - primary[:, RS], n_contigs).astype(np.int64)
        self.aligned_bases += int(aligned.sum())
        self.columns += int(columns.sum())
        self.equal_columns += int(equal.sum())

    @property
    def identity(self) -> float | None:
        """Share of equal columns; None without alignments."""
        return self.equal_columns / self.columns if self.columns else None
