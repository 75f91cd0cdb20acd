"""Filter of alignment records, with counts by outcome."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.record_reads import RecordReads
from f5py.io.reads.read_index import ReadIndex
from f5py.pipeline.seen_records import SeenRecords


def classified(
    alignments: AlignmentFile,
    reads: ReadIndex | RecordReads,
    seen: SeenRecords | None,
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    n: int,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Classify `n` records; return their kinds, uint8, rows in the index of the reads, and read lengths, int64.

    Parameters
    ----------
    alignments : AlignmentFile
        Has the filters, and the counts, which are updated.
    seen : SeenRecords or None
        Finds duplicates, if these are skipped.
    data, starts, n
        See `f5py.io.bam._bam_numba.list_records`.
    """
    from f5py.io.bam._bam_numba import (
        DUPLICATE,
        KEPT,
        LOW_MAPQ,
        NO_BASES,
        SECONDARY,
        SUPPLEMENTARY,
        UNMAPPED,
        UNMAPPED_LOW_MAPQ,
        RecordFilter,
        classify,
    )

    index = reads.held.index if isinstance(reads, RecordReads) else reads.index
    kinds, rows = np.empty(n, np.uint8), np.empty(n, np.int64)
    wanted = RecordFilter(alignments.min_mapq, alignments.secondary, alignments.supplementary)
    classify(data, starts, n, wanted, index.name_table, kinds, rows)
    if isinstance(reads, RecordReads):
        lengths, rows = reads.look_up(data, starts, n, kinds == KEPT)
        kinds[(kinds == KEPT) & (lengths == 0)] = NO_BASES
    else:
        lengths = reads.lengths_of(rows)
    if seen is not None:
        seen.mark(data, starts, n, kinds)
    found = np.bincount(kinds, minlength=DUPLICATE + 1)
    counts = alignments.counts
    counts.kept += int(found[KEPT])
    counts.unmapped += int(found[UNMAPPED])
    counts.low_mapq += int(found[LOW_MAPQ] + found[UNMAPPED_LOW_MAPQ])
    counts.unmapped_low_mapq += int(found[UNMAPPED_LOW_MAPQ])
    counts.secondary += int(found[SECONDARY])
    counts.supplementary += int(found[SUPPLEMENTARY])
    counts.no_bases += int(found[NO_BASES])
    counts.duplicates += int(found[DUPLICATE])
    return kinds, rows, lengths
