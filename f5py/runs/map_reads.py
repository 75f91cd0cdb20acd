"""Reads are mapped to a reference: all that ``f5py map`` does but to check its options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.darwin import DarwinMapper
from f5py.compute.mapping import Mapper
from f5py.core.mapping_batch import MappingBatch
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError, UsageError
from f5py.io.bam.headers import header_of_text
from f5py.io.bam.sorted_bam import SortedRecords
from f5py.io.bytes.byte_input import size_of
from f5py.io.files.complete_file import complete_output
from f5py.io.reads.read_records import (
    BASE_TAGS,
    check_read_files,
    header_lines,
    is_alignment_file,
    read_batches,
    tag_numbers,
)
from f5py.io.reads.sequence_files import sequence_records
from f5py.mapping.darwin.dsoft import build_kmer_table
from f5py.mapping.index.index_file import is_index_file, read_index, write_index
from f5py.mapping.index.reference_index import ReferenceIndex, build_index, codes_of
from f5py.mapping.mem.fm_index import FmIndex, build_fm_index, with_table
from f5py.mapping.settings import PRESETS, MapSettings
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.options.map_commands import MapOptions, check_scores
from f5py.outputs.mapped_records import OWN_TAGS, RecordStyle, paf_lines_of, records_of
from f5py.runs.compile_ahead import CompileAhead
from f5py.runs.overlaps import find_overlaps, is_overlaps
from f5py.threads.ordered import OrderedWork
from f5py.threads.pool import WorkerPool

_WHO = "map"
#: Batches that are mapped at the same time.
_N_IN_FLIGHT = 2


@dataclass
class MapCounts:
    """Numbers of what a run has mapped.

    Attributes
    ----------
    reads, bases, mapped, records : int
        Reads and their bases, reads with a place on the reference, and records written.
    """

    reads: int = 0
    bases: int = 0
    mapped: int = 0
    records: int = 0

    def __str__(self) -> str:
        share = self.mapped / max(self.reads, 1)
        return (
            f"{self.reads} reads, {self.bases / 1e6:.1f} Mb; {self.mapped} mapped ({share:.1%}), {self.records} records"
        )


@dataclass(frozen=True)
class Prepared:
    """A reference that reads can be mapped to, and with what.

    Attributes
    ----------
    settings : MapSettings
    index : ReferenceIndex
    reference : str or None
        The FASTA file, if it is there.
    fm_index : FmIndex or None
        Of the same reference, if seeds are exact matches.
    """

    settings: MapSettings
    index: ReferenceIndex
    reference: str | None
    fm_index: FmIndex | None = None


def prepared(options: MapOptions) -> Prepared:
    """Read or build the index of the reference; write it with ``-d``.

    Raises
    ------
    F5pyError
        For anything wrong with the options or the reference.
    """
    settings = settings_of(options)
    with closing(WorkerPool(options.threads)) as pool:
        index, reference, fm_index = index_of(options, settings, pool)
        return Prepared(settings, index, reference, fm_index)


def map_reads(options: MapOptions, ready: Prepared | None = None) -> MapCounts:
    """Map the reads and write them; return how many there were.

    Parameters
    ----------
    options : MapOptions
    ready : Prepared, optional
        Of an earlier run with the same reference and settings.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    check_read_files(options.reads)
    with closing(CompileAhead(_parts_of(options) if options.reads else [])) as ahead:
        ready = prepared(options) if ready is None else ready
        if not options.reads:
            return MapCounts()
        if os.path.splitext(options.output)[1].lower() == ".cram" and ready.reference is None:
            raise UsageError(f"-o {options.output}: CRAM needs the FASTA file; give that as REF")
        with closing(WorkerPool(options.threads)) as pool:
            mapper: Mapper | DarwinMapper
            if ready.settings.darwin is None:
                mapper = Mapper.of(ready.index, ready.settings, pool, ready.fm_index)
            else:
                mapper = DarwinMapper.of(ready.index, ready.settings, pool)
            mapper.before_stage = ahead.wait
            mapper.use_gpu(options, options.batch_bases)
            with closing(mapper):
                if isinstance(mapper, DarwinMapper) and is_overlaps(options):
                    return MapCounts(*find_overlaps(options, mapper))
                return _map(options, mapper, ready.reference)


def _parts_of(options: MapOptions) -> list[str]:
    """List what is compiled ahead, the longest first."""
    if options.is_darwin:
        return ["tiles", _output_part(options), "candidates"]
    return ["hits", _output_part(options), "chained hits", "mem seeds" if options.seeds == "mem" else "seeds"]


def _output_part(options: MapOptions) -> str:
    return "mapped lines" if options.is_paf else "mapped records"


def settings_of(options: MapOptions) -> MapSettings:
    """Apply what the options change to the preset."""
    settings = PRESETS[options.preset]._replace(**options.changes(), eqx=options.eqx)
    check_scores(settings.match, settings.mismatch, (settings.q, settings.q2), (settings.e, settings.e2))
    if settings.bw > settings.bw_long:
        settings = settings._replace(bw_long=settings.bw)
    return settings


def index_of(
    options: MapOptions, settings: MapSettings, pool: WorkerPool
) -> tuple[ReferenceIndex, str | None, FmIndex | None]:
    """Load the reference's index, its FASTA file if that is there, and the FM-index if seeds are exact matches.

    Writes both with -d.
    """
    path = options.reference
    if not os.path.exists(path):
        raise InputFileError(f"{path}: no such file; give the reference as FASTA")
    if is_index_file(path):
        if settings.darwin is not None:
            raise UsageError(f"-x {options.preset}: {path} is an index of minimizers; give the FASTA file as REF")
        if options.write_index is not None:
            raise UsageError(f"-d {options.write_index}: {path} is an index already; give the FASTA file as REF")
        index, reference, fm_index = read_index(path)
        for spelling, given, there in (("-k", options.k, index.k), ("-w", options.w, index.w)):
            if given not in (None, there):
                raise UsageError(f"{spelling} {given}: the index {path} was written with {there}; leave it out")
        if options.hpc and not index.hpc:
            raise UsageError(f"-H: the index {path} was written without; leave it out, or write it again")
        if settings.min_mem == 0:
            fm_index = None
        elif fm_index is None:
            console.note(_WHO, f"{path}: has no FM-index; write it with -d and --seeds mem, or each run builds it")
            fm_index = build_fm_index(index.bases, index.offsets, pool, settings.min_mem)
        else:
            fm_index = with_table(fm_index, pool, settings.min_mem)
        return index, reference, fm_index
    names, bases, offsets = _contigs(path, settings.k)
    if settings.darwin is not None:
        index = build_kmer_table(names, bases, offsets, settings.k)
        console.note(_WHO, f"{path}: {len(names)} sequences, {len(bases) / 1e6:.1f} Mb, {len(index.counts)} k-mers")
        return index, path, None
    index = build_index(names, bases, offsets, settings, pool)
    console.note(_WHO, f"{path}: {len(names)} contigs, {len(bases) / 1e6:.1f} Mb, {len(index.counts)} minimizers")
    fm_index = build_fm_index(bases, offsets, pool, settings.min_mem) if settings.min_mem else None
    if options.write_index is not None:
        write_index(index, path, options.write_index, fm_index)
        console.note(_WHO, f"index written: {options.write_index}")
    return index, path, fm_index


def _contigs(path: str, k: int) -> tuple[list[str], NDArray[np.uint8], NDArray[np.int64]]:
    """Names, codes and offsets of the contigs of a FASTA file."""
    names: list[str] = []
    pieces: list[NDArray[np.uint8]] = []
    for name, _, bases in sequence_records(path):
        names.append(name)
        pieces.append(codes_of(np.frombuffer(bases, np.uint8)))
    if not names:
        raise InputFileError(f"{path}: holds no sequences; give the reference as FASTA")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputFileError(f"{path}: has contig {twice} twice; give each contig its own name")
    offsets = offsets_of([len(piece) for piece in pieces])
    if not any(len(piece) >= k for piece in pieces):
        raise InputFileError(f"{path}: no contig has {k} bases or more, the length of a minimizer; give a smaller -k")
    return names, np.concatenate(pieces), offsets


def _map(options: MapOptions, mapper: Mapper | DarwinMapper, reference: str | None) -> MapCounts:
    """Read, map and write batch by batch, in the order of the reads."""
    counts = MapCounts()
    names = Names.of(mapper.index.names)
    aligned = [path for path in options.reads if is_alignment_file(path)]
    has_base_tags = bool(aligned) and any(_has_base_tags(path, reference) for path in aligned)
    style = RecordStyle(
        md=options.md if options.is_paf else not options.no_md, cs=options.cs, eqx=options.eqx,
        soft_clips=options.soft_clips or has_base_tags, secondary=options.secondary, chains=not options.is_darwin,
    )  # fmt: skip
    make = paf_lines_of if options.is_paf else records_of
    group = _read_group(options.read_group)
    dropped = OWN_TAGS + (("RG",) if group else ())

    def mapped(batch: MappingBatch) -> tuple[MappingBatch, NDArray[np.uint8], int]:
        if group:
            _add_tag(batch, b"RGZ" + group.encode() + b"\0")
        mapper.map(batch)
        mapper.before_stage(_output_part(options))
        made, n_records = make(batch, mapper.index, names, style, mapper.pool)
        return batch, made, n_records

    with ExitStack() as outputs:
        n_bytes, bytes_read = size_of(options.reads), 0
        bar = outputs.enter_context(progress("bytes", n_bytes))

        def advance(size: int) -> None:
            nonlocal bytes_read
            bytes_read += size
            bar.advance(size)

        write: Callable[[Any], object]
        if options.is_paf:
            write = outputs.enter_context(complete_output(options.output)).write
        else:
            header = _header(mapper.index, aligned, reference, options)
            write = outputs.enter_context(SortedRecords(options.output, header, options.threads, reference)).write

        def take(result: tuple[MappingBatch, NDArray[np.uint8], int]) -> None:
            batch, made, n_records = result
            assert batch.hits is not None
            counts.reads += len(batch)
            counts.bases += int(batch.offsets[-1])
            counts.mapped += int((np.diff(batch.hits.offsets) > 0).sum())
            counts.records += n_records
            write(made.data)

        work = OrderedWork(_N_IN_FLIGHT, mapped, take, "f5py-map", _N_IN_FLIGHT)
        batches: Iterator[MappingBatch] = read_batches(
            options.reads, options.batch_bases, dropped, options.comments, reference, advance
        )
        with closing(work), closing(batches):  # type: ignore[type-var]
            for batch in batches:
                batch.share_of_input = min(bytes_read / n_bytes, 1.0) if n_bytes else None
                work.add(batch)
            work.finish()
    return counts


def _has_base_tags(path: str, reference: str | None) -> bool:
    """Return whether the first records have tags of their bases, which hard clips would break."""
    wanted = set(tag_numbers(BASE_TAGS).tolist())
    for batch in read_batches([path], 1, (), False, reference):
        text = batch.tags.tobytes()
        return any(int.from_bytes(text[at : at + 2], "little") in wanted for at in _tag_places(text))
    return False


def _tag_places(text: bytes) -> Iterator[int]:
    """Find where the tags of a record begin."""
    from f5py.io.bam._bam_numba import size_of_value

    data = np.frombuffer(text, np.uint8)
    at = 0
    while at + 3 <= len(data):
        yield at
        at += 3 + int(size_of_value(data, at + 3, data[at + 2], len(data)))


def _read_group(line: str | None) -> str:
    """Extract the ID of a read group's line."""
    if line is None:
        return ""
    fields = line.replace("\\t", "\t").split("\t")
    return next(field[3:] for field in fields if field.startswith("ID:"))


def _add_tag(batch: MappingBatch, tag: bytes) -> None:
    """Add a tag to those of every read."""
    n = len(batch)
    offsets = batch.tag_offsets + len(tag) * np.arange(n + 1)
    tags = np.empty(offsets[-1], np.uint8)
    places = (offsets[1:, None] - len(tag) + np.arange(len(tag))).ravel()
    is_old = np.ones(len(tags), np.bool_)
    is_old[places] = False
    tags[places] = np.tile(np.frombuffer(tag, np.uint8), n)
    tags[is_old] = batch.tags[: batch.tag_offsets[-1]]
    batch.tags, batch.tag_offsets = tags, offsets


def _header(index: ReferenceIndex, aligned: list[str], reference: str | None, options: MapOptions) -> Any:
    """Header of the records: contigs, read groups and programs of the input, and this program."""
    lines = ["@HD\tVN:1.6\tSO:coordinate"]
    lines += [f"@SQ\tSN:{name}\tLN:{length}" for name, length in zip(index.names, np.diff(index.offsets), strict=True)]
    if options.read_group is not None:
        lines.append(options.read_group.replace("\\t", "\t"))
    taken: list[str] = []
    for path in aligned:
        for line in header_lines(path, reference):
            if line not in lines:
                lines.append(line)
                if line.startswith("@PG"):
                    taken += [field[3:] for field in line.split("\t") if field.startswith("ID:")]
    name = next(name for i in range(len(taken) + 1) if (name := f"f5py.{i}" if i else "f5py") not in taken)
    before = f"\tPP:{taken[-1]}" if taken else ""
    from f5py import __version__

    command = " ".join(options.command_line.split())
    lines.append(f"@PG\tID:{name}\tPN:f5py{before}\tVN:{__version__}\tCL:{command}")
    return header_of_text("\n".join(lines) + "\n")
