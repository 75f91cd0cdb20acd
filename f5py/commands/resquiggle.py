"""Alignment of signals to the reads' own bases, from files to tables: what ``f5py resquiggle`` does."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from f5py.compute.alignment import AlignmentStage
from f5py.compute.chemistry import chemistry_of
from f5py.compute.counts import RunCounts
from f5py.compute.diagnosis import advice, all_failed
from f5py.core.batch import ReadBatch, ReadStatus
from f5py.errors import AllReadsFailedError, SignalError, UsageError
from f5py.io.bam.alignments import RecordCounts
from f5py.io.bam.record_ranges import RecordRanges
from f5py.io.files.output import TextOutput, open_output
from f5py.io.signals import open_any
from f5py.messages import console
from f5py.messages.strict import obeys_strict
from f5py.options.signal_commands import ResquiggleOptions
from f5py.outputs.failed_reads import listing_failed_reads
from f5py.outputs.formatting import OrderedFormatter
from f5py.outputs.resquiggle_writer import ResquigglePaf, ResquiggleTable
from f5py.outputs.stage_tables import StageTables
from f5py.pipeline.flow import process
from f5py.pipeline.inputs import batches_ahead, check_outputs
from f5py.pipeline.runner import Outputs
from f5py.pipeline.sequence_loader import SequenceLoader
from f5py.runs.end_of_run import note_counts_and_times, note_results, warn_of_bad_reads
from f5py.runs.outcome import Outcome
from f5py.runs.parts.done_part import FAILED_READS, DonePart, check_processors, read_part
from f5py.runs.parts.job import PartJob, WriteBatch
from f5py.runs.parts.join_outputs import join_tables, join_texts
from f5py.runs.parts.part_outputs import outputs_of_parts
from f5py.runs.parts.plan import Plan
from f5py.runs.parts.resume import check_can_resume, folder_beside

_WHO = "resquiggle_main"
_COMMAND = "resquiggle"
#: So many reads are a part of a run that can be resumed.
READS_PER_PART = 4096


@obeys_strict
def run(options: ResquiggleOptions) -> RunCounts:
    """Align signals to reads as `options` say; return how many reads met which fate.

    Raises
    ------
    F5pyError
        For anything wrong with the input or output. What was written until then is valid and in order.
    """
    check_outputs({"-o": options.output, "--failed-reads": options.failed_reads})
    if options.resume:
        _check_resumable(options)
    with ExitStack() as workers, ExitStack() as inputs:
        signals = open_any(options.signals, options.iop, options.threads)
        inputs.callback(signals.close)
        loader = SequenceLoader(options.reads, signals, options.batchsize, options.max_bases, batches_ahead(options))
        names = loader.peek_names()
        chemistry = chemistry_of(options.pore, options.rna, signals.run_info(names), options.kmer_model is not None)
        stage = AlignmentStage(options, chemistry)
        workers.callback(stage.close)
        stage.use_gpu(loader)
        plan = _plan(options) if options.resume else None
        lines = (ResquigglePaf if options.paf else ResquiggleTable)(chemistry.rna, stage.model.k)
        with Outputs() as outputs:

            def opened(options: ResquiggleOptions, files: ExitStack, out: TextOutput) -> WriteBatch:
                formatter = OrderedFormatter(options.threads, outputs.stopping)
                files.callback(formatter.close)
                out.write(lines.header())
                tables = StageTables(out, options.print_events, options.print_banded_aln, options.print_scaling)

                def write(batch: ReadBatch) -> None:
                    tables.write(batch)
                    size = np.where(batch.status == ReadStatus.OK, batch.read_length, 1)
                    formatter.write(out, batch, lines.format, size)

                return listing_failed_reads(options, write, files)

            if plan is None:
                out = outputs.enter_context(open_output(options.output, options.threads))
                seconds = process(options, stage, loader, inputs, opened(options, outputs, out), _WHO)
            else:
                stage.judges_fit = not plan.is_done(0)
                loader.divide(READS_PER_PART, plan.is_done)
                write, finish = outputs_of_parts(
                    plan, loader.parts, stage, outputs,
                    lambda folder, files, out: (opened(_options_of_part(options, folder), files, out), lambda: None),
                )  # fmt: skip
                seconds = process(options, stage, loader, inputs, write, _WHO, PartJob.left)
                finish()
    counts = stage.counts if plan is None else _join(options, plan, loader.n_parts)
    _report(options, counts, stage, loader, seconds)
    if plan is not None:
        plan.remove_parts()
    return counts


def _check_resumable(options: ResquiggleOptions) -> None:
    """Raise `UsageError` if the options do not go together with ``--resume``."""
    for path in (options.reads, options.signals):
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
            raise UsageError(f"{path}: cannot be read again, as --resume needs; name a file")
    check_can_resume(options, "--resume")
    _folder(options)


def _folder(options: ResquiggleOptions) -> str:
    return folder_beside(options.output, "name a file with -o")


def _plan(options: ResquiggleOptions) -> Plan:
    """The plan beside the output, which is made if it is not there.

    Raises
    ------
    F5pyError
        It is of something else, or of other options or inputs.
    """
    folder = _folder(options)
    if not Plan.is_there(folder):
        inputs = [options.reads, options.signals, options.kmer_model]
        return Plan.make(folder, _COMMAND, options, inputs, RecordRanges.of([]))
    plan = Plan.load_same(folder, _COMMAND, options)
    console.info("plan", f"{len(plan.done())} parts of {READS_PER_PART} reads are done; going on with the others")
    return plan


def _options_of_part(options: ResquiggleOptions, folder: Path) -> ResquiggleOptions:
    return replace(options, failed_reads=None if options.failed_reads is None else str(folder / FAILED_READS))


def _join(options: ResquiggleOptions, plan: Plan, n_parts: int) -> RunCounts:
    """Make the outputs of those of all parts."""
    parts = []
    outcome = Outcome(RunCounts(), RecordCounts())
    for number in range(n_parts):
        record = read_part(plan, number)
        parts.append(DonePart(plan, number, record))
        outcome.add(record.outcome)
    check_processors(parts)
    join_tables(parts, options.output, options.threads)
    if options.failed_reads is not None:
        join_texts(parts, FAILED_READS, options.failed_reads, options.threads)
    return outcome.counts


def _report(
    options: ResquiggleOptions,
    counts: RunCounts,
    stage: AlignmentStage,
    loader: SequenceLoader,
    processing_seconds: float,
) -> None:
    loading = {"reads": loader.sequence_seconds, "signals": loader.signal_seconds}
    outcome = Outcome(
        counts, RecordCounts(), None, loading, stage.times.seconds, processing_seconds, stage.times.output
    )
    note_counts_and_times(_WHO, outcome, "signal")
    warn_of_bad_reads(_WHO, counts, options)
    if counts.failed >= counts.total:
        if counts.total and counts.bad_reads == counts.total:
            raise SignalError("none of the reads has a signal; give the signals of these reads")
        raise AllReadsFailedError(all_failed(counts, stage.chemistry))
    for line in advice(counts, stage.chemistry, options):
        console.warning(_WHO, line)
    note_results(_WHO, options, counts, "")
