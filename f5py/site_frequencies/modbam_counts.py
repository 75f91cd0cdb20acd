"""Counts of calls in base modification tags (modBAM) of any caller, by site."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace

import numpy as np

from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.modifications.modified_sites import SiteSelection, TagCounts, iterate_sites
from f5py.io.reads.reference import Reference
from f5py.site_frequencies.site_counts import SiteColumns, SiteCounts


def count_modbam(
    alignments: AlignmentFile, counts: SiteCounts, contigs: dict[str, int], wanted: SiteSelection, genome: str | None,
    n_threads: int, advance: Callable[[int], object] = lambda count: None,
) -> TagCounts:  # fmt: skip
    """Add the calls in a file to `counts`, and its contigs to the index `contigs`.

    Sites are those of the reference `genome` (FASTA), or else of the reads' bases; see `iterate_sites`.
    """
    from f5py.io.bam.modifications import _modified_sites_numba as states

    tags = TagCounts()
    number = np.array([contigs.setdefault(name, len(contigs)) for name in alignments.contigs], np.int32)
    reference = None if genome is None else Reference(genome, alignments.contigs, alignments.contig_lengths)
    with nullcontext() if reference is None else closing(reference):
        for _, _, sites in iterate_sites(alignments, replace(wanted, reference=reference), tags, n_threads, advance):
            step = sites.position << 1 | (sites.reverse & (not counts.combine_strands))
            of_kind = [sites.state == kind for kind in (states.MODIFIED, states.CANONICAL, states.FAILED)]
            rest = np.array([states.OTHER, states.DELETED, states.DIFFERENT, states.MISSING], np.uint8)
            kinds = (marks.astype(np.uint32) for marks in (*of_kind, sites.state[:, None] == rest))
            counts.join(SiteColumns(np.full(len(step), -1, np.int32), number[sites.contig], step, *kinds))
    return tags
