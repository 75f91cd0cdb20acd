"""Scores of the site groups of a batch's reads on a GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.results.part_results import PartResults
from f5py.compute.gpu.results.references import put_segments
from f5py.core.batch import Calls, ReadBatch
from f5py.core.motifs import MotifCodes
from f5py.methylation._group_list_numba import GroupWindows
from f5py.methylation.correlated import NoiseTerms, single_precision
from f5py.methylation.hmm_gpu import LANES, MAX_MOTIF, constants, motif_table
from f5py.pore_model.model import PoreModel


class MotifScoring(NamedTuple):
    """Models, noise and sites of a motif's groups."""

    model: Any  # see `Tables.levels`
    motifs: Any  # see `f5py.methylation.hmm_gpu.motif_table`
    k: int
    noise: NoiseTerms | None
    listing: GroupWindows


class GpuScores(PartResults):
    """Groups of one motif.

    Attributes
    ----------
    scoring : MotifScoring
        Of the latest `begin`.
    """

    def begin(
        self,
        batch: ReadBatch,
        reads: NDArray[np.bool_],
        model: PoreModel,
        motifs: tuple[MotifCodes, MotifCodes],
        listing: GroupWindows,
        noise: NoiseTerms | None,
    ) -> NDArray[np.bool_]:
        """Queue the scoring of the groups of `reads`; `fetch` queues those that do not fit at once.

        Return the mask of reads with a group of too many events.
        """
        from f5py.compute.gpu.results._group_order_numba import (
            GROUPS,
            WARPS_OF_PIECE,
            GroupLimits,
            PartCalls,
            describe_groups,
            empty_order,
            order_groups,
        )

        self._put_numbers(batch, noise)
        strands = motif_table(motifs)
        on_device = self._tables.kept(strands.tobytes(), lambda: strands)
        self.scoring = MotifScoring(self._tables.levels(model), on_device, model.k, noise, listing)
        self._places = len(motifs[0].masks), motifs[0].offset, motifs[1].offset
        at = np.flatnonzero(reads[self._aligned])
        given_back = np.zeros(len(batch), np.bool_)
        most, room = int(batch.calls.n[self._aligned[at]].sum()), self._part.size.groups
        self._order = order = empty_order(most, self._part.host["groups"][: 5 * room])
        self._is_described_there = most <= room
        self._run(
            order_groups, at, PartCalls(self._aligned, batch.calls.offsets, batch.calls.n), listing,
            GroupLimits(model.k, self._part.size.trace_words), order, given_back,
        )  # fmt: skip
        self._n = int(order.n[0])
        self._run_pieces(describe_groups, self._n, GROUPS * WARPS_OF_PIECE, listing, model.k, order)
        np.cumsum(order.work, out=order.work)
        self._next = 0
        self._queue_chunk()
        return given_back

    def fetch(self, calls: Calls) -> float:
        """Wait, and fill the log-likelihoods of the groups; return the thread seconds."""
        from f5py.compute.gpu.results._group_order_numba import SLOTS_OF_PIECE, put_back

        host, seconds = self._part.host["found"], 0.0
        while True:
            self._part.wait()
            first, end = self._chunk
            places = self._order.places[first:end]
            seconds += self._run_pieces(put_back, end - first, SLOTS_OF_PIECE, places, host, calls)
            if self._next == self._n:
                return seconds
            self._queue_chunk()

    def put_reads(self, batch: ReadBatch, reads: NDArray[np.bool_]) -> None:
        """Upload reference segments and strands of reads; may precede `begin` by far."""
        part, aligned = self._part, self._aligned
        with part.stream:
            put_segments(part, "reference", batch, aligned, reads, self._pool)
            part.put("is_reverse", batch.reverse[aligned])

    def _put_numbers(self, batch: ReadBatch, noise: NoiseTerms | None) -> None:
        """Upload the scaling of reads, which depends on the noise."""
        from f5py.methylation._group_list_numba import numbers_of_reads

        aligned = self._aligned
        numbers = np.empty((len(aligned), 3), np.float32)
        weights = (1.0, 1.0) if noise is None else (noise.stay_weight, noise.step_weight)
        numbers_of_reads(batch.events_per_base[aligned], batch.var[aligned], *weights, numbers)
        with self._part.stream:
            self._part.put("numbers", numbers.reshape(-1))

    def _queue_chunk(self) -> None:
        """Queue as many of the remaining groups as fit."""
        from f5py.compute.gpu.results._group_order_numba import GROUPS

        part, order, first = self._part, self._order, self._next
        warp = first // GROUPS
        all_warps = -(-self._n // GROUPS)
        work = order.work[: all_warps + 1]
        room = int(np.searchsorted(work, work[warp] + part.size.trace_words, "right")) - 1 - warp
        n_warps = min(room, part.size.groups // GROUPS)
        end = min(first + n_warps * GROUPS, self._n)
        self._chunk, self._next = (first, end), end
        n = end - first
        warps = slice(warp, warp + -(-n // GROUPS))
        model, motifs, k, terms, _ = self.scoring
        with part.stream:
            if self._is_described_there and first == 0:
                part.upload("groups", 5 * n)
            else:
                part.put("groups", order.groups[first:end].reshape(-1))
            part.put_together(
                work_offsets=work[warps] - work[warp], warp_columns=order.columns[warps], warp_rows=order.rows[warps]
            )
            if n:
                name: str = "hmm_forward"
                more: tuple[Any, ...] = ()
                if terms is not None:
                    noise = single_precision(terms)
                    name, more = "hmm_correlated", (self._tables.kept(noise.tobytes(), lambda: noise),)
                part.launch(
                    self._functions[name], -(-n // GROUPS), LANES, "event_mean", "q", "reference", "reference_offsets",
                    motifs, *self._places, k, model, "fit_shift", "fit_scale", "fit_var", "numbers", "is_reverse",
                    self._tables.kept("constants", constants), "groups", n, "work_offsets", "warp_columns",
                    "warp_rows", "work", "found", *more,
                )  # fmt: skip
            part.download("found", 4 * n)


def can_be_scored(motifs: tuple[MotifCodes, MotifCodes], per_site: bool) -> bool:
    """Return whether the kernels support the motif.

    Of overlapping sites they score the first; on the CPU each of them is a call of `per_site`.
    """
    return len(motifs[0].masks) <= MAX_MOTIF and not (per_site and any(_may_overlap(codes) for codes in motifs))


def _may_overlap(motif: MotifCodes) -> bool:
    """Return whether occurrences of the motif can overlap."""
    masks = motif.masks
    return any(bool((masks[i:] & masks[:-i]).all()) for i in range(1, len(masks)))
