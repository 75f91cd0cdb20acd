"""From alignments with modification tags to the figure of a locus: what ``f5py plot-region`` does."""

from __future__ import annotations

from functools import partial

from f5py.core.windows import one_region
from f5py.errors import UsageError
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
    check_outputs(options)
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
    """Read what the figure shows. Raises `F5pyError` if the region is wrong, or no read there has calls."""
    if options.window.endswith(".bed"):
        raise UsageError(f"-w {options.window}: a plot takes one region, written as contig:start-end")
    alignments = AlignmentFile(options.bam, options.genome, min_mapq=options.min_mapq, secondary=False)
    try:
        windows, contig, start, end = one_region(options.window, alignments.contigs, alignments.contig_lengths)
        if end - start > options.max_bases:
            raise UsageError(
                f"-w {options.window}: has {end - start:,} bases; choose a region of at most "
                f"{options.max_bases:,}, or raise --max-bases"
            )
        # Without an index the whole file is read.
        visited = alignments.records(windows if alignments.has_index else None)
        records = (record for _, record in visited if overlaps(record, contig, start, end))
        region = alignments.contigs[contig], start, end
        genes = None if options.genes is None else read_genes(options.genes, *region)
        return region_data(
            records, region, options.code, options.threshold, options.max_reads, options.min_coverage, genes
        )
    finally:
        alignments.close()
