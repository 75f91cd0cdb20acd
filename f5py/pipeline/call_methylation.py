"""Methylation calling from files to a table: what ``f5py call-methylation`` does."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

from f5py import console
from f5py.abea.placement import MAX_EVENTS_PER_BASE
from f5py.errors import F5pyError, OutputFileError
from f5py.io.alignments import AlignmentFile
from f5py.io.calls_writer import CallsWriter
from f5py.io.output import open_output
from f5py.io.read_index import READDB_SUFFIX, ReadIndex, read_readdb
from f5py.io.reference import Reference
from f5py.io.signals import open_source
from f5py.io.stage_tables import StageTables
from f5py.io.windows import Windows
from f5py.pipeline.batch import ReadBatch, ReadStatus
from f5py.pipeline.caller import Caller, CallOptions, RunCounts
from f5py.pipeline.loader import Loader
from f5py.pipeline.report import report
from f5py.pipeline.run import run_pipeline


def run(options: CallOptions) -> RunCounts:
    """Call methylation as `options` say; return how many reads met which fate.

    Raises
    ------
    F5pyError
        For anything wrong with the input or output. What was written until then is valid and in order.
    """
    _check_outputs(options)
    with ExitStack() as workers, ExitStack() as inputs:
        caller = Caller(options)
        workers.callback(caller.close)
        loader = _open_inputs(options, inputs)
        if not options.disable_cuda:
            caller.use_gpu(loader)
        processing = _process(options, caller, loader, inputs)
    caller.counts.ultra = loader.n_ultra
    caller.counts.total += loader.n_ultra
    report(options, caller, loader, processing.seconds)
    return caller.counts


def _check_outputs(options: CallOptions) -> None:
    """Refuse to write over an input or to write two things into one file."""
    inputs = (options.reads, options.bam, options.genome, options.kmer_model, options.meth_model, options.window)
    outputs = [path for path in (options.output, options.skip_ultra) if path is not None]
    if options.skip_ultra == "-":
        raise OutputFileError("--skip-ultra -: give the name of a file; standard output is for the calls")
    for path in outputs:
        for other in inputs:
            if other is not None and _same_regular_file(path, other):
                raise OutputFileError(f"{path}: is an input as well; give the output another name")
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        raise OutputFileError(f"{outputs[0]}: cannot take both the calls (-o) and the ultra-long reads (--skip-ultra)")


def _same_regular_file(path: str, other: str) -> bool:
    return os.path.isfile(path) and os.path.exists(other) and os.path.samefile(path, other)


def _open_inputs(options: CallOptions, inputs: ExitStack) -> Loader:
    """Open all input files, check that they belong together, and let `inputs` close them."""
    alignments = AlignmentFile(options.bam, options.genome, options.min_mapq, options.secondary)
    inputs.callback(alignments.close)
    windows = None if options.window is None else Windows.parse(options.window, alignments.contigs)
    if windows is not None:
        alignments.check_index()
        console.note("init_core", f"Iterating over region: {options.window}")
    reads = inputs.enter_context(ReadIndex.open(options.reads))
    reference = Reference(options.genome, alignments.contigs, alignments.contig_lengths)
    inputs.callback(reference.close)
    signals = open_source(read_readdb(options.reads + READDB_SUFFIX), options.iop)
    inputs.callback(signals.close)
    return Loader(
        alignments,
        options.reads,
        reads,
        reference,
        signals,
        windows,
        options.batchsize,
        options.max_bases,
        options.skip_ultra,
        options.ultra_thresh,
        options.skip_unreadable,
        options.hard_clips,
    )


def _process(options: CallOptions, caller: Caller, loader: Loader, inputs: ExitStack) -> console.Stopwatch:
    """Load, compute and write all batches; return the time that computing took."""
    started = time.perf_counter()
    processing = console.Stopwatch()
    alignments = loader.alignments
    with open_output(options.output) as out, console.progress("reads", alignments.expected_records()) as advance:
        writer = CallsWriter(
            out, options.meth_out_version, alignments.contigs, caller.methylation.k, loader.windows
        )
        tables = StageTables(out, options.print_events, options.print_banded_aln, options.print_scaling)

        def load() -> Iterator[ReadBatch]:
            # The inputs are closed by the thread that uses them: after an interrupt it may be reading for a while.
            with inputs.pop_all():
                for batch in loader.batches():
                    _note_batch(started, "meth_main", batch, "loaded", options.verbose)
                    yield batch
                    if batch.number == options.debug_break:
                        return

        def start(batch: ReadBatch) -> None:
            with processing:
                caller.start(batch)

        def compute(batch: ReadBatch) -> None:
            with processing:
                caller.compute(batch)
            _note_batch(started, "pthread_processor", batch, "processed", options.verbose)

        def write(batch: ReadBatch) -> None:
            begin = time.perf_counter()
            tables.write(batch)
            writer.write(batch)
            out.flush()  # whatever happens later, these rows are out, and whole
            caller.times.output += time.perf_counter() - begin
            advance(len(batch))

        try:
            run_pipeline(load(), compute, write, start, ahead=caller.works_ahead)
        except F5pyError as problem:
            raise type(problem)(f"{problem}; the output is incomplete") from problem
    return processing


def _note_batch(started: float, who: str, batch: ReadBatch, what: str, verbose: int) -> None:
    n_bases = int(batch.read_length.sum())
    wall = time.perf_counter() - started
    when = f"{wall:.3f}*{console.cpu_share():.2f}"
    console.note(f"{who}::{when}", f"{len(batch)} Entries ({n_bases / 1e6:.1f}M bases) {what}")
    if verbose >= 1 and what == "processed":
        lengths = batch.read_length
        for read in (batch.status == ReadStatus.NO_ALIGNMENT).nonzero()[0].tolist():
            events = int(batch.event_offsets[read + 1] - batch.event_offsets[read])
            if lengths[read] and events / lengths[read] >= MAX_EVENTS_PER_BASE:
                console.note(who, f"{batch.names[read]}: over-segmented, {events / lengths[read]:.1f} events per base")
