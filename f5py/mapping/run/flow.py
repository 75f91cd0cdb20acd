"""Read, map and write batches of reads at the same time."""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.errors import InputFileError
from f5py.io.arrow.text_input import size_of
from f5py.io.bam.headers import HeaderLines, field_of, header_with_program, parse_header
from f5py.io.files.complete_file import complete_text_output
from f5py.io.files.output import Outputs
from f5py.io.sequences.read_records import BASE_TAGS, header_lines, is_alignment_file, read_batches, tag_numbers
from f5py.mapping.batch import MappingBatch
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.options import MapOptions, parse_read_group
from f5py.mapping.output.records import OWN_TAGS, RecordStyle, paf_lines_of, records_of
from f5py.mapping.run.darwin_mapper import DarwinMapper
from f5py.mapping.run.mapper import Mapper
from f5py.mapping.run.statistics import MapStatistics
from f5py.mapping.sorting.sorted_bam import SortedRecords
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.threads.pipeline import run_pipeline
from f5py.threads.pool import FEW_THREADS, kept_memory, part_of_threads

if TYPE_CHECKING:
    import pysam

#: Batches that are mapped at the same time: by few threads, by more, and with a GPU.
_LANES, _MORE_LANES, _GPU_LANES = 2, 3, 6
#: Names of contigs that SAM allows: section 1.2.1 of its specification.
_CONTIG = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
#: Batches that are read ahead; with a GPU lanes come for the next ones several at a time.
_AHEAD, _GPU_AHEAD = 1, 3


@dataclass
class MapTimes:
    """Wall times of the stages of a run."""

    # wall time of each stage; of stages that several batches are in at the same time the sum over these
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _started: float = field(default_factory=time.perf_counter)
    _current: threading.local = field(default_factory=threading.local)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, stage: str) -> None:
        """Record that a stage begins in this thread and the previous one ends; an empty name for none."""
        now = time.perf_counter()
        before = getattr(self._current, "stage", "")
        if before:
            with self._lock:
                self.seconds[before] += now - self._current.started
        self._current.stage, self._current.started = stage, now

    @property
    def total(self) -> float:
        """Wall time since the run began."""
        return time.perf_counter() - self._started


@dataclass
class MapCounts:
    """Counts of a run: reads, bases, mapped reads and records."""

    # reads, bases, mapped, records: reads and their bases, reads with a place on the reference, and records written
    reads: int = 0
    bases: int = 0
    mapped: int = 0
    records: int = 0

    def add(self, other: MapCounts) -> None:
        """Add other counts."""
        self.reads += other.reads
        self.bases += other.bases
        self.mapped += other.mapped
        self.records += other.records

    def __str__(self) -> str:
        share = self.mapped / max(self.reads, 1)
        return (
            f"{self.reads} reads, {self.bases / 1e6:.1f} Mb; {self.mapped} mapped ({share:.1%}), {self.records} records"
        )


@dataclass
class _Batch:
    """A batch in progress."""

    batch: MappingBatch | None  # None when its lines or records have been made
    made: NDArray[np.uint8]  # these
    counts: MapCounts  # what it adds to those of the run


def map_all(
    options: MapOptions,
    mapper: Mapper | DarwinMapper,
    reference: str | None,
    times: MapTimes,
    statistics: MapStatistics | None = None,
    ending: ExitStack | None = None,
) -> MapCounts:
    """Read, map and write batch by batch, in the order of the reads.

    Parameters
    ----------
    reference : str or None
        The FASTA file, if present.
    times, statistics
        Filled.
    ending : ExitStack, optional
        See `f5py.mapping.sorting.sorted_bam.SortedRecords`.
    """
    counts = MapCounts()
    names = Names.of(mapper.index.names)
    aligned = [path for path in options.reads if is_alignment_file(path)]
    has_base_tags = bool(aligned) and any(_has_base_tags(path, reference) for path in aligned)
    style = RecordStyle(
        md=options.md if options.is_paf else not options.no_md, cs=options.differences, eqx=options.eqx,
        soft_clips=options.soft_clips or has_base_tags, secondary=options.has_secondary, chains=not options.is_darwin,
        unmapped=options.paf_no_hit or not (options.is_paf or options.hits_only),
    )  # fmt: skip
    make = paf_lines_of if options.is_paf else records_of
    lines = HeaderLines()
    group = None if options.read_group is None else parse_read_group(options.read_group)
    if group is not None:
        lines.add([group])
    if not options.is_paf:
        _check_contigs(options.reference, mapper.index.names)
    tag_changes = {} if options.is_paf else {path: lines.add(header_lines(path, reference)) for path in aligned}
    dropped = OWN_TAGS + (("RG",) if group else ()) + (("ts",) if options.is_spliced else ())
    of_statistics = threading.Lock()
    n_bytes, bytes_read = size_of(options.reads), 0
    n_lanes, n_ahead = _LANES if options.threads <= FEW_THREADS else _MORE_LANES, _AHEAD
    if options.gpu_use == "on" and options.threads > FEW_THREADS:
        n_lanes, n_ahead = _GPU_LANES, _GPU_AHEAD

    def compute(item: _Batch) -> None:
        batch, item.batch = item.batch, None
        assert batch is not None
        try:
            if options.no_qualities:
                batch.qualities = np.empty(0, np.uint8)
            if group is not None:
                _add_tag(batch, b"RGZ" + field_of(group, "ID").encode() + b"\0")
            mapper.map(batch)
            mapper.before_stage(output_part(options))
            item.made, n_records = make(batch, mapper.index, names, style, mapper.pool)
            assert batch.hits is not None
            n_mapped = int((np.diff(batch.hits.offsets) > 0).sum())
            if statistics is not None:
                with of_statistics:
                    statistics.add(batch)
            item.counts = MapCounts(len(batch), int(batch.offsets[-1]), n_mapped, n_records)
        finally:
            times.begin("")

    with Outputs() as outputs, kept_memory():
        bar = outputs.enter_context(progress("bytes", n_bytes))

        def advance(size: int) -> None:
            nonlocal bytes_read
            bytes_read += size
            bar.advance(size)

        def load() -> Iterator[_Batch]:
            batches = read_batches(
                options.reads, options.bases_of_batch, dropped, options.comments, reference, advance, tag_changes,
                not options.is_paf,
            )  # fmt: skip
            times.begin("reading")
            with closing(batches):  # type: ignore[type-var]
                for records_read in batches:
                    times.begin("")
                    share = min(bytes_read / n_bytes, 1.0) if n_bytes else None
                    batch = MappingBatch(**vars(records_read), share_of_input=share)
                    item = _Batch(batch, np.empty(0, np.uint8), MapCounts())
                    del records_read, batch  # it may be through while the next one is read
                    yield item
                    del item
                    times.begin("reading")
            times.begin("")

        put: Callable[[Any], object]
        records: SortedRecords | None = None
        if options.is_paf:
            put = outputs.enter_context(complete_text_output(options.output, options.threads)).write
        else:
            header = _header(mapper.index, lines.lines, options.command_line)
            records = outputs.enter_context(
                SortedRecords(options.output, header, options.threads, reference, times.begin, ending, options.kind)
            )
            put = records.write

        def stop() -> None:
            mapper.pool.stop()
            if records is not None:
                records.stop()

        def write(item: _Batch) -> None:
            counts.add(item.counts)
            times.begin("writing")
            put(item.made.data)
            times.begin("")

        run_pipeline(load(), compute, write, stop=stop, n_lanes=n_lanes, n_ahead=n_ahead)
    return counts


def most_per_call(options: MapOptions) -> int:
    """Return the most threads for one stage of a batch: with many threads a part, as several batches run."""
    if options.is_darwin:  # tiles of one batch take seconds
        return options.threads
    return part_of_threads(options.threads, 3 if options.gpu_use == "on" else 2)


def output_part(options: MapOptions) -> str:
    """Return the stage in `f5py.mapping.run.compiled_stages` of the output."""
    return "mapped lines" if options.is_paf else "mapped records"


def _has_base_tags(path: str, reference: str | None) -> bool:
    """Return whether the first records have tags for each base, which hard clips would break."""
    wanted = set(tag_numbers(BASE_TAGS).tolist())
    for batch in read_batches([path], 1, (), False, reference):
        text = batch.tags.tobytes()
        return any(int.from_bytes(text[at : at + 2], "little") in wanted for at in _tag_places(text))
    return False


def _tag_places(text: bytes) -> Iterator[int]:
    """Yield the offsets of the tags of a record."""
    from f5py.io.bam._bam_numba import size_of_value

    data = np.frombuffer(text, np.uint8)
    at = 0
    while at + 3 <= len(data):
        yield at
        at += 3 + int(size_of_value(data, at + 3, data[at + 2], len(data)))


def _add_tag(batch: MappingBatch, tag: bytes) -> None:
    """Append a tag to those of every read."""
    n = len(batch)
    offsets = batch.tag_offsets + len(tag) * np.arange(n + 1)
    tags = np.empty(offsets[-1], np.uint8)
    places = (offsets[1:, None] - len(tag) + np.arange(len(tag))).ravel()
    is_old = np.ones(len(tags), np.bool_)
    is_old[places] = False
    tags[places] = np.tile(np.frombuffer(tag, np.uint8), n)
    tags[is_old] = batch.tags[: batch.tag_offsets[-1]]
    batch.tags, batch.tag_offsets = tags, offsets


def _check_contigs(path: str, contigs: list[str]) -> None:
    """Raise `InputFileError` for contig names that SAM forbids, and warn of others that programs refuse."""
    for name in contigs:
        if name[0] in "*=":
            raise InputFileError(f"{path}: contig {name}: SAM allows no name that begins with {name[0]}; rename it")
    if refused := [name for name in contigs if not _CONTIG.fullmatch(name)]:
        shown = ", ".join(refused[:3]) + (", ..." if len(refused) > 3 else "")
        console.warning(
            "map", f"{path}: names of contigs that SAM does not allow, and Picard, GATK and IGV refuse: {shown}"
        )


def _header(index: ReferenceIndex, lines: list[str], command_line: str) -> pysam.AlignmentHeader:
    """Make the header of the records: contigs, lines of the input, and this program."""
    contigs = [f"@SQ\tSN:{name}\tLN:{length}" for name, length in zip(index.names, np.diff(index.offsets), strict=True)]
    text = "\n".join(["@HD\tVN:1.6\tSO:coordinate", *contigs, *lines]) + "\n"
    return header_with_program(parse_header(text), " ".join(command_line.split()))
