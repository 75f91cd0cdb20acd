"""Methylation calling: ``f5py call-methylation``."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from f5py.compute.chemistry import Chemistry
from f5py.compute.diagnosis import RunCounts
from f5py.compute.methylation import MethylationStage, motifs_of
from f5py.compute.statistics import RunStatistics
from f5py.errors import UsageError
from f5py.io.arrow.table import RowTarget
from f5py.io.bam.headers import header_with_program
from f5py.io.output_checks import check_outputs
from f5py.messages.console import obeys_strict
from f5py.options.output_names import OF_SITES, kind_among
from f5py.options.signal_commands import CallOptions
from f5py.outputs.calls.calls_arrow import CallsArrow
from f5py.outputs.calls.calls_table import calls_table
from f5py.outputs.calls.modbam import ModbamTags
from f5py.outputs.sink import ArrowSink, Sink
from f5py.outputs.sites.bedmethyl import BedMethylOutput, check_can_write
from f5py.pipeline.inputs import paths_of_inputs
from f5py.pipeline.loader import Loader
from f5py.runs.map_then_run import run_of_alignments
from f5py.runs.recipe import MappedReadsRecipe, Run, TableCallback, failed_reads, ultra_reads
from f5py.site_frequencies.site_counts import SiteCounts


@obeys_strict
def run(options: CallOptions, on_table: TableCallback | None = None) -> RunCounts:
    """Call methylation; return the read counts by outcome.

    Raises `F5pyError`; earlier output is valid and in order. `on_table` gets the calls, batch by batch,
    instead of standard output.
    """
    if options.watch is not None:
        if on_table is not None and not options.bam:
            raise UsageError("--watch: the calls are returned, so it never ends; name a file with -o, or leave it out")
        from f5py.runs import watch

        return watch.run(CALL_METHYLATION, options)
    return run_of_alignments(CALL_METHYLATION, options, on_table)


class CallMethylation(MappedReadsRecipe[CallOptions, MethylationStage]):
    """The recipe of ``call-methylation``."""

    command = "call-methylation"
    keeps_command_line = True
    words = "calls"

    def resolved(self, options: CallOptions, to_callback: bool = False) -> CallOptions:
        options = with_formats(options, to_callback)
        check_options(options, to_callback)
        return options

    def inputs(self, options: CallOptions) -> list[str | None]:
        return paths_of_inputs(options, options.meth_model)

    def results(self, options: CallOptions) -> list[str | None]:
        return [options.output, options.modbam, options.bedmethyl]

    def check_parts(self, options: CallOptions) -> None:
        """Raise `F5pyError` if the counts of sites cannot be written at the end."""
        if options.bedmethyl is not None:
            check_can_write(options.bedmethyl)

    def kernels(self, options: CallOptions) -> list[str]:
        calls = ("correlated " if options.is_correlated else "") + ("site calls" if options.per_site else "calls")
        return [calls, *(["calls table"] if options.output_format in ("tsv", "csv") else [])]

    def loading(self, options: CallOptions) -> dict[str, Any]:
        """Return settings of the loader; modBAM needs all records, skipped ones, too."""
        keeps = options.modbam is not None
        return {
            "keep_records": keeps,
            "keep_passed_over": keeps,
            "partition_tag": options.partition_tag,
            "with_preceding": options.skip_overlaps,
        }

    def stage(self, options: CallOptions, loader: Loader, chemistry: Chemistry) -> MethylationStage:
        return MethylationStage(options, chemistry, loader.windows)

    def statistics(self, options: CallOptions, loader: Loader) -> RunStatistics | None:
        if not options.report:
            return None
        return RunStatistics(loader.alignments.contig_lengths, options.threshold, motifs_of(options), loader.windows)

    def sinks(self, run: Run[CallOptions, Loader, MethylationStage]) -> Iterator[Sink]:
        options, loader, caller = run.options, run.loader, run.stage
        alignments = loader.alignments
        layout = (alignments.contigs, caller.model.k, loader.windows, caller.motif_names)

        def columns(out: RowTarget) -> CallsArrow:
            return CallsArrow(out, *layout, metadata=caller.facts.metadata)

        if options.output_format == "parquet":
            yield ArrowSink(options.output, columns)
        elif options.output_format in ("tsv", "csv"):
            yield calls_table(options.output, options, layout, run.stopping)
        if run.on_table is not None:
            yield ArrowSink(run.on_table, columns)
        if options.modbam is not None:
            header = header_with_program(alignments.header, options.command_line, caller.facts.line)
            windows, reference = loader.windows, loader.reference.path
            yield ModbamTags(options.modbam, options, header, caller.motifs, windows, reference, caller.calibration)
        if options.bedmethyl is not None:
            contigs = dict(zip(alignments.contigs, alignments.contig_lengths, strict=True))
            partitions = None if options.partition_tag is None else loader.partitions
            counts = SiteCounts(options.threshold, options.threshold_per_site, options.combine_strands)
            given = (contigs, counts, partitions, loader.windows, options.threads)
            yield BedMethylOutput(options.bedmethyl, caller.motifs[0], *given)
        yield from ultra_reads(run)
        yield from failed_reads(options)

    def state_after_error(self, options: CallOptions) -> str:
        return "the output is incomplete" if options.output_format in ("tsv", "csv") else "no file was made"


CALL_METHYLATION = CallMethylation()


def with_formats(options: CallOptions, to_callback: bool = False) -> CallOptions:
    """Resolve output formats from names; with `to_callback` the calls go to a function.

    ``-o x.bam`` and nanopolish's ``--modbam-output-name`` are ``--modbam``, ``-o x.bed`` is ``--bedmethyl``, each
    without a table.
    """
    name = options.modbam_output_name
    if name is not None:
        return replace(options, modbam=name, modbam_output_name=None, output_format="none")
    if to_callback and options.output == "-" and options.output_format in (None, "tsv"):
        return replace(options, output_format="none")
    if options.output_format is not None:
        return options
    kind = kind_among(options.output, "calls are written", ("tsv", "csv", "parquet", "bam", *OF_SITES))
    if kind not in ("bam", *OF_SITES):
        return replace(options, output_format=kind if kind in ("parquet", "csv") else "tsv")
    field = "modbam" if kind == "bam" else "bedmethyl"
    if (other := getattr(options, field)) is not None:
        raise UsageError(f"-o {options.output} and --{field} {other}: both name such a file; give one")
    without_table: dict[str, Any] = {field: options.output, "output": "-", "output_format": "none"}
    return replace(options, **without_table)


def check_options(options: CallOptions, to_callback: bool = False) -> None:
    """Raise `UsageError` for contradicting options; with `to_callback` the calls go to a function."""
    motifs = motifs_of(options)
    if options.modbam == "-" and options.output == "-" and options.output_format != "none":
        raise UsageError("--modbam -: standard output is for the table; name a file for that with -o")
    check_outputs(options, "modbam")
    if options.output_format == "none":
        if options.output != "-":
            raise UsageError(f"-o {options.output}: there is no table with --output-format none")
        if options.modbam is None and options.bedmethyl is None and not to_callback:
            raise UsageError("--output-format none: nothing to write; give --modbam or --bedmethyl")
    if options.call_threshold is not None and not 0 <= options.call_threshold < math.inf:
        raise UsageError(f"--call-threshold {options.call_threshold:g}: must be a finite number, and not negative")
    if len(motifs) > 1 and options.bedmethyl is not None:
        raise UsageError(
            "--bedmethyl: counts one motif; call several into a table, and count each with f5py meth-freq -q NAME"
        )
