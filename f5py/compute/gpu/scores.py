"""Scores of the site groups of a batch's reads on a GPU, whose events are still there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.buffers import Half, Tables
from f5py.compute.gpu.references import put_segments
from f5py.core.batch import ReadBatch
from f5py.core.motifs import MotifCodes
from f5py.core.offsets import elements_of, offsets_of
from f5py.methylation._group_list_numba import Listing
from f5py.methylation.correlated import Terms, single_precision
from f5py.methylation.hmm_gpu import LANES, MAX_MOTIF, constants, motif_table, work_elements
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import WorkerPool

#: Groups of a warp: two problems each.
_GROUPS = LANES // 2


class GpuScores:
    """The groups of one motif.

    Parameters
    ----------
    half : Half
        With the events and the fits of `aligned`, and room for groups.
    functions : dict of str to cupy.RawKernel
    tables : Tables
        Device arrays of models and motifs that have been used.
    aligned : int64
        Reads in the order in which the half has them.
    pool : WorkerPool
    """

    def __init__(
        self,
        half: Half,
        functions: dict[str, Any],
        tables: Tables,
        aligned: NDArray[np.int64],
        pool: WorkerPool,
    ) -> None:
        self._half, self._functions, self._tables, self._pool = half, functions, tables, pool
        self._aligned = aligned
        self._has_reads = False

    def begin(
        self,
        batch: ReadBatch,
        reads: NDArray[np.bool_],
        model: PoreModel,
        motifs: tuple[MotifCodes, MotifCodes],
        listing: Listing,
        noise: Terms | None,
    ) -> NDArray[np.bool_]:
        """Queue the scoring of the groups of `reads`; what does not fit at once, `fetch` has scored.

        Return which reads have a group of so many events that it does not fit at all.
        """
        if not self._has_reads:
            self._put_reads(batch, reads)
            self._has_reads = True
        self._put_numbers(batch, noise)
        self._noise = None if noise is None else single_precision(noise)
        self._model = self._tables.levels(model)
        strands = motif_table(motifs)
        self._motifs = self._tables.kept(strands.tobytes(), lambda: strands)
        self._arguments = len(motifs[0].masks), motifs[0].offset, motifs[1].offset, model.k
        at = np.flatnonzero(reads[self._aligned])
        counts = batch.n_calls[self._aligned[at]]
        slots = elements_of(batch.call_offsets[self._aligned[at]], counts)
        columns = listing.n_bases[slots].astype(np.int64) - model.k + 1
        rows = np.abs(listing.end[slots] - listing.begin[slots]).astype(np.int64) + 1
        of_read = np.repeat(at, counts)
        # the widest and the longest group of a warp may be two
        is_large = work_elements(columns, rows) > self._half.size.trace_words // 2
        given_back = np.zeros(len(batch), np.bool_)
        given_back[self._aligned[of_read[is_large]]] = True
        left = ~given_back[self._aligned[of_read]]
        slots, columns, rows, of_read = slots[left], columns[left], rows[left], of_read[left]
        order, self._warp_columns, self._warp_rows = in_warps(columns, rows)
        # each warp's place in the scratch memory
        self._work = offsets_of(work_elements(self._warp_columns, self._warp_rows))
        self._slots = slots[order]
        groups = np.empty((len(slots), 5), np.int32)
        groups[:, 0] = of_read[order]
        for i, values in enumerate(listing):
            groups[:, i + 1] = values[self._slots]
        self._groups = groups
        self._found = np.empty((len(batch.call_first), 2, 2), np.float32)
        self._next = 0
        self._queue_chunk()
        return given_back

    def fetch(self) -> NDArray[np.float32]:
        """Wait; return what `finish_all` takes of each slot and hypothesis."""
        host = self._half.host["found"]
        while True:
            self._half.stream.synchronize()
            first, end = self._chunk
            self._found[self._slots[first:end]] = host[: 4 * (end - first)].reshape(-1, 2, 2)
            if self._next == len(self._slots):
                return self._found
            self._queue_chunk()

    def _put_reads(self, batch: ReadBatch, reads: NDArray[np.bool_]) -> None:
        """Send the reference segments and strands of reads."""
        half, aligned = self._half, self._aligned
        with half.stream:
            put_segments(half, "reference", batch, aligned, reads, self._pool)
            half.put("is_reverse", batch.reverse[aligned])

    def _put_numbers(self, batch: ReadBatch, noise: Terms | None) -> None:
        """Send the numbers of reads, which depend on the noise."""
        from f5py.methylation._group_list_numba import numbers_of_reads

        aligned = self._aligned
        numbers = np.empty((len(aligned), 3), np.float32)
        weights = (1.0, 1.0) if noise is None else (noise.stay_weight, noise.step_weight)
        numbers_of_reads(batch.events_per_base[aligned], batch.var[aligned], *weights, numbers)
        with self._half.stream:
            self._half.put("numbers", numbers.reshape(-1))

    def _queue_chunk(self) -> None:
        """Queue as many of the groups that are left as fit."""
        half, first = self._half, self._next
        warp = first // _GROUPS
        room = int(np.searchsorted(self._work, self._work[warp] + half.size.trace_words, "right")) - 1 - warp
        n_warps = min(room, half.size.groups // _GROUPS)
        end = min(first + n_warps * _GROUPS, len(self._slots))
        self._chunk, self._next = (first, end), end
        n = end - first
        warps = slice(warp, warp + -(-n // _GROUPS))
        motif_length, offset, reverse_offset, k = self._arguments
        with half.stream:
            half.put("groups", self._groups[first:end].reshape(-1))
            half.put("work_offsets", self._work[warps] - self._work[warp])
            half.put("warp_columns", self._warp_columns[warps].astype(np.int32))
            half.put("warp_rows", self._warp_rows[warps].astype(np.int32))
            if n:
                name: str = "hmm_forward"
                more: tuple[Any, ...] = ()
                if self._noise is not None:
                    noise = self._noise
                    name, more = "hmm_correlated", (self._tables.kept(noise.tobytes(), lambda: noise),)
                half.launch(
                    self._functions[name], -(-n // _GROUPS), LANES, "event_mean", "q", "reference",
                    "reference_offsets", self._motifs, motif_length, offset, reverse_offset, k, self._model,
                    "fit_shift", "fit_scale", "fit_var", "numbers", "is_reverse",
                    self._tables.kept("constants", constants), "groups", n,
                    "work_offsets", "warp_columns", "warp_rows", "work", "found", *more,
                )  # fmt: skip
            half.download("found", 4 * n)


def in_warps(
    columns: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The order in which groups go to warps, and the maximum numbers of columns and rows of each warp."""
    order = np.lexsort((rows, columns))[::-1]
    starts = np.arange(0, len(order), _GROUPS)
    if not len(order):
        return order, columns, rows
    return order, np.maximum.reduceat(columns[order], starts), np.maximum.reduceat(rows[order], starts)


def can_be_scored(motifs: tuple[MotifCodes, MotifCodes]) -> bool:
    """Whether the kernel takes that motif."""
    return len(motifs[0].masks) <= MAX_MOTIF
