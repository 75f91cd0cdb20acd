"""Reads of a batch on a GPU, from their samples to the recalibrated alignment.

Samples are uploaded once. The numbers of events come back first, as they decide the layout; then bases are uploaded,
and events, scaling and alignment stay on the device. Every step is queued in the stream of one arena part, so that the
CPU threads work on their reads meanwhile.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.abea.align import transition_penalties
from f5py.compute.cpu import SignalStages
from f5py.compute.gpu.buffers import ArenaPart, DeviceTables, scatter_reads
from f5py.compute.gpu.placement import Placement, PlacementReason
from f5py.compute.gpu.results.part_results import reads_that_fit
from f5py.compute.gpu.results.rows import GpuRows
from f5py.compute.gpu.results.scores import GpuScores, can_be_scored
from f5py.core.batch import BaseMap, BatchView, Calls, ReadBatch, ReadStatus, empty
from f5py.core.motifs import MotifCodes
from f5py.core.offsets import offsets_of
from f5py.methylation.groups import GroupWindows
from f5py.methylation.hmm import NoiseTerms
from f5py.methylation.per_site import SiteListing
from f5py.pore_model.model import PoreModel
from f5py.signal.events import most_boundaries

_WARP = 32
_THREADS = 128
_MAP = ("first_event", "last_event")
_EVENTS = ("event_start", "event_length", "event_stdv")
_OF_READS = ("n_pairs", "span", "verdict", "n_used", "shift", "scale", "fit_shift", "fit_scale", "fit_var")


@dataclass
class BatchTiming:
    """Seconds of a batch's steps; `gpu` overlaps with the others.

    `total` includes the results, `waited` the time blocked on the GPU.
    """

    pack: float = 0.0
    gpu: float = 0.0
    cpu: float = 0.0
    unpack: float = 0.0
    waited: float = 0.0
    total: float = 0.0


class GpuBatchSlice:
    """Implementation of `f5py.compute.cpu.BatchSlice`, for the reads with `PlacementReason.GPU`.

    Reads that do not fit are placed elsewhere, as are those with more than `max_events_per_base`. `tables` are of the
    current device, with the ``model`` of `f5py.abea.align.model_table`; the part is for exclusive use.
    """

    def __init__(
        self,
        tables: DeviceTables,
        part: ArenaPart,
        stages: SignalStages,
        batch: ReadBatch,
        placement: Placement,
        max_events_per_base: float,
    ) -> None:
        import cupy

        self._tables, self._part, self._stages = tables, part, stages
        self._batch, self._placement = batch, placement
        self._max_events_per_base = max_events_per_base
        self.timing = BatchTiming()
        self._started, self._ended = cupy.cuda.Event(), cupy.cuda.Event()
        self._event_arrays = (
            () if stages.skip_event_copy else ("event_mean",) if stages.means_only else ("event_mean", *_EVENTS)
        )
        self._map_arrays = ("first_event",) if stages.skip_event_copy else _MAP
        self._scores: GpuScores | None = None
        self._chosen: NDArray[np.bool_] | None = None  # what the share makes results of
        self._find_events()
        self.reads = self._mask(self._found)

    def _mask(self, reads: NDArray[np.int64]) -> NDArray[np.bool_]:
        mask = np.zeros(len(self._batch), np.bool_)
        mask[reads] = True
        return mask

    def _launch(self, name: str, *arguments: Any) -> None:
        self._part.launch(self._tables.functions[name], *arguments)

    def _put(self, name: str, reads: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Upload a per-read array of the batch; return its offsets in the part."""
        batch = self._batch
        packed = batch.packed if name == "samples" else None
        return self._part.put_reads(name, getattr(batch, name), offsets, reads, self._stages.pool, packed)

    def _find_events(self) -> None:
        """Upload the samples, and queue event detection."""
        started = time.perf_counter()
        batch, part, parameters = self._batch, self._part, self._stages.parameters
        reads = self._placement.having(PlacementReason.GPU)
        n_samples = batch.n_samples[reads]
        # As many as the CPU has room for, and no more than a read may have here.
        allowed = np.ceil(self._max_events_per_base * batch.read_length[reads]).astype(np.int64) + 1
        slots = np.minimum(most_boundaries(n_samples, parameters), allowed)
        fits = np.cumsum(slots) <= part.size.slots
        self._placement.move(~fits, PlacementReason.NO_MEMORY)
        self._found, n_samples, slots = reads[fits], n_samples[fits], slots[fits]
        n = len(self._found)
        with part.stream:
            self._started.record()
            part.put_together(
                sample_offsets=self._put("samples", self._found, batch.sample_offsets),
                slots=offsets_of(slots),
                sample_order=np.argsort(-n_samples, kind="stable"),
                offset=batch.offset[self._found],
                unit=batch.unit[self._found],
            )
            if n:
                self._launch(
                    "events_find", n, _WARP, "samples", "sample_offsets", "sample_order", n, "offset", "unit",
                    parameters.window_short, parameters.window_long, parameters.threshold_short,
                    parameters.threshold_long, parameters.peak_height, "slots", "slot_start", "slot_mean", "slot_stdv",
                    "n_events",
                )  # fmt: skip
            part.download("n_events", n)
        self.timing.pack += time.perf_counter() - started

    def count(self) -> NDArray[np.int64]:
        batch, part = self._batch, self._part
        part.wait()
        n_events = part.host["n_events"][: len(self._found)].astype(np.int64)
        events_per_base = n_events.astype(np.float32) / batch.read_length[self._found].astype(np.float32)
        is_many = (n_events < 0) | (events_per_base >= self._max_events_per_base)
        self._placement.move(is_many, PlacementReason.MANY_EVENTS)
        fits = np.cumsum(np.where(is_many, 0, n_events)) <= part.size.events
        self._placement.move(~fits[~is_many], PlacementReason.NO_MEMORY)
        self._n_events = np.zeros(len(batch), np.int64)
        kept = self._found[~is_many & fits]
        self._n_events[kept] = n_events[~is_many & fits]
        self.reads = self._mask(kept)
        return self._n_events

    def align(self, batch: ReadBatch) -> None:
        started = time.perf_counter()
        part, k = self._part, self._stages.model.k
        self._aligned = reads = np.flatnonzero(self.reads & (batch.status == ReadStatus.OK))
        lengths, n_events = batch.read_length[reads], self._n_events[reads]
        self._q = q = offsets_of(n_events)
        n = len(reads)
        lp_step, lp_stay = transition_penalties(n_events, lengths - k + 1)
        with part.stream:
            self._p = p = self._put("bases", reads, batch.base_offsets)
            part.put_together(
                p=p,
                q=q,
                slot_of=np.searchsorted(self._found, reads),
                order=np.argsort(-(n_events + lengths), kind="stable"),
                lp_step=lp_step,
                lp_stay=lp_stay,
            )
            if n:
                self._queue_alignment(n, k)
            for name in self._event_arrays:
                part.download(name, int(q[-1]))
            for name in self._map_arrays:
                part.download(name, int(p[-1]))
            part.download_together(_OF_READS, n)
            self._ended.record()
        if part.size.scores:  # while the device aligns
            self._scores = GpuScores(part, self._tables, reads, self._stages.pool)
            self._has_reference = self._that_fit(batch)
            self._scores.put_reads(batch, self._has_reference)
        self.timing.pack += time.perf_counter() - started
        self._cpu_started = time.perf_counter()

    def _queue_alignment(self, n: int, k: int) -> None:
        stages, model = self._stages, self._tables.arrays["model"]
        layout = "p", "q", "order", n, k
        self._launch(
            "events_place", n, _THREADS, "slots", "slot_start", "slot_mean", "slot_stdv", "sample_offsets", "q",
            "slot_of", n, int(stages.rna), int(stages.means_only), "event_start", "event_length", "event_mean",
            "event_stdv",
        )  # fmt: skip
        self._launch(
            "scaling_moments", n, _WARP, "bases", "p", "event_mean", "q", "order", n, k, model, "shift", "scale"
        )
        self._launch("abea_pre", n, _THREADS, "bases", "p", n, k, model, "shift", "scale", "kmers")
        self._launch(
            "abea_core", n, _WARP, "event_mean", "kmers", *layout, "lp_step", "lp_stay", "trace", "best_event", "corner"
        )
        self._launch(
            "abea_post", n, _WARP, "trace", "event_mean", "kmers", *layout, "best_event", "corner", *_MAP, "n_pairs",
            "span", "verdict",
        )  # fmt: skip
        self._launch(
            "scaling_fit", n, _WARP, "p", "event_mean", *layout[1:], model, "kmers", "first_event", "fit_shift",
            "fit_scale", "fit_var", "n_used",
        )  # fmt: skip

    def fetch_event_map(self, batch: ReadBatch) -> None:
        import cupy

        from f5py.compute.gpu.buffers import scatter_maps

        self.timing.cpu = time.perf_counter() - self._cpu_started
        part, pool, reads, k = self._part, self._stages.pool, self._aligned, self._stages.model.k
        part.wait()
        self.timing.gpu = cupy.cuda.get_elapsed_time(self._started, self._ended) / 1e3
        started = time.perf_counter()
        host, n = part.host, len(reads)
        for name in self._event_arrays:
            values = getattr(batch.events, name.removeprefix("event_"))
            scatter_reads(host[name], self._q, reads, values, batch.events.offsets, pool)
        if not self._stages.skip_event_copy:
            maps = BaseMap(self._p, host["first_event"], host["last_event"])
            pool.run(scatter_maps, reads, k, self._p, maps, batch.base_map)
        batch.n_pairs[reads] = host["n_pairs"][:n]
        batch.verdict[reads] = host["verdict"][:n]
        batch.events_per_base[reads] = host["span"][:n] / (batch.read_length[reads] - k + 1)
        batch.shift[reads] = host["shift"][:n]
        batch.scale[reads] = host["scale"][:n]
        self.timing.unpack = time.perf_counter() - started

    def fetch_fit(self, batch: ReadBatch) -> None:
        is_aligned = batch.status[self._aligned] == ReadStatus.OK
        reads, at = self._aligned[is_aligned], np.flatnonzero(is_aligned)
        host = self._part.host
        batch.n_calibration[reads] = host["n_used"][at]
        batch.shift[reads] = host["fit_shift"][at]
        batch.scale[reads] = host["fit_scale"][at]
        batch.var[reads] = host["fit_var"][at]

    def _that_fit(self, batch: ReadBatch) -> NDArray[np.bool_]:
        wanted = self._mask(self._aligned) & (batch.status == ReadStatus.OK)
        return reads_that_fit(batch, self._aligned, wanted, self._part)

    def scores(self, batch: ReadBatch, motifs: tuple[MotifCodes, MotifCodes]) -> NDArray[np.bool_]:
        if self._scores is None or not can_be_scored(motifs, self._part.size.site_scores):
            self._fetch_left(batch, self.reads)
            return np.zeros(len(batch), np.bool_)
        if self._chosen is None:
            self._chosen = self._has_reference & (batch.status == ReadStatus.OK)
            self._fetch_left(batch, ~self._chosen)
        return self._chosen

    def view(self, batch: ReadBatch) -> BatchView:
        """Return a view of the batch; event maps that stayed on the device are read from the download buffers."""
        if not self._stages.skip_event_copy:
            return batch.view
        # the reads of the share stand there in the order of the batch
        offsets = offsets_of(batch.read_length * self._mask(self._aligned))
        maps = BaseMap(offsets, self._part.host["first_event"], empty(np.int32))
        return batch.view._replace(base_map=maps)

    def _fetch_left(self, batch: ReadBatch, reads: NDArray[np.bool_]) -> None:
        """Download event means and maps of the reads that the CPU threads score."""
        at = np.flatnonzero((reads & (batch.status == ReadStatus.OK))[self._aligned])
        if not self._stages.skip_event_copy or not len(at):
            return
        self._part.download("event_mean", int(self._q[-1]))
        self._part.wait()
        host, events, base_map = self._part.host, batch.events, batch.base_map
        given, pool = self._aligned[at], self._stages.pool
        scatter_reads(host["event_mean"], self._q[at], given, events.mean, events.offsets, pool)
        scatter_reads(host["first_event"], self._p[at], given, base_map.first_event, base_map.offsets, pool)

    def begin_scores(
        self,
        batch: ReadBatch,
        model: PoreModel,
        motifs: tuple[MotifCodes, MotifCodes],
        listing: GroupWindows,
        noise: NoiseTerms | None,
    ) -> NDArray[np.bool_]:
        assert self._scores is not None
        assert self._chosen is not None
        given_back = self._scores.begin(batch, self._chosen, model, motifs, listing, noise)
        self._fetch_left(batch, given_back)
        return given_back

    def fetch_scores(self, calls: Calls) -> float:
        assert self._scores is not None
        return self._scores.fetch(calls)

    def begin_sites(self, batch: ReadBatch, sites: SiteListing) -> NDArray[np.bool_]:
        from f5py.compute.gpu.results.site_scores import GpuSites

        assert self._scores is not None
        self._sites = GpuSites(self._part, self._tables, self._aligned, self._stages.pool)
        given_back = self._sites.begin(batch, self._scores, sites)
        self._fetch_left(batch, given_back)
        return given_back

    def fetch_sites(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._sites.fetch()

    def rows(self, batch: ReadBatch) -> NDArray[np.bool_]:
        if not self._part.size.rows:
            return np.zeros(len(batch), np.bool_)
        self._chosen = self._that_fit(batch)
        return self._chosen

    def begin_rows(
        self, batch: ReadBatch, model: PoreModel, ln_var: NDArray[np.float32], log_transitions: NDArray[np.float32]
    ) -> None:
        assert self._chosen is not None
        self._rows = GpuRows(self._part, self._tables, self._aligned, self._stages.pool)
        self._rows.begin(batch, self._chosen, model, ln_var, log_transitions)

    def fetch_rows(self, batch: ReadBatch) -> NDArray[np.bool_]:
        return self._rows.fetch(batch)
