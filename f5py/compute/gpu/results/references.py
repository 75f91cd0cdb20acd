"""Reference segments of a batch's reads on a GPU."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.buffers import ArenaPart
from f5py.core.batch import ReadBatch
from f5py.core.offsets import offsets_of
from f5py.threads.pool import WorkerPool


def reads_that_fit(
    batch: ReadBatch, aligned: NDArray[np.int64], wanted: NDArray[np.bool_], part: ArenaPart
) -> NDArray[np.bool_]:
    """Return the mask of the `wanted` reads whose reference segments and CIGARs fit the part."""
    fits = np.cumsum(np.diff(batch.reference_offsets)[aligned] * wanted[aligned]) <= part.size.references
    if part.size.cigars:
        fits &= np.cumsum(np.diff(batch.cigar_offsets)[aligned] * wanted[aligned]) <= part.size.cigars
    chosen = np.zeros(len(batch), np.bool_)
    chosen[aligned[fits]] = wanted[aligned[fits]]
    return chosen


def put_segments(
    part: ArenaPart,
    name: str,
    batch: ReadBatch,
    aligned: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    pool: WorkerPool,
) -> None:
    """Upload a per-read array of the batch with its offsets; empty for reads not in the mask `chosen`."""
    offsets = getattr(batch, f"{name}_offsets")
    part.put_reads(name, getattr(batch, name), offsets, aligned[chosen[aligned]], pool)
    part.put(f"{name}_offsets", offsets_of(np.diff(offsets)[aligned] * chosen[aligned]))
