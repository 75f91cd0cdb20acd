"""Mapped reads as BAM records or PAF lines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.mapping.batch import ContigColumns, MappingBatch
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import collecting, copy_to_places
from f5py.threads.pool import WorkerPool, longest_first

#: Tags that f5py writes, dropped from the input.
OWN_TAGS = ("NM", "ms", "AS", "nn", "tp", "cm", "s1", "s2", "de", "zd", "SA", "MD", "cs", "rl", "CG")


class RecordStyle(NamedTuple):
    """Options of records."""

    md: bool = True  # tag MD
    cs: str | None = None  # tag cs, "short" or "long"
    eqx: bool = False  # = and X in the place of M
    soft_clips: bool = False  # all records have the whole read
    secondary: bool = True  # write secondary alignments
    unmapped: bool = True  # write reads without a place
    chains: bool = True  # tags of chains and of what minimap2 makes of scores: ms, cm, s1, s2, rl

    def switches(self) -> NDArray[np.int64]:
        """Return the array for kernels."""
        return np.array(
            [
                self.md, self.cs is not None, self.cs == "long", self.eqx, self.soft_clips, not self.secondary,
                not self.chains, self.unmapped,
            ],
            np.int64,
        )  # fmt: skip


def records_of(
    batch: MappingBatch, index: ReferenceIndex, names: Names, style: RecordStyle, pool: WorkerPool
) -> tuple[NDArray[np.uint8], int]:
    """Format the BAM records of a batch with hits, in the order of the reads; return them and their number."""
    from f5py.mapping.output._records_numba import records_of_reads

    return _format_reads(records_of_reads, batch, index, names, style, pool)


def paf_lines_of(
    batch: MappingBatch, index: ReferenceIndex, names: Names, style: RecordStyle, pool: WorkerPool
) -> tuple[NDArray[np.uint8], int]:
    """Format the PAF lines of a batch with hits, in the order of the reads; return them and their number."""
    from f5py.mapping.output._paf_numba import lines_of_reads

    return _format_reads(lines_of_reads, batch, index, names, style, pool)


def _format_reads(
    kernel: Any, batch: MappingBatch, index: ReferenceIndex, names: Names, style: RecordStyle, pool: WorkerPool
) -> tuple[NDArray[np.uint8], int]:
    """Format reads in threads, and concatenate the results in the order of the reads."""
    assert batch.hits is not None
    assert batch.anchors is not None
    n = len(batch)
    contigs = ContigColumns(index.bases, index.offsets, names.text, names.offsets)
    given = batch.columns, batch.hits, batch.anchors.rep_len, contigs, style.switches()
    sizes, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    results: list[Any] = []
    reads = longest_first(batch.lengths, np.ones(n, np.bool_))
    pool.run(collecting(kernel, results), reads, *given, sizes, counts, order=batch.number)
    offsets = offsets_of(sizes)
    out = np.empty(offsets[-1], np.uint8)
    for done, text in results:
        copy_to_places(done, sizes, offsets, text, out)
    return out, int(counts.sum())
