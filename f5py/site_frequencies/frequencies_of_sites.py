"""Counts of single sites as frequencies, with the columns of those that are counted from tables of calls."""

from __future__ import annotations

import numpy as np

from f5py.core.offsets import offsets_of
from f5py.site_frequencies.site_counts import SiteCounts
from f5py.site_frequencies.site_table import Frequencies


def frequencies_of_sites(counts: SiteCounts, contigs: list[bytes], stranded: bool) -> Frequencies:
    """Sites with valid calls, both strands as one; their sequences are not known, and shown as ``split-group``.

    Parameters
    ----------
    counts : SiteCounts
        Without partitions, and with both strands apart if `stranded`.
    contigs : list of bytes
        Names by index.
    stranded : bool
        Show the counts of both strands, too.
    """
    from f5py.site_frequencies._site_table_numba import SPLIT_TEXT, Names, Sites

    totals = counts.totals(contigs).of(-1)
    place = totals.contig.astype(np.int64) << 32 | totals.position
    is_first = np.ones(len(place), np.bool_)
    is_first[1:] = place[1:] != place[:-1]
    first = np.flatnonzero(is_first)
    of_reverse = totals.reverse.astype(np.int64)
    sums = (totals.valid, totals.methylated, totals.valid * of_reverse, totals.methylated * of_reverse)
    called, methylated, called_reverse, methylated_reverse = (
        np.add.reduceat(one, first) if len(first) else one for one in sums
    )
    n = len(first)
    position = totals.position[first]
    sites = Sites(
        slots=np.empty(0, np.int32),
        name=totals.contig[first],
        span=position << 32 | position,
        group_size=np.ones(n, np.int32),
        called=called,
        methylated=methylated,
        text_start=np.zeros(n, np.int64),
        text_size=np.zeros(n, np.int32),
        texts=SPLIT_TEXT.copy(),
        called_reverse=called_reverse,
        methylated_reverse=methylated_reverse,
    )
    text = np.frombuffer(bytearray(b"".join(contigs)), np.uint8)  # writable, as names of tables: one code for both
    names = Names(np.empty(0, np.int32), offsets_of([len(name) for name in contigs]), text)
    return Frequencies("num_motifs", contigs, 0, stranded, np.flatnonzero(called), sites, names)
