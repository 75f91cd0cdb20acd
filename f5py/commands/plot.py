"""Figure of one read: ``f5py plot``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.alignment import AlignmentStage
from f5py.compute.chemistry import Chemistry, chemistry_of
from f5py.compute.diagnosis import mismatch
from f5py.compute.events_on_reference import EventalignStage
from f5py.compute.methylation import builtin_methylation, methylation_models, motif_of
from f5py.core.batch import ReadBatch, ReadStatus
from f5py.core.motifs import Motif
from f5py.core.windows import Windows, one_region
from f5py.errors import F5pyError, FailedRunError, InputFileError, OutputFileError, SignalError, UsageError
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import encode_chunks, overlaps
from f5py.io.bam.modifications.modification_calls import read_name
from f5py.io.bam.record_ranges import RecordRange
from f5py.io.files.complete_file import complete_output
from f5py.io.output_checks import check_outputs
from f5py.io.reads.read_index import ReadIndex
from f5py.io.reads.read_list import ReadList
from f5py.io.reads.reference import Reference
from f5py.io.sequences.read_records import sequence_batches
from f5py.io.signals import SignalSource, open_signals
from f5py.messages import console
from f5py.methylation.calls import call_methylation
from f5py.options.declaration import declarations
from f5py.options.input_names import SEQUENCE_SUFFIX
from f5py.options.plot_commands import PlotOptions
from f5py.options.shared import AlignmentOptions, LimitOptions
from f5py.options.signal_commands import CallOptions, EventalignOptions
from f5py.pipeline.inputs import open_reads
from f5py.pipeline.loader import Loader
from f5py.pipeline.sequence_loader import unmapped_batch
from f5py.plotting.data import PlotData, ReadSource, read_data, reference_data, site_calls
from f5py.plotting.figure import read_figure
from f5py.plotting.pages import write_read_page
from f5py.plotting.picture import Picture, format_of, require_matplotlib
from f5py.pore_model import PoreModel, check_same_k

if TYPE_CHECKING:
    import pysam

_WHO = "plot_main"
#: Of the viewer in a notebook, in pixels.
_PAGE_HEIGHT = 640

_FAILURES = {
    ReadStatus.NO_ALIGNMENT: (
        "its events do not fit its bases; is the signal that of the read, and the pore model the right one "
        "(--pore, --rna, --kmer-model)?"
    ),
    ReadStatus.NOT_CALIBRATED: "it is too noisy, or has too few events to be calibrated with (--min-recalib-events)",
    ReadStatus.QC_FAIL: "it has too many events per base; its signal is of poor quality",
}


def run(options: PlotOptions) -> None:
    """Draw a read, or each read of a list, in the format of the output's name. Raises `F5pyError`, leaving no file."""
    names = _names(options)
    if len(names) > 1 and "{}" not in options.output:
        raise UsageError(f"-o {options.output}: is one name for {len(names)} reads; write {{}} for that of each")
    n_failed = 0
    for name in names:
        try:
            _draw(replace(options, read=name, read_ids=None))
        except F5pyError as problem:
            if len(names) == 1 or isinstance(problem, UsageError | OutputFileError):
                raise
            console.warning(_WHO, str(problem))
            n_failed += 1
    if n_failed:
        raise F5pyError(f"{n_failed} of {len(names)} reads could not be drawn; see the warnings")


def _names(options: PlotOptions) -> list[str]:
    """List the reads that are to be drawn."""
    if options.read_ids is not None:
        return ReadList.read(options.read_ids).names
    if not options.read:
        raise UsageError("no read is named; give READ_ID, or a list of reads with --read-ids")
    return [options.read]


def _draw(options: PlotOptions) -> None:
    output = options.output
    if "{}" in output:
        if os.path.basename(options.read) != options.read:
            raise UsageError(f"the name of the read, {options.read}, is no file name; name a file with -o")
        output = output.replace("{}", options.read)
    kind = format_of(output)
    if kind != "html":
        require_matplotlib("f5py plot needs")
    check_outputs(replace(options, output=output))
    with complete_output(output) as file:
        data = compute(options)
        _picture(options, data, data).write(file, kind)
    console.note(
        _WHO,
        f"{output}: read {data.name}, {data.region}, {len(data.position)} k-mers, "
        f"{len(data.event_index)} events, {len(data.current)} samples",
    )


def picture(options: PlotOptions) -> Picture:
    """Compute one read; return the picture. Errors are those of `run`."""
    names = _names(options)
    if len(names) > 1:
        raise UsageError(f"output: one picture can be returned, and there are {len(names)} reads; name files: {{}}.png")
    options = replace(options, read=names[0], read_ids=None)
    # the page has room for the whole read
    on_page = compute(replace(options, output="read.html"))
    in_figure = on_page if options.window is not None else compute(replace(options, output="read.png"))
    return _picture(options, on_page, in_figure)


def _picture(options: PlotOptions, on_page: PlotData, in_figure: PlotData) -> Picture:
    seconds = options.x_axis == "time"
    write_page = partial(write_read_page, on_page, seconds=seconds)
    return Picture(f"read {options.read}", write_page, lambda: read_figure(in_figure, seconds), _PAGE_HEIGHT)


def compute(options: PlotOptions) -> PlotData:
    """Load and align one read; return the data of its plot. Raises `F5pyError`."""
    with ExitStack() as files:
        if options.bam is None:
            return _aligned_to_itself(options, files)
        return _aligned_to_reference(options, files)


def _default_region(options: PlotOptions) -> tuple[int, int] | None:
    """Return the default region: the whole read in the viewer, which zooms; None in figures."""
    return (0, sys.maxsize) if options.output.lower().endswith(".html") else None


def _aligned_to_reference(options: PlotOptions, files: ExitStack) -> PlotData:
    assert options.bam is not None
    assert options.genome is not None
    alignments = OneAlignment(options.bam, options.genome)
    files.callback(alignments.close)
    record = alignments.find(options.read, options.window, options.alignment)
    reads = open_reads(options, alignments)
    files.callback(reads.close)
    if isinstance(reads, ReadIndex) and options.read not in reads:
        raise _not_among_reads(options)
    reference = Reference(options.genome, alignments.contigs, alignments.contig_lengths)
    files.callback(reference.close)
    # The metadata of a read that was split from another are those of its parent.
    parent = [str(record.get_tag("pi"))] if record.has_tag("pi") else []
    signals, chemistry = _open_signals(options, files, *parent)
    loader = Loader(
        alignments=alignments, reads_path=options.reads or alignments.name, reads=reads, reference=reference,
        signals=signals, windows=None, batch_size=1, max_bases=1, spliced=True,
    )  # fmt: skip
    # The whole read is aligned, so that the figure shows the rows that eventalign prints of it.
    settings = EventalignOptions(
        reads=options.reads or None, bam=options.bam, genome=options.genome, threads=1,
        kmer_model=options.kmer_model, samples=True, **_limits(options),
    )  # fmt: skip
    stage = EventalignStage(settings, chemistry, None, keep_map=True)
    files.callback(stage.close)
    batch = next(loader.batches())
    _align(stage, settings, batch)
    contig = alignments.contigs[int(batch.contig[0])]
    source = ReadSource(chemistry.name, chemistry.rna, contig)
    data = reference_data(batch, 0, stage.model, source, alignments.limits or _default_region(options))
    models = _methylation(options, chemistry)
    if models is None:
        return data
    check_same_k(stage.model, models[1])
    call_methylation(batch, *models, stage.pool)
    return replace(data, calls=site_calls(data, batch, 0, models[0], options.call_threshold))


def _methylation(options: PlotOptions, chemistry: Chemistry) -> tuple[Motif, PoreModel] | None:
    """Choose the motif and its model; None if there is none and the user has not asked for calls."""
    is_asked = options.methylation is not None or options.meth_model is not None
    settings = CallOptions(bam="", genome="", methylation=options.methylation, meth_model=options.meth_model)
    if not is_asked and builtin_methylation(chemistry, motif_of(settings)) is None:
        return None
    return methylation_models(settings, chemistry)[0]


def _limits(options: PlotOptions) -> dict[str, Any]:
    """Choose the limits beyond which alignments of events are rejected."""
    return {name: getattr(options, name) for name in declarations(LimitOptions)}


def _aligned_to_itself(options: PlotOptions, files: ExitStack) -> PlotData:
    region = _default_region(options) if options.window is None else _parse_kmer_range(options.window)
    bases = _bases(options)
    signals, chemistry = _open_signals(options, files)
    settings = AlignmentOptions(threads=1, kmer_model=options.kmer_model, **_limits(options))
    stage = AlignmentStage(settings, chemistry, keep_samples=True)
    files.callback(stage.close)
    n_kmers = len(bases) - stage.model.k + 1
    if n_kmers < 1:
        raise F5pyError(f"{options.reads}: read {options.read} has {len(bases)} bases, less than a k-mer")
    if region is not None and region[0] >= n_kmers:
        raise F5pyError(f"-w {options.window}: read {options.read} has only {n_kmers} k-mers; choose a region in it")
    signal = signals.fetch([options.read])
    if signal.problems:
        raise SignalError(signal.problems[0])
    batch = unmapped_batch(0, [options.read], bases, np.array([0, len(bases)]), signal)
    _align(stage, settings, batch)
    return read_data(batch, 0, stage.model, ReadSource(chemistry.name, chemistry.rna, None), region)


def _open_signals(options: PlotOptions, files: ExitStack, *others: str) -> tuple[SignalSource, Chemistry]:
    """Open the signals, and decide on the chemistry by the metadata of the read, or else of other reads."""
    signals = open_signals(options.reads or None, **options.signal_paths)
    files.callback(signals.close)
    run_info = signals.run_info([options.read, *others])
    return signals, chemistry_of(options.pore, options.rna, run_info, options.kmer_model is not None)


def _align(stage: AlignmentStage, settings: AlignmentOptions, batch: ReadBatch) -> None:
    """Compute the batch, which has one read; raise if the read drops out."""
    if batch.problems:
        raise SignalError(f"read {batch.names[0]} cannot be drawn without its signal: {batch.problems[0]}")
    stage.check_batch(batch)
    stage.compute(batch)
    stage.count_batch(batch)
    if (why := mismatch(stage.counts, settings)) is not None:
        raise FailedRunError(f"read {batch.names[0]} cannot be drawn: {why}")
    status = ReadStatus(int(batch.status[0]))
    if status != ReadStatus.OK:
        raise F5pyError(f"read {batch.names[0]} cannot be drawn: {_FAILURES[status]}")


def _bases(options: PlotOptions) -> np.ndarray:
    """Read the read's bases from the index of the reads if they have one."""
    name = options.read
    if os.path.exists(options.reads + SEQUENCE_SUFFIX):
        with ReadIndex.open(options.reads) as reads:
            if name in reads:
                return reads.sequences([name])[0]
    else:
        for batch in sequence_batches(options.reads, 1 << 20):
            for i, found in enumerate(batch.names):
                if found == name:
                    return batch.bases[batch.offsets[i] : batch.offsets[i + 1]]
    raise _not_among_reads(options)


def _not_among_reads(options: PlotOptions) -> InputFileError:
    return InputFileError(f"{options.reads}: has no read {options.read}; give its name as the file has it")


def _parse_kmer_range(text: str) -> tuple[int, int]:
    """``first-last``, 1-based, to a half-open interval."""
    found = re.fullmatch(r"(\d+)-(\d+)", text.replace(",", ""))
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise F5pyError(
            f"-w {text}: without -b, write a region as first-last, k-mers of the read counted from 1, e.g. 1-100"
        )
    return int(found[1]) - 1, int(found[2])


class OneAlignment(AlignmentFile):
    """Alignment file, limited to one record of one read.

    That is the read's first primary record that overlaps the region, written as by samtools, else its first
    supplementary one that does, or the one of a given number among both, from 1. `limits` is the 0-based, half-open
    interval of the region.
    """

    def __init__(self, path: str, reference_path: str) -> None:
        super().__init__(path, reference_path, min_mapq=0, secondary=False)
        self._reference_path = reference_path
        self.limits: tuple[int, int] | None = None
        self._record: pysam.AlignedSegment | None = None

    def find(self, name: str, region: str | None, number: int | None) -> pysam.AlignedSegment:
        """Find the record. Raises `F5pyError` if there is none, or none in the region."""
        windows, contig = None, -1
        if region is not None:
            if region.endswith(".bed"):
                raise F5pyError(f"-w {region}: a plot takes one region, written as contig:start-end")
            windows, contig, *limits = one_region(region, self.contigs, self.contig_lengths)
            self.limits = limits[0], limits[1]
        # places of the read's records that are not drawn, and whether those left out are unmapped
        elsewhere: list[str] = []
        left_out: list[bool] = []

        def search(file: AlignmentFile, windows: Windows | None) -> pysam.AlignedSegment | None:
            supplementary, n_alignments = None, 0
            for read_index, record in AlignmentFile.records(file, windows, left_out=True):
                if read_name(record) != name:
                    continue
                if read_index < 0:
                    left_out.append(record.is_unmapped)
                    continue
                n_alignments += 1
                is_in_region = self.limits is None or overlaps(record, contig, *self.limits)
                if not is_in_region or number not in (None, n_alignments):
                    start, end = record.reference_start + 1, record.reference_end or record.reference_start
                    elsewhere.append(f"{record.reference_name}:{start}-{end}")
                elif number is not None or not record.is_supplementary:
                    return record
                else:
                    supplementary = supplementary or record
            return supplementary

        # Numbers count all records, those outside of the region too.
        is_indexed = self.has_index and number is None
        self._record = search(self, windows if is_indexed else None)
        if self._record is not None:
            return self._record
        if is_indexed and windows is not None:
            # Only for the message: the rest of the file, which a region spares.
            with closing(AlignmentFile(self.path, self._reference_path, min_mapq=0, secondary=False)) as whole:
                search(whole, None)
        if number is not None and 0 < len(elsewhere) < number:
            raise F5pyError(
                f"--alignment {number}: read {name} has {len(elsewhere)} primary and supplementary alignments: "
                f"{', '.join(elsewhere[:3])}{', ...' if len(elsewhere) > 3 else ''}"
            )
        if elsewhere:
            raise F5pyError(
                f"-w {region}: read {name} is aligned to {' and '.join(elsewhere[:3])}; choose a region there"
            )
        if left_out:
            what = "is not aligned" if all(left_out) else "has secondary records only"
            raise F5pyError(f"{self.name}: read {name} {what}; leave -b and -g out to draw it with its own bases")
        raise InputFileError(f"{self.name}: has no read {name}; leave -b and -g out to draw it without alignment")

    def chunks(
        self, windows: Windows | None = None, at_most: int = 1, within: RecordRange | None = None
    ) -> Generator[tuple[NDArray[np.uint8], NDArray[np.int64], int], None, None]:
        """Yield the record that was found."""
        if self._record is not None:
            yield from encode_chunks([self._record], self.header)
