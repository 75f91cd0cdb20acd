"""Alignment of signals to the reads' own bases: ``f5py resquiggle``."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from f5py.compute.alignment import AlignmentStage
from f5py.compute.chemistry import Chemistry, chemistry_of
from f5py.compute.diagnosis import RunCounts, advice, all_failed
from f5py.core.batch import ReadBatch, ReadStatus
from f5py.errors import FailedRunError, SignalError, UsageError
from f5py.io.arrow.text_input import check_read_once
from f5py.io.bam.alignments import RecordCounts
from f5py.io.output_checks import check_outputs
from f5py.io.reads.read_list import ReadList
from f5py.io.signals import open_any
from f5py.messages import console
from f5py.messages.console import obeys_strict
from f5py.options.output_names import MOVES, check_name, is_csv_name
from f5py.options.signal_commands import ResquiggleOptions
from f5py.outputs.formatted_text import FormattedText
from f5py.outputs.resquiggle.resquiggle_writer import ResquigglePaf, ResquiggleTable
from f5py.outputs.sink import Sink
from f5py.pipeline.inputs import batch_size, batches_ahead
from f5py.pipeline.sequence_loader import SequenceLoader
from f5py.runs.finish import failed_reads_left, join_outputs, read_parts
from f5py.runs.outcome import Outcome, note_counts_and_times, note_results, warn_of_bad_reads
from f5py.runs.parts.job import GrowingJob
from f5py.runs.parts.plan import Plan, folder_beside
from f5py.runs.recipe import Recipe, Run, failed_reads, run_parts, run_whole

_WHO = "resquiggle_main"
#: So many reads are a part of a run that can be resumed.
READS_PER_PART = 4096


@obeys_strict
def run(options: ResquiggleOptions) -> RunCounts:
    """Align signals to reads; return the read counts by outcome.

    Raises `F5pyError`; earlier output is valid and in order.
    """
    options = RESQUIGGLE.resolved(options)
    if not options.resume:
        return run_whole(RESQUIGGLE, options)
    _check_resumable(options)
    job = GrowingJob(lambda: _plan(options), READS_PER_PART)
    whole, outcome, warnings = run_parts(options, RESQUIGGLE, job)
    plan = job.plan
    done, of_parts, _ = read_parts([(plan, number) for number in range(whole.loader.n_parts)], lambda: None)
    outcome = replace(outcome, counts=of_parts.counts)
    run = Run(options, whole.loader, whole.stage, threading.Event())
    with failed_reads_left(run, done):
        RESQUIGGLE.report(run, outcome, warnings)
        join_outputs(RESQUIGGLE, run, done)
    RESQUIGGLE.report_results(options, of_parts.counts)
    plan.remove_parts()
    return of_parts.counts


class Resquiggle(Recipe[ResquiggleOptions, SequenceLoader, AlignmentStage]):
    """The recipe of ``resquiggle``."""

    command = "resquiggle"
    who = _WHO

    def resolved(self, options: ResquiggleOptions, to_callback: bool = False) -> ResquiggleOptions:
        check_outputs(options)
        check_name("-o", options.output, MOVES)
        if is_csv_name(options.output):
            if options.paf:
                raise UsageError(f"-o {options.output}: PAF has tabs between its columns; name the file .paf")
            if options.print_events or options.print_banded_aln or options.print_scaling:
                raise UsageError(
                    f"-o {options.output}: has no place for the tables of the --print options; name it .tsv"
                )
        return options

    def inputs(self, options: ResquiggleOptions) -> list[str | None]:
        return [options.reads, *options.signals, options.kmer_model, options.read_ids]

    def open(self, options: ResquiggleOptions, inputs: ExitStack) -> tuple[SequenceLoader, Chemistry]:
        ahead = batches_ahead(options)
        signals = open_any(options.signals, options.iop, options.threads, ahead)
        inputs.callback(signals.close)
        check_read_once([options.reads, str(options.read_ids)])
        chosen = None if options.read_ids is None else ReadList.read(options.read_ids)
        loader = SequenceLoader(options.reads, signals, batch_size(options), options.max_bases, ahead, chosen)
        run_info = signals.run_info(loader.peek_names())
        return loader, chemistry_of(options.pore, options.rna, run_info, options.kmer_model is not None)

    def stage(self, options: ResquiggleOptions, loader: SequenceLoader, chemistry: Chemistry) -> AlignmentStage:
        return AlignmentStage(options, chemistry)

    def sinks(self, run: Run[ResquiggleOptions, SequenceLoader, AlignmentStage]) -> Iterator[Sink]:
        options, stage = run.options, run.stage
        lines = (ResquigglePaf if options.paf else ResquiggleTable)(stage.chemistry.rna, stage.model.k)
        yield FormattedText(options.output, options, lines, _lines, run.stopping, is_csv_name(options.output))
        yield from failed_reads(options)

    def outcome(self, stage: AlignmentStage, loader: SequenceLoader, seconds: float) -> Outcome:
        loading = {"reads": loader.sequence_seconds, "signals": loader.signal_seconds}
        return Outcome(stage.counts, RecordCounts(), None, loading, stage.times.seconds, seconds, stage.times.output)

    def report(
        self, run: Run[ResquiggleOptions, SequenceLoader, AlignmentStage], outcome: Outcome, warnings: list[str]
    ) -> None:
        counts, options, chemistry = outcome.counts, run.options, run.stage.chemistry
        note_counts_and_times(_WHO, outcome, "signal")
        warn_of_bad_reads(_WHO, counts, options)
        if counts.failed >= counts.total > 0:
            if counts.bad_reads == counts.total:
                raise SignalError("none of the reads has a signal; give the signals of these reads")
            raise FailedRunError(all_failed(counts, chemistry))
        for line in advice(counts, chemistry, options):
            console.warning(_WHO, line)

    def report_results(self, options: ResquiggleOptions, counts: RunCounts, to_callback: bool = False) -> None:
        note_results(_WHO, options, counts, "")


RESQUIGGLE = Resquiggle()


def _lines(batch: ReadBatch) -> NDArray[np.int64]:
    """Estimate each read's lines of text, of usual length, int64."""
    lines: NDArray[np.int64] = np.where(batch.status == ReadStatus.OK, batch.read_length, 1)
    return lines


def _check_resumable(options: ResquiggleOptions) -> None:
    """Raise `UsageError` if the options do not go together with ``--resume``."""
    for path in filter(None, (options.reads, *options.signals, options.read_ids)):
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
            raise UsageError(f"{path}: cannot be read again, as --resume needs; name a file")
    _folder(options)


def _folder(options: ResquiggleOptions) -> str:
    return folder_beside(options.output, "name a file with -o")


def _plan(options: ResquiggleOptions) -> Plan:
    """Open the plan next to the output, or create it.

    Raises `F5pyError` if it has other options or inputs.
    """
    folder = _folder(options)
    if not Plan.is_there(folder):
        inputs = RESQUIGGLE.inputs(options)
        return Plan.make(folder, RESQUIGGLE.command, options, inputs, [])
    plan = Plan.load_same(folder, RESQUIGGLE.command, options)
    console.info("plan", f"{len(plan.done())} parts of {READS_PER_PART} reads are done; going on with the others")
    return plan
