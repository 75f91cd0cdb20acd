"""Calls in the base modification tags of alignments (modBAM), of any caller, counted by site."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace

import numpy as np

from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.modifications.modified_sites import TagCounts, WantedSites, listed_sites
from f5py.io.reads.reference import Reference
from f5py.site_frequencies.site_counts import SiteColumns, SiteCounts


def count_modbam(
    alignments: AlignmentFile, counts: SiteCounts, contigs: dict[str, int], wanted: WantedSites, genome: str | None,
    n_threads: int, advance: Callable[[int], object] = lambda count: None,
) -> TagCounts:  # fmt: skip
    """Add the calls in a file to counts of sites.

    Raises `InputFileError` if a file is damaged, or they do not belong together.

    Parameters
    ----------
    counts : SiteCounts
        Added to.
    contigs : dict
        Numbers of the contigs so far; added to.
    wanted : WantedSites
        Its reference is that of `genome`.
    genome : str, optional
        FASTA file of the reference, which tells where sites are; without it the bases of the reads do.
    n_threads, advance
        See `listed_sites`.
    """
    from f5py.io.bam.modifications._modified_sites_numba import (
        CANONICAL,
        DELETED,
        DIFFERENT,
        FAILED,
        MISSING,
        MODIFIED,
        OTHER,
    )

    tags = TagCounts()
    number = np.array([contigs.setdefault(name, len(contigs)) for name in alignments.contigs], np.int32)
    reference = None if genome is None else Reference(genome, alignments.contigs, alignments.contig_lengths)
    with nullcontext() if reference is None else closing(reference):
        for _, _, sites in listed_sites(alignments, replace(wanted, reference=reference), tags, n_threads, advance):
            step = sites.position << 1 | (sites.reverse & (not counts.combine_strands))
            kinds = [(sites.state == one).astype(np.uint32) for one in (MODIFIED, CANONICAL, FAILED)]
            rest = sites.state[:, None] == np.array([OTHER, DELETED, DIFFERENT, MISSING], np.uint8)
            kinds.append(rest.astype(np.uint32))
            counts.join(SiteColumns(np.full(len(step), -1, np.int32), number[sites.contig], step, *kinds))
    return tags
