"""Parts of the compiled code of the CPU threads: what compiles each of them without a single read."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Calls, Events, ReadBatch, Rows
from f5py.core.mapping_batch import Anchors, ChainedHits, Hits, MappingBatch
from f5py.core.names import Names
from f5py.mapping.hits.hit_fields import N_FIELDS
from f5py.threads.pool import CallingThread

if TYPE_CHECKING:
    from f5py.core.motifs import Motif
    from f5py.core.noise import Noise
    from f5py.mapping.index.reference_index import ReferenceIndex
    from f5py.mapping.settings import Parameters
    from f5py.pore_model.model import PoreModel

#: Bytes of a record in a BAM file that has no more than its name's end.
_SIZE_OF_RECORD = 37


#: All is compiled by calls without a read.
AT_ONCE: Any = CallingThread()


def _model(name: str = "r9.4_450bps.nucleotide.6mer") -> PoreModel:
    """Take a pore model; all have the same types."""
    from f5py.pore_model import builtin

    return builtin(name)


def no_reads() -> ReadBatch:
    """Make a batch without reads whose arrays have the types that all batches have."""

    def nothing(kind: type) -> NDArray:
        return np.empty(0, kind)

    offsets = np.zeros(1, np.int64)
    return ReadBatch(
        number=0,
        names=Names.of([]),
        read_index=nothing(np.int64),
        status=nothing(np.uint8),
        contig=nothing(np.int32),
        reference_start=nothing(np.int64),
        reference_end=nothing(np.int64),
        reverse=nothing(np.bool_),
        cigar=nothing(np.uint32),
        cigar_offsets=offsets,
        reference=nothing(np.uint8),
        reference_offsets=offsets,
        bases=nothing(np.uint8),
        base_offsets=offsets,
        samples=nothing(np.int16),
        sample_offsets=offsets,
        offset=nothing(np.float32),
        unit=nothing(np.float32),
        sampling_rate=nothing(np.float32),
        events=Events.none()._replace(offsets=offsets),
        rows=Rows.none()._replace(offsets=offsets, n=nothing(np.int64)),
        shift=nothing(np.float32),
        scale=nothing(np.float32),
        var=nothing(np.float32),
        calls=Calls.none()._replace(offsets=offsets, n=nothing(np.int64)),
    )


def _records() -> None:
    from f5py.core.offsets import offsets_of
    from f5py.io.bam._bam_numba import Filter, classify
    from f5py.io.bam.bam_records import RecordColumns, record_chunks
    from f5py.io.bam.record_reads import copied_sequences, differ_from_records, whole_lengths_of
    from f5py.io.bytes.bgzf import inflate_places
    from f5py.io.bytes.bgzf_blocks import END_BLOCK, bgzf_blocks
    from f5py.io.reads.memory_reads import reads_in_memory
    from f5py.pipeline._batch_limits_numba import Limits, cut
    from f5py.pipeline.batch_records import columns_of, prepare_cigars

    none, names = np.empty(0, np.int64), Names.of([])
    reads = reads_in_memory(names, np.empty(0, np.uint8), offsets_of(none), "")
    record = np.array([_SIZE_OF_RECORD - 4, -1, -1, 1, 4 << 16, 0, -1, -1, 0, 0], "<i4")  # unmapped, without a name
    text = b"BAM\1" + bytes(8) + record.tobytes()[:_SIZE_OF_RECORD]
    stream = io.BytesIO(b"".join([*bgzf_blocks(text, len(text)), END_BLOCK]))
    for data, starts, n in record_chunks(stream, 0):
        kinds, rows = np.empty(n, np.uint8), np.empty(n, np.int64)
        classify(data, starts, n, Filter(0, True, True), reads.index.name_table, kinds, rows)
        cut(kinds, rows, 0, n, Limits(1, 1, -1, False), np.zeros(4, np.int64))
        columns = RecordColumns.of(data, starts, none)
        prepare_cigars(names, columns, True, True)
        columns_of(no_reads())
        whole_lengths_of(data, starts, none)
        differ_from_records(data, starts, none, *copied_sequences(data, starts, none, none))
        inflate_places(-1, np.empty((0, 2), np.int64), starts, data, np.empty(0, np.bool_), CallingThread())


def _pod5_signals() -> None:
    from f5py.io.signals.pod5._vbz_numba import Pieces, read_pieces
    from f5py.io.signals.slow5._slow5_functions import NO_PRESS, functions

    none = np.empty(0, np.int64)
    got = Pieces(np.zeros(1, np.int64), np.empty(0, np.int16), none, np.empty(0, np.bool_), np.empty(0, np.int32))
    AT_ONCE.run(read_pieces, none, np.empty((0, 3), np.int64), none, functions("", NO_PRESS), got)


def what_is_called(correlated: bool) -> tuple[Motif, PoreModel, Noise | None]:
    """Take a motif, its model and a noise; all others of a kind have the same types."""
    from f5py.core.motifs import motif_named
    from f5py.core.noise import OF_PORES

    motif = motif_named("cpg")
    assert motif.model is not None
    return motif, _model(motif.model), OF_PORES["r9"] if correlated else None


def _calls(per_site: bool = False, correlated: bool = False) -> None:
    from f5py.methylation.calls import call_methylation

    motif, model, noise = what_is_called(correlated)
    call_methylation(no_reads(), motif, model, AT_ONCE, per_site, noise=noise)


def _calls_table() -> None:
    from f5py.outputs.calls.calls_writer import CallsWriter

    CallsWriter(io.BytesIO(), 2, [], 6).format(no_reads())


def _events() -> None:
    from f5py.compute.chemistry import R9_DNA
    from f5py.signal.events import detect_events

    detect_events(no_reads(), R9_DNA.event_parameters, AT_ONCE, means_only=True)


def _alignment() -> None:
    from f5py.compute.aligned_reads import align_reads

    align_reads(no_reads(), _model(), AT_ONCE)


def _event_rows() -> None:
    from f5py.event_alignment.align import align_events

    align_events(no_reads(), _model(), AT_ONCE, None)


def _event_table() -> None:
    from f5py.outputs.events.eventalign_table import EventalignTable

    EventalignTable([], _model()).compile(no_reads())


def mapping_without_reads() -> tuple[MappingBatch, ReferenceIndex, Parameters]:
    """Make a batch without reads, with the arrays that the stages of the mapper fill; an index; and the settings."""
    from f5py.mapping.index.reference_index import ReferenceIndex
    from f5py.mapping.settings import PRESETS, parameters

    def nothing(kind: type) -> NDArray:
        return np.empty(0, kind)

    offsets = np.zeros(1, np.int64)
    batch = MappingBatch(
        Names.of([]), nothing(np.uint8), offsets, nothing(np.uint8), nothing(np.uint8), offsets,
    )  # fmt: skip
    batch.anchors = Anchors(
        nothing(np.uint64), nothing(np.int64), offsets, nothing(np.int64), offsets, nothing(np.int64),
        nothing(np.int32), nothing(np.int32),
    )  # fmt: skip
    batch.hits = Hits(np.empty((0, N_FIELDS), np.int64), offsets, nothing(np.int64))
    settings = PRESETS["map-ont"]
    index = ReferenceIndex(
        [], nothing(np.uint8), offsets, nothing(np.uint64), nothing(np.int64), nothing(np.int32), settings.k,
        settings.w, settings.hpc,
    )  # fmt: skip
    return batch, index, parameters(settings, 10)


def _seeds() -> None:
    from f5py.mapping.chain.chaining import score_chains
    from f5py.mapping.index.seeds import find_anchors

    batch, index, settings = mapping_without_reads()
    find_anchors(batch, index, settings, AT_ONCE)
    score_chains(batch, settings, AT_ONCE)


def _mem_seeds() -> None:
    from f5py.mapping.chain.chaining import score_chains
    from f5py.mapping.mem.fm_index import FmIndex
    from f5py.mapping.mem.mem_seeds import MemSearch, find_mem_anchors

    batch, index, settings = mapping_without_reads()
    nothing = FmIndex(
        np.empty((0, 4), np.uint64), np.empty(0, np.int64), np.empty(4, np.int64), np.empty(0, np.int32),
        np.empty((0, 2), np.uint32), 1,
    )  # fmt: skip
    find_mem_anchors(batch, MemSearch(nothing, index.offsets, 17, settings), AT_ONCE)
    score_chains(batch, settings, AT_ONCE)


def _chained_hits() -> None:
    from f5py.mapping.hits.hits import chain_hits

    chain_hits(*mapping_without_reads(), AT_ONCE)


def no_chained_hits(batch: MappingBatch) -> ChainedHits:
    """Make the chained hits of a batch without reads."""
    return ChainedHits(
        np.empty((0, N_FIELDS), np.int64), batch.offsets, np.empty(0, np.uint64), np.empty(0, np.int64), batch.offsets
    )


def _hits() -> None:
    from f5py.mapping.hits.hits import align_hits

    batch, index, settings = mapping_without_reads()
    batch.chained = no_chained_hits(batch)
    align_hits(batch, index, settings, AT_ONCE)


def _ranks() -> None:
    from f5py.mapping.hits.hits import rank_hits

    batch, _, settings = mapping_without_reads()
    rank_hits(batch, settings, AT_ONCE)


def _mapped_records() -> None:
    from f5py.outputs.mapped_records import RecordStyle, records_of

    batch, index, _ = mapping_without_reads()
    records_of(batch, index, Names.of([]), RecordStyle(md=True), AT_ONCE)


def _mapped_lines() -> None:
    from f5py.outputs.mapped_records import RecordStyle, paf_lines_of

    batch, index, _ = mapping_without_reads()
    paf_lines_of(batch, index, Names.of([]), RecordStyle(), AT_ONCE)


def _sorted_records() -> None:
    from f5py.io.bam.sorting.record_index import Placed, index_of
    from f5py.io.bam.sorting.record_runs import RecordRuns, copied
    from f5py.io.bam.sorting.sorted_bam import block_offsets

    none = np.empty(0, np.int64)
    with RecordRuns(1, io.BytesIO, 1) as runs:
        runs.add(np.empty(0, np.uint8))
        runs.sort()
        block_offsets(runs.offsets)
        copied(runs.load(0, 0), runs.offsets, 0, 0)
    index_of(Placed(none, none, none, np.empty(0, np.bool_)), 0, np.zeros(1, np.uint64), none, False)


def _darwin_integers() -> NDArray[np.int64]:
    from f5py.mapping.darwin.darwin_settings import DarwinSettings, darwin_integers

    return darwin_integers(DarwinSettings(), 14, (1, -1, -1, -1), 0)


def _candidates() -> None:
    from f5py.mapping.darwin.dsoft import ReadStrands, find_candidates_of

    batch, index, _ = mapping_without_reads()
    strands = ReadStrands.of(batch.letters, batch.offsets, AT_ONCE, 0)
    find_candidates_of(strands, np.empty(0, np.int64), index, _darwin_integers(), AT_ONCE, 0)


def _tiles() -> None:
    from f5py.mapping.darwin.extensions import N_CANDIDATE, Extensions
    from f5py.mapping.darwin.gact import extend_all

    batch, index, _ = mapping_without_reads()
    nothing = Extensions.of(np.empty((2, 0), np.uint8), batch.offsets, np.empty((0, N_CANDIDATE), np.int64))
    extend_all(nothing, index, _darwin_integers(), AT_ONCE)


#: Of kernels that are compiled for independent and for correlated noise.
INDEPENDENT, CORRELATED = "none", "Terms("
#: Each part's kernel by module, name and, where it is compiled more than once, an argument's type; and what compiles
#: it, or loads it if it is kept. In the order in which runs come to them.
CPU_PARTS: dict[str, tuple[tuple[str, ...], Callable[[], None]]] = {
    "records": (("f5py.io.bam._bam_sequence_numba", "copy_sequences"), _records),
    "pod5 signals": (("f5py.io.signals.pod5._vbz_numba", "read_pieces"), _pod5_signals),
    "events": (("f5py.signal._events_numba", "find_all_events"), _events),
    "alignment": (("f5py.compute._aligned_reads_numba", "align_all"), _alignment),
    "calls": (("f5py.methylation._calls_numba", "call_all", INDEPENDENT), _calls),
    "site calls": (("f5py.methylation._site_list_numba", "score_sites", INDEPENDENT), lambda: _calls(per_site=True)),
    "correlated calls": (("f5py.methylation._calls_numba", "call_all", CORRELATED), lambda: _calls(correlated=True)),
    "correlated site calls": (
        ("f5py.methylation._site_list_numba", "score_sites", CORRELATED),
        lambda: _calls(per_site=True, correlated=True),
    ),
    "event rows": (("f5py.event_alignment._align_numba", "align_all"), _event_rows),
    "calls table": (("f5py.outputs.calls._calls_writer_numba", "format_calls"), _calls_table),
    "event table": (("f5py.outputs.events._eventalign_table_numba", "format_table"), _event_table),
    "seeds": (("f5py.mapping.index._seeds_numba", "seed_reads"), _seeds),
    "mem seeds": (("f5py.mapping.mem._mem_anchors_numba", "seed_reads_by_mems"), _mem_seeds),
    "candidates": (("f5py.mapping.darwin._dsoft_numba", "find_candidates"), _candidates),
    "tiles": (("f5py.mapping.darwin._gact_numba", "extend_candidates"), _tiles),
    "chained hits": (("f5py.mapping.hits._chained_hits_numba", "chain_reads"), _chained_hits),
    "hits": (("f5py.mapping.hits._hit_reads_numba", "align_reads"), _hits),
    "ranks": (("f5py.mapping.hits._mapping_quality_numba", "rank_reads"), _ranks),
    "mapped records": (("f5py.outputs._mapped_records_numba", "records_of_reads"), _mapped_records),
    "sorted records": (("f5py.io.bam.sorting._sorting_numba", "gather"), _sorted_records),
    "mapped lines": (("f5py.outputs._mapped_paf_numba", "lines_of_reads"), _mapped_lines),
}
