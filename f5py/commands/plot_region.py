"""From alignments with modification tags to the figure of a locus: what ``f5py plot-region`` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from f5py.core.windows import one_region
from f5py.errors import F5pyError, UsageError
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import overlaps
from f5py.io.files.complete_file import complete_output
from f5py.messages import console
from f5py.options.plot_commands import PlotRegionOptions
from f5py.pipeline.inputs import check_outputs
from f5py.plotting import format_of
from f5py.plotting.figure import check_matplotlib
from f5py.plotting.genes import read_genes
from f5py.plotting.picture import Picture
from f5py.plotting.region import RegionData, region_data
from f5py.plotting.region_figure import region_figure, write_region_figure

if TYPE_CHECKING:
    import pysam

_WHO = "plot_region_main"
#: Of the page in a notebook, in pixels.
_PAGE_HEIGHT = 640


def run(options: PlotRegionOptions) -> None:
    """Draw the reads over a locus; the ending of the output's name says the format.

    Raises `F5pyError` for anything wrong with the input or output. No file is made then.
    """
    kind = format_of(options.output)
    if kind != "html":
        check_matplotlib("plot-region")
    check_outputs(replace(options, bam=tuple(_paths(options))))
    with complete_output(options.output) as file:
        data = collect(options)
        write_region_figure(data, file, kind)
    n_calls = len(data.marks.read)
    console.note(
        _WHO, f"{options.output}: {data.region}, {len(data.names)} reads, {n_calls} calls of {data.modification}"
    )


def picture(options: PlotRegionOptions) -> Picture:
    """Draw the reads over a locus; return the picture, which no file is written of.

    Raises `F5pyError` for anything wrong with the input.
    """
    data = collect(options)
    write = partial(write_region_figure, data)
    return Picture(data.region, write, lambda: region_figure(data), _PAGE_HEIGHT)


def collect(options: PlotRegionOptions) -> RegionData:
    """Read the reads of all samples; raise `F5pyError` if the region is wrong, or a sample has no calls there."""
    if options.window.endswith(".bed"):
        raise UsageError(f"-w {options.window}: a plot takes one region, written as contig:start-end")
    paths = _paths(options)
    samples: dict[str, Iterator[pysam.AlignedSegment]] = {}
    with ExitStack() as files:
        opened = [_open(path, options, files) for path in paths]
        names = [*_sample_names(opened[: len(options.bam)]), *(one.partition("=")[0] for one in options.sample)]
        if len(set(names)) < len(names):
            raise UsageError(f"--sample: {', '.join(names)} are not all different; give each sample another name")
        regions = []
        for alignments, name in zip(opened, names, strict=True):
            try:
                windows, contig, start, end = one_region(options.window, alignments.contigs, alignments.contig_lengths)
            except F5pyError as problem:
                raise type(problem)(f"{alignments.path}: {problem}" if len(paths) > 1 else str(problem)) from None
            regions.append((alignments.contigs[contig], start, end))
            # Without an index the whole file is read.
            visited = alignments.records(windows if alignments.has_index else None)
            samples[name] = _overlapping(visited, contig, start, end)
        region = regions[0]
        if any(other != region for other in regions):
            raise UsageError(
                f"-w {options.window}: ends in different places of {paths[0]} and the other files; name both"
            )
        if region[2] - region[1] > options.max_bases:
            raise UsageError(
                f"-w {options.window}: has {region[2] - region[1]:,} bases; choose a region of at most "
                f"{options.max_bases:,}, or raise --max-bases"
            )
        genes = None if options.genes is None else read_genes(options.genes, *region)
        return region_data(
            samples, region, options.code, options.threshold, options.max_reads, options.min_coverage, genes,
            options.smooth, options.read_order == "mean",
        )  # fmt: skip


def _paths(options: PlotRegionOptions) -> list[str]:
    """List the alignment files."""
    return [*options.bam, *(one.partition("=")[2] for one in options.sample)]


def _open(path: str, options: PlotRegionOptions, files: ExitStack) -> AlignmentFile:
    alignments = AlignmentFile(path, options.genome, min_mapq=options.min_mapq, secondary=False)
    files.callback(alignments.close)
    return alignments


def _overlapping(visited: Iterable[Any], contig: int, start: int, end: int) -> Iterator[pysam.AlignedSegment]:
    return (record for _, record in visited if overlaps(record, contig, start, end))


def _sample_names(files: Sequence[AlignmentFile]) -> list[str]:
    """Name files by the samples of their read groups, by their own names, or by their paths, if these differ."""
    of_groups = [one.sample or "" for one in files]
    stems = [PurePath(one.path).stem for one in files]
    choices = (of_groups if all(of_groups) else stems, stems)
    return next((names for names in choices if len(set(names)) == len(names)), [one.path for one in files])
