"""Map reads to a reference, from checked options to files."""

import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

from f5py.errors import F5pyError, InputFileError, UsageError
from f5py.io.reads.reference_errors import check_blocks
from f5py.io.sequences.read_records import check_read_files
from f5py.jit.warm_up import warm_up
from f5py.mapping.align.junctions import read_junctions
from f5py.mapping.index.contigs import read_contigs
from f5py.mapping.index.mmi_file import read_mmi
from f5py.mapping.index.reference_index import ReferenceIndex, build_index, index_kmers
from f5py.mapping.index_file import index_writer, read_index, write_index
from f5py.mapping.mem.fm_index import FmIndex, build_fm_index, with_table
from f5py.mapping.options import MapOptions, check_scores
from f5py.mapping.run.compiled_stages import STAGES
from f5py.mapping.run.darwin_mapper import DarwinMapper
from f5py.mapping.run.flow import MapCounts, MapTimes, map_all, most_per_call
from f5py.mapping.run.mapper import Mapper, begin_gpu
from f5py.mapping.run.overlaps import find_overlaps, is_overlaps
from f5py.mapping.run.report import write_map_reports
from f5py.mapping.run.statistics import MapStatistics
from f5py.mapping.settings import PRESETS, MapSettings
from f5py.messages import console
from f5py.threads.interrupts import call_in_thread
from f5py.threads.pipeline import THREAD_PREFIX
from f5py.threads.pool import WorkerPool, share_heap

_WHO = "map"


@dataclass(frozen=True)
class MappingReference:
    """A reference that reads can be mapped to, and the settings."""

    settings: MapSettings
    index: ReferenceIndex
    reference: str | None  # the FASTA file, if it is there
    fm_index: FmIndex | None = None  # of the same reference, if seeds are exact matches


def load_reference(options: MapOptions) -> MappingReference:
    """Read or build the index of the reference; write it with ``-d``.

    Raises
    ------
    F5pyError
        For anything wrong with the options or the reference.
    """
    return call_in_thread(lambda: _load_reference(options), f"{THREAD_PREFIX}index")


def _load_reference(options: MapOptions) -> MappingReference:
    settings = settings_of(options)
    with closing(WorkerPool(options.threads)) as pool:
        try:
            index, reference, fm_index = index_of(options, settings, pool)
        except MemoryError:
            raise F5pyError(
                f"{options.reference}: not enough memory for the index of the reference; leave more to this program, "
                "or map to a part of the reference"
            ) from None
    return MappingReference(_with_scheme_of(index, settings, options), index, reference, fm_index)


def _with_scheme_of(index: ReferenceIndex, settings: MapSettings, options: MapOptions) -> MapSettings:
    """Take the minimizers of the index, and warn if the options wanted others."""
    there = settings._replace(k=index.k, w=index.w, hpc=index.hpc)
    if settings.darwin is None and there != settings:
        wanted = f"-x {options.preset}" + "".join(
            f" {spelling}{'' if value is True else f' {value}'}"
            for spelling, value in (("-k", options.k), ("-w", options.w), ("-H", options.hpc))
            if value
        )
        console.warning(
            _WHO,
            f"{options.reference}: has minimizers of {_scheme(there)}, which are used; {wanted} stands for "
            f"{_scheme(settings)}: for these, write the index again with -d and these options",
        )
    return there


def _scheme(settings: MapSettings) -> str:
    """Describe minimizers as options do."""
    return f"-k {settings.k} -w {settings.w}{' -H' * settings.hpc}"


def map_reads(options: MapOptions, ready: MappingReference | None = None) -> MapCounts:
    """Map the reads and write them, and the report; return how many there were.

    Parameters
    ----------
    ready : MappingReference, optional
        Of an earlier run with the same reference and settings.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    check_read_files(options.reads)
    if options.without_effect:
        console.note(
            _WHO,
            f"{', '.join(options.without_effect)}: without effect; to align over introns, give -x splice or --splice",
        )
    if not options.reads:
        load_reference(options)
        return MapCounts()
    share_heap()
    if not options.is_spliced:
        begin_gpu(options)
    times = MapTimes()
    with console.recorded_warnings() as warnings:
        times.begin("index")
        with warm_up(_stages_of(options)):
            ready = load_reference(options) if ready is None else ready
        times.begin("")
        statistics = MapStatistics(len(ready.index.names)) if options.report else None
        counts = _map(options, ready, times, statistics)
        if counts.reads and not counts.mapped:
            console.warning(
                _WHO,
                f"none of {counts.reads} reads has a place on {options.reference}; is it the right reference, and "
                f"-x {options.preset} the right preset?",
            )
        if statistics is not None:
            seconds = {**times.seconds, "total": times.total}
            of_run = ready.settings, ready.index
            write_map_reports(options, of_run, counts, statistics, seconds, warnings)
    return counts


def _map(options: MapOptions, ready: MappingReference, times: MapTimes, statistics: MapStatistics | None) -> MapCounts:
    """Map the reads of a run to a reference that is ready."""
    if options.kind == "cram":
        if ready.reference is None:
            raise UsageError(f"-o {options.output}: CRAM needs the FASTA file; give that as REF")
        check_blocks(ready.reference)

    with ExitStack() as ending, closing(WorkerPool(options.threads, most_per_call(options))) as pool:
        mapper: Mapper | DarwinMapper
        if ready.settings.darwin is None:
            junctions = None
            if options.junctions is not None:
                annotated = read_junctions(options.junctions, ready.index)
                junctions = annotated if options.is_spliced else None
            mapper = Mapper.of(ready.index, ready.settings, pool, ready.fm_index, junctions, times.begin)
        else:
            mapper = DarwinMapper.of(ready.index, ready.settings, pool, times.begin)
        mapper.use_gpu(options, options.bases_of_batch)
        with closing(mapper):
            if isinstance(mapper, DarwinMapper) and is_overlaps(options):
                if options.report:
                    raise UsageError("--report: there is none of overlaps of reads among themselves; leave it out")
                return MapCounts(*find_overlaps(options, mapper))
            return map_all(options, mapper, ready.reference, times, statistics, ending)


def _stages_of(options: MapOptions) -> dict[str, Callable[[], object]]:
    """Return the stages that a first run compiles ahead."""
    if options.is_darwin:
        return {}
    others = "mapped records" if options.is_paf else "mapped lines", "hits" if options.is_spliced else "spliced hits"
    return {name: stage for name, stage in STAGES.items() if name not in others}


def settings_of(options: MapOptions) -> MapSettings:
    """Apply the options to the preset."""
    settings = PRESETS[options.preset]._replace(**options.changes(), eqx=options.eqx)
    of_site = settings.non_canonical + (settings.junction_bonus if options.junctions else 0)
    check_scores(
        settings.match, settings.mismatch, (settings.q, settings.q2), (settings.e, settings.e2),
        of_site if settings.spliced else None,
    )  # fmt: skip
    if settings.bw > settings.bw_long:
        settings = settings._replace(bw_long=settings.bw)
    return settings


def index_of(
    options: MapOptions, settings: MapSettings, pool: WorkerPool
) -> tuple[ReferenceIndex, str | None, FmIndex | None]:
    """Load index, FASTA file if present, and the FM-index if seeds are exact matches.

    Writes both with -d.
    """
    path = options.reference
    if not os.path.exists(path):
        raise InputFileError(f"{path}: no such file; give the reference as FASTA")
    if writer := index_writer(path):
        is_mmi = writer == "minimap2"
        if settings.darwin is not None:
            raise UsageError(f"-x {options.preset}: {path} is an index of minimizers; give the FASTA file as REF")
        if options.write_index is not None and not is_mmi:
            raise UsageError(f"-d {options.write_index}: {path} is an index already; give the FASTA file as REF")
        index, reference, fm_index = (read_mmi(path, pool), None, None) if is_mmi else read_index(path, pool)
        if settings.min_mem == 0:
            fm_index = None
        elif fm_index is None:
            console.note(_WHO, f"{path}: has no FM-index; write it with -d and --seeds mem, or each run builds it")
            fm_index = build_fm_index(index.bases.codes(0, index.n_bases), index.offsets, pool, settings.min_mem)
        else:
            fm_index = with_table(fm_index, pool, settings.min_mem)
        if options.write_index is not None:
            _write(options.write_index, index, reference, fm_index)
        return index, reference, fm_index
    contigs = read_contigs(path, settings.k, pool, options.indexes_reference)
    names = contigs.names
    if settings.darwin is not None:
        index = index_kmers(contigs, settings.k, pool)
        console.note(_WHO, f"{path}: {len(names)} sequences, {index.n_bases / 1e6:.1f} Mb, {index.n_keys} k-mers")
        return index, path, None
    index = build_index(contigs, settings, pool)
    console.note(_WHO, f"{path}: {len(names)} contigs, {index.n_bases / 1e6:.1f} Mb, {index.n_keys} minimizers")
    fm_index = None
    if settings.min_mem:
        fm_index = build_fm_index(index.bases.codes(0, index.n_bases), index.offsets, pool, settings.min_mem)
    if options.write_index is not None:
        _write(options.write_index, index, path, fm_index)
    return index, path, fm_index


def _write(path: str, index: ReferenceIndex, reference: str | None, fm_index: FmIndex | None) -> None:
    """Write an index."""
    write_index(index, reference, path, fm_index)
    console.note(_WHO, f"index written: {path}")
