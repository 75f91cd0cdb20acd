"""Alignment of signals to the reads' own bases, from files to tables: what ``f5py resquiggle`` does."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import ExitStack

import numpy as np

from f5py import console
from f5py.commands.end_of_run import note_counts_and_times, note_results, warn_of_bad_reads
from f5py.core.batch import ReadBatch, ReadStatus
from f5py.core.options.signal_commands import ResquiggleOptions
from f5py.core.strictness import obeys_strict
from f5py.errors import AllReadsFailedError, SignalError
from f5py.io.alignments import RecordCounts
from f5py.io.output import open_output
from f5py.io.sequence_files import iterate_sequences
from f5py.io.signals import SignalSource, open_any
from f5py.outputs.failed_reads import listing_failed_reads
from f5py.outputs.formatting import OrderedFormatter
from f5py.outputs.resquiggle_writer import ResquigglePaf, ResquiggleTable
from f5py.outputs.stage_tables import StageTables
from f5py.pipeline.alignment_stage import AlignmentStage
from f5py.pipeline.chemistry import chemistry_of
from f5py.pipeline.counts import RunCounts
from f5py.pipeline.diagnosis import advice, all_failed
from f5py.pipeline.flow import process
from f5py.pipeline.inputs import check_outputs
from f5py.pipeline.outcome import Outcome
from f5py.pipeline.runner import Outputs
from f5py.pipeline.unmapped import unmapped_batch

_WHO = "resquiggle_main"


@obeys_strict
def run(options: ResquiggleOptions) -> RunCounts:
    """Align signals to reads as `options` say; return how many reads met which fate.

    Raises
    ------
    F5pyError
        For anything wrong with the input or output. What was written until then is valid and in order.
    """
    check_outputs(
        [options.reads, options.signals, options.kmer_model],
        {"-o": options.output, "--failed-reads": options.failed_reads},
    )
    with ExitStack() as workers, ExitStack() as inputs:
        signals = open_any(options.signals, options.iop, options.threads)
        inputs.callback(signals.close)
        loader = SequenceLoader(options.reads, signals, options.batchsize, options.max_bases)
        names = loader.peek_names()
        chemistry = chemistry_of(options.pore, options.rna, signals.run_info(names), options.kmer_model is not None)
        stage = AlignmentStage(options, chemistry)
        workers.callback(stage.close)
        stage.use_gpu(loader)
        lines = (ResquigglePaf if options.paf else ResquiggleTable)(chemistry.rna, stage.model.k)
        with Outputs() as outputs:
            formatter = OrderedFormatter(options.threads, outputs.stopping)
            outputs.callback(formatter.close)
            out = outputs.enter_context(open_output(options.output, options.threads))
            out.write(lines.header())
            tables = StageTables(out, options.print_events, options.print_banded_aln, options.print_scaling)

            def write(batch: ReadBatch) -> None:
                tables.write(batch)
                size = np.where(batch.status == ReadStatus.OK, batch.read_length, 1)
                formatter.write(out, batch, lines.format, size)

            listing = listing_failed_reads(options, write, outputs)
            seconds = process(options, stage, loader.batches(), inputs, listing, _WHO)
    _report(options, stage, loader, seconds)
    return stage.counts


class SequenceLoader:
    """Makes batches of the reads of a FASTA or FASTQ file, which are mapped to nothing.

    Parameters
    ----------
    path : str
    signals : SignalSource
    batch_size, max_bases : int
        A batch is closed when it has that many reads or at least that many bases.
    """

    def __init__(self, path: str, signals: SignalSource, batch_size: int, max_bases: int) -> None:
        self.batch_size = batch_size
        self.max_bases = max_bases
        self.sequence_seconds = 0.0
        self.signal_seconds = 0.0
        self._signals = signals
        self._sequences = iterate_sequences(path, batch_size, max_bases)
        self._first = next(self._sequences, None)

    def peek_names(self) -> list[str]:
        """Names of some of the first reads."""
        return [] if self._first is None else self._first[0][:16]

    def batches(self) -> Generator[ReadBatch, None, None]:
        """Yield the batches in the file's order."""
        number = 0
        sequences = self._first
        while sequences is not None:
            yield self._load(number, *sequences)
            number += 1
            started = time.perf_counter()
            sequences = next(self._sequences, None)
            self.sequence_seconds += time.perf_counter() - started

    def _load(self, number: int, names: list[str], bases: np.ndarray, base_offsets: np.ndarray) -> ReadBatch:
        started = time.perf_counter()
        signals = self._signals.fetch(names)
        self.signal_seconds += time.perf_counter() - started
        return unmapped_batch(number, names, bases, base_offsets, signals)


def _report(
    options: ResquiggleOptions, stage: AlignmentStage, loader: SequenceLoader, processing_seconds: float
) -> None:
    counts = stage.counts
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
