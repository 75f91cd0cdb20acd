"""Parts of the compiled code of runs with a GPU: what the CPU threads do before its kernels and after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import BaseMap, BatchView, Calls, ReadBatch
from f5py.core.motifs import MotifCodes
from f5py.runs.compiled.cpu_parts import (
    AT_ONCE,
    CORRELATED,
    INDEPENDENT,
    mapping_without_reads,
    no_chained_hits,
    no_reads,
    what_is_called,
)

if TYPE_CHECKING:
    from f5py.methylation._group_list_numba import Listing
    from f5py.methylation._site_list_numba import SiteListing
    from f5py.methylation.correlated import Terms
    from f5py.pore_model.model import PoreModel

_NO_READS = np.empty(0, np.int64)


def _copies() -> None:
    from f5py.compute.gpu._packing_numba import gather, scatter, scatter_maps
    from f5py.io.signals._stored_numba import copy_samples

    nothing, offsets = np.empty(0, np.uint8), np.zeros(1, np.int64)
    AT_ONCE.run(copy_samples, _NO_READS, no_reads().stored_samples, _NO_READS, np.empty(0, np.int16))
    AT_ONCE.run(gather, _NO_READS, offsets, nothing, offsets, nothing)
    AT_ONCE.run(scatter, _NO_READS, offsets, nothing, offsets, nothing)
    AT_ONCE.run(scatter_maps, _NO_READS, 6, offsets, BaseMap.none(), BaseMap.none())


class _Elsewhere:
    """Scores nothing, with the code that stands around the kernels of scores; see `ScoredElsewhere`."""

    def scores(self, batch: ReadBatch, motifs: tuple[MotifCodes, MotifCodes]) -> NDArray[np.bool_]:
        return np.zeros(len(batch), np.bool_)

    def view(self, batch: ReadBatch) -> BatchView:
        return batch.view

    def begin_scores(
        self,
        batch: ReadBatch,
        model: PoreModel,
        motifs: tuple[MotifCodes, MotifCodes],
        listing: Listing,
        noise: Terms | None,
    ) -> NDArray[np.bool_]:
        from f5py.compute.gpu.results._group_order_numba import (
            Limits,
            PartCalls,
            describe_groups,
            empty_order,
            order_groups,
        )
        from f5py.methylation._group_list_numba import numbers_of_reads

        self._k, self._is_correlated, self._listing = model.k, noise is not None, listing
        numbers_of_reads(batch.events_per_base, batch.var, 1.0, 1.0, np.empty((0, 3), np.float32))
        calls = PartCalls(_NO_READS, batch.calls.offsets, batch.calls.n)
        given_back = np.zeros(len(batch), np.bool_)
        order = empty_order(0)
        AT_ONCE.run(order_groups, _NO_READS, _NO_READS, calls, listing, Limits(model.k, 1), order, given_back)
        AT_ONCE.run(describe_groups, _NO_READS, listing, model.k, order)
        return given_back

    def fetch_scores(self, calls: Calls) -> float:
        from f5py.compute.gpu.results._group_order_numba import put_back

        return AT_ONCE.run(put_back, _NO_READS, _NO_READS, np.empty(0, np.float32), calls)

    def begin_sites(
        self, batch: ReadBatch, reads: NDArray[np.bool_], sites: SiteListing, calls: Calls
    ) -> NDArray[np.bool_]:
        from f5py.compute.gpu.results._window_order_numba import (
            GroupsOfPart,
            SiteLimits,
            describe_windows,
            divide_windows,
            empty_order,
            list_places,
            order_windows,
        )

        self._first = sites.first
        groups = GroupsOfPart(_NO_READS, batch.calls.offsets, batch.calls.n, batch.calls.sites, self._listing)
        limits = SiteLimits(self._k, self._is_correlated, 1, 1)
        given_back = np.zeros(len(batch), np.bool_)
        order = empty_order(0, 0)
        AT_ONCE.run(order_windows, _NO_READS, _NO_READS, groups, sites, limits, order, given_back)
        AT_ONCE.run(describe_windows, _NO_READS, groups, sites, order)
        AT_ONCE.run(divide_windows, _NO_READS, limits, order)
        AT_ONCE.run(list_places, _NO_READS, sites, order)
        return given_back

    def fetch_sites(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        from f5py.compute.gpu.results._window_order_numba import SitesOfChunk, put_sites_back

        sites, exponents = np.empty((0, 2)), np.empty(0)
        chunk = SitesOfChunk(_NO_READS, np.empty((0, 7), np.int32), np.empty(0), np.empty(0))
        AT_ONCE.run(put_sites_back, _NO_READS, chunk, self._first, sites, exponents)
        return sites, exponents


def _calls(per_site: bool = False, correlated: bool = False) -> None:
    from f5py.methylation.calls import call_sites_with, call_with
    from f5py.methylation.correlated import terms_of

    motif, model, noise = what_is_called(correlated)
    batch, motifs = no_reads(), (motif.codes(False), motif.codes(True))
    inputs = batch.view, model.levels, motifs, terms_of(noise)
    nobody = np.empty(0, np.bool_)
    if per_site:
        call_sites_with(batch, _Elsewhere(), nobody, model, motifs, (*inputs, -1.0, batch.calls), AT_ONCE)
    else:
        call_with(batch, _Elsewhere(), nobody, model, motifs, inputs, AT_ONCE)


def _anchors() -> None:
    from f5py.compute.gpu.mapping.joins import are_joined_alike, made_joins
    from f5py.mapping._sorting_numba import sort_reads
    from f5py.mapping.chain._joins_numba import PackedJoins
    from f5py.mapping.chain.joins import Joins
    from f5py.mapping.chain.segments import Segments

    batch, _, settings = mapping_without_reads()
    anchors = batch.anchors
    assert anchors is not None
    AT_ONCE.run(sort_reads, _NO_READS, anchors.x, anchors.y, anchors.offsets)
    segments = Segments.of(anchors, settings, AT_ONCE, 0)
    segments.score(_NO_READS)
    packed = np.zeros((1, 2), np.int32)
    segments.pack(_NO_READS, np.zeros(1, np.int64), packed)
    segments.unpack(_NO_READS, np.zeros(1, np.int64), packed)
    are_joined_alike(made_joins(settings, AT_ONCE))
    joins = Joins.of(batch, settings, AT_ONCE)
    places, of_joins = joins.places_of(_NO_READS), PackedJoins(packed, packed, packed)
    joins.pack(_NO_READS, places, of_joins)
    joins.unpack(_NO_READS, places, of_joins)


def _stretches() -> None:
    from f5py.compute.gpu.mapping._rounds_numba import choose_whole, fill_tasks, take_results
    from f5py.compute.gpu.mapping.pair_alignments import aligned_here, made_stretches
    from f5py.mapping.hits.hits import no_alignments
    from f5py.mapping.hits.planned import Stretches

    batch, index, settings = mapping_without_reads()
    batch.chained = no_chained_hits(batch)
    stretches = Stretches.of(batch, index, settings, AT_ONCE)
    stretches.pack(_NO_READS, np.zeros(1, np.int64), np.empty(0, np.uint8))
    nothing = np.empty(0, np.int32)
    choose_whole(stretches.keys, 0, 0, 0, _NO_READS, _NO_READS)
    fill_tasks(stretches.keys, _NO_READS, stretches.read_of, batch.offsets, (1, 0), nothing, _NO_READS)
    take_results(_NO_READS, nothing, nothing, 0, stretches.results)
    aligned_here(made_stretches(AT_ONCE), no_alignments(1), settings)


def _mems() -> None:
    from f5py.mapping.index._seeds_numba import SeedCounts
    from f5py.mapping.mem._mem_anchors_numba import anchors_of_found
    from f5py.mapping.mem.mem_arrays import FoundMems, MemPlaces

    batch, index, settings = mapping_without_reads()
    nothing = np.empty(0, np.int32)
    AT_ONCE.run(
        anchors_of_found, _NO_READS, batch.offsets, 0, MemPlaces(index.offsets, nothing),
        FoundMems(np.empty((0, 4), np.int32), nothing, nothing), settings.integers,
        SeedCounts(_NO_READS, _NO_READS, _NO_READS),
    )  # fmt: skip


_PUT_BACK = "f5py.compute.gpu.results._group_order_numba", "put_back"
_FINISH_SITES = "f5py.methylation._site_list_numba", "finish_sites"

#: See `f5py.runs.compiled.cpu_parts.CPU_PARTS`; those with a name of these stand behind "gpu ".
GPU_PARTS: dict[str, tuple[tuple[str, ...], Callable[[], None]]] = {
    "gpu copies": (("f5py.compute.gpu._packing_numba", "scatter_maps"), _copies),
    "gpu calls": (_PUT_BACK, _calls),
    "gpu site calls": ((*_FINISH_SITES, INDEPENDENT), lambda: _calls(per_site=True)),
    "gpu correlated calls": (_PUT_BACK, lambda: _calls(correlated=True)),
    "gpu correlated site calls": ((*_FINISH_SITES, CORRELATED), lambda: _calls(per_site=True, correlated=True)),
    "gpu chains": (("f5py.mapping.chain._joins_numba", "unpack_joins"), _anchors),
    "gpu stretches": (("f5py.mapping.align._pair_alignment_numba", "align_pair"), _stretches),
    "gpu mem seeds": (("f5py.mapping.mem._mem_anchors_numba", "anchors_of_found"), _mems),
}
