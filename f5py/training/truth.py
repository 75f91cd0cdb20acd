"""Sites of known methylation from bedMethyl."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from f5py.core.motifs import Motif
from f5py.errors import InputFileError
from f5py.evaluation.known_sites import METHYLATED, UNMETHYLATED, read_sites
from f5py.io.bounds import POSITION_BITS
from f5py.training.sums import SiteTruth


def read_truth(path: str, contigs: Sequence[str], motif: Motif) -> SiteTruth:
    """Read the sites of a motif from bedMethyl, in the order of the alignments' `contigs`.

    Raises `InputFileError` if the file is missing, is no bedMethyl, or has no site of known state.
    """
    sites = read_sites(path, motif)
    at = {name: i for i, name in enumerate(contigs)}
    contig = np.array([at.get(name, -1) for name in sites.contigs], np.int64)[sites.place >> POSITION_BITS]
    position = sites.place & (1 << POSITION_BITS) - 1
    known = sites.is_uniform & ((sites.frequency <= UNMETHYLATED) | (sites.frequency >= METHYLATED)) & (contig >= 0)
    if not known.any():
        raise InputFileError(
            f"{path}: no site of at most {100 * UNMETHYLATED:g} % or at least {100 * METHYLATED:g} % is on a contig of "
            "the alignments"
        )
    order = np.lexsort((position[known], contig[known]))
    contig, position = contig[known][order], position[known][order]
    states = (sites.frequency[known] >= METHYLATED).astype(np.uint8)[order]
    first = np.searchsorted(contig, np.arange(len(contigs) + 1))
    return SiteTruth(first.astype(np.int64), position, states, True)
