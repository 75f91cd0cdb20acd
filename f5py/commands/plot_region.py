"""Figure of a locus from alignments with modification tags: ``f5py plot-region``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from f5py.compute.diagnosis import mismatch
from f5py.compute.events_on_reference import EventalignStage
from f5py.core.batch import ReadStatus
from f5py.core.windows import one_region
from f5py.errors import F5pyError, FailedRunError, UsageError
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import overlaps
from f5py.io.bam.modifications.modification_calls import read_name
from f5py.io.files.complete_file import complete_output
from f5py.io.output_checks import check_outputs
from f5py.io.reads.read_list import ReadList
from f5py.messages import console
from f5py.options.plot_commands import PlotRegionOptions
from f5py.options.shared import SIGNALS
from f5py.options.signal_commands import EventalignOptions
from f5py.pipeline.inputs import open_inputs
from f5py.plotting.data import PlotData, ReadSource, reference_data
from f5py.plotting.genes import read_genes
from f5py.plotting.pages import write_pileup_page, write_region_page
from f5py.plotting.picture import Picture, format_of, require_matplotlib
from f5py.plotting.pileup import Pileup, strand_pileup
from f5py.plotting.pileup_figure import pileup_figure
from f5py.plotting.region import RegionData, region_data
from f5py.plotting.region_figure import region_figure

if TYPE_CHECKING:
    import pysam

_WHO = "plot_region_main"
#: Of the page in a notebook, in pixels.
_PAGE_HEIGHT = 640
#: Most bases of a picture of signals.
_MOST_SIGNAL_BASES = 1000
#: Options of the alignment of signals.
_OF_SIGNALS = ("reads", *SIGNALS, "pore", "rna", "kmer_model")


def run(options: PlotRegionOptions) -> None:
    """Draw the reads over a locus in the format of the output's name. Raises `F5pyError`, leaving no file."""
    kind = format_of(options.output)
    if kind != "html":
        require_matplotlib("f5py plot-region needs")
    check_outputs(options)
    with complete_output(options.output) as file:
        drawn, words = _drawn(options)
        drawn.write(file, kind)
    console.note(_WHO, f"{options.output}: {words}")


def picture(options: PlotRegionOptions) -> Picture:
    """Draw the reads over a locus; return the picture, which no file is written of.

    Raises `F5pyError` for anything wrong with the input.
    """
    return _drawn(options)[0]


def _drawn(options: PlotRegionOptions) -> tuple[Picture, str]:
    """Collect the data of a picture; also describe it."""
    if options.signals is not None:
        pileup = collect_signals(options)
        n_reads = sum(len(strand.traces) for strand in pileup.strands)
        drawn = Picture(pileup.region, partial(write_pileup_page, pileup), partial(pileup_figure, pileup), _PAGE_HEIGHT)
        return drawn, f"{pileup.region}, signals of {n_reads} reads"
    data = collect(options)
    drawn = Picture(data.region, partial(write_region_page, data), partial(region_figure, data), _PAGE_HEIGHT)
    return drawn, f"{data.region}, {len(data.names)} reads, {len(data.marks.read)} calls of {data.modification}"


def collect(options: PlotRegionOptions) -> RegionData:
    """Read the reads of all samples. Raise `F5pyError` if the region is wrong, or a sample has no calls there."""
    with ExitStack() as files:
        samples, region = _open_samples(options, files, options.max_bases, "raise --max-bases")
        genes = None if options.genes is None else read_genes(options.genes, *region)
        return region_data(
            {name: records for name, (_, records) in samples.items()}, region, options.code, options.threshold,
            options.max_reads, options.min_coverage, genes, options.smooth, options.read_order == "mean",
        )  # fmt: skip


def collect_signals(options: PlotRegionOptions) -> Pileup:
    """Align the signals of the reads of all samples; raise `F5pyError` if none is aligned in the region."""
    reads: dict[str, list[tuple[int, PlotData]]] = {"+": [], "-": []}
    n_left_out = 0
    with ExitStack() as files:
        samples, (contig, start, end) = _open_samples(options, files, _MOST_SIGNAL_BASES, "draw one after the other")
        for i, (alignments, records) in enumerate(samples.values()):
            overlap = {
                read_name(one): min(one.reference_end or 0, end) - max(one.reference_start, start) for one in records
            }
            names = sorted(overlap, key=lambda name: -overlap[name])
            n_left_out += max(len(names) - options.max_reads, 0)
            settings = EventalignOptions(
                bam=alignments.path, genome=options.genome or "",
                window=(f"{contig}:{start + 1}-{end}",), min_mapq=options.min_mapq, samples=True, gpu="off",
                **{name: getattr(options, name) for name in _OF_SIGNALS},
            )  # fmt: skip
            for data in _aligned(settings, names[: options.max_reads], (contig, start, end)):
                reads[data.strand or "+"].append((i, data))
        first = next((data for one in reads.values() for _, data in one), None)
        if first is None:
            raise F5pyError(f"-w {contig}:{start + 1}-{end}: no read there has events aligned to the reference")
        kind = options.signals or "samples"
        strands = [strand_pileup(strand, one, start, end, kind) for strand, one in reads.items() if one]
        return Pileup(
            contig, start, end, kind, first.source.chemistry, first.model.rpartition("/")[2], tuple(samples), strands,
            n_left_out,
        )  # fmt: skip


def _aligned(settings: EventalignOptions, names: list[str], region: tuple[str, int, int]) -> Iterator[PlotData]:
    """Yield the data of the reads in the region; the rows are those of eventalign."""
    contig, start, end = region
    if not names:
        return
    with ExitStack() as inputs:
        chosen = ReadList(names, settings.bam)
        loader, chemistry = open_inputs(settings, inputs, chosen=chosen, spliced=True)
        stage = EventalignStage(settings, chemistry, None, keep_map=True)
        inputs.callback(stage.close)
        source = ReadSource(chemistry.name, chemistry.rna, contig)
        for batch in loader.batches():
            stage.check_batch(batch)
            stage.compute(batch)
            stage.count_batch(batch)
            for read in np.flatnonzero(batch.status == ReadStatus.OK).tolist():
                first = int(batch.events.offsets[read])
                position = batch.rows.position[first : first + int(batch.rows.n[read])]
                if ((position >= start) & (position < end)).any():
                    yield reference_data(batch, read, stage.model, source, (start, end))
        if (why := mismatch(stage.counts, settings)) is not None:
            raise FailedRunError(f"the signals cannot be drawn: {why}")


def _open_samples(
    options: PlotRegionOptions, files: ExitStack, most_bases: int, instead: str
) -> tuple[dict[str, tuple[AlignmentFile, Iterator[pysam.AlignedSegment]]], tuple[str, int, int]]:
    """Open the alignments by the names of their samples, with the records that overlap the region."""
    if options.window.endswith(".bed"):
        raise UsageError(f"-w {options.window}: a plot takes one region, written as contig:start-end")
    paths = [*options.bam, *(one.partition("=")[2] for one in options.sample)]
    opened = [
        files.enter_context(closing(AlignmentFile(path, options.genome, min_mapq=options.min_mapq, secondary=False)))
        for path in paths
    ]
    names = [*_sample_names(opened[: len(options.bam)]), *(one.partition("=")[0] for one in options.sample)]
    if len(set(names)) < len(names):
        raise UsageError(f"--sample: {', '.join(names)} are not all different; give each sample another name")
    samples, regions = {}, []
    for alignments, name in zip(opened, names, strict=True):
        try:
            windows, contig, start, end = one_region(options.window, alignments.contigs, alignments.contig_lengths)
        except F5pyError as problem:
            raise type(problem)(f"{alignments.path}: {problem}" if len(paths) > 1 else str(problem)) from None
        regions.append((alignments.contigs[contig], start, end))
        # Without an index the whole file is read.
        visited = alignments.records(windows if alignments.has_index else None)
        samples[name] = alignments, _overlapping(visited, contig, start, end)
    if any(other != regions[0] for other in regions):
        raise UsageError(f"-w {options.window}: ends elsewhere in {paths[0]} than in other files; write start and end")
    if (n_bases := regions[0][2] - regions[0][1]) > most_bases:
        raise UsageError(
            f"-w {options.window}: has {n_bases:,} bases; choose a region of at most {most_bases:,}, or {instead}"
        )
    return samples, regions[0]


def _overlapping(visited: Iterable[Any], contig: int, start: int, end: int) -> Iterator[pysam.AlignedSegment]:
    return (record for _, record in visited if overlaps(record, contig, start, end))


def _sample_names(files: Sequence[AlignmentFile]) -> list[str]:
    """Name files by the samples of their read groups, or by their own names or paths if these differ."""
    of_groups = [one.sample or "" for one in files]
    stems = [PurePath(one.path).stem for one in files]
    choices = (of_groups if all(of_groups) else stems, stems)
    return next((names for names in choices if len(set(names)) == len(names)), [one.path for one in files])
