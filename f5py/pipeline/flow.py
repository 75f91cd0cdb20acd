"""Flow of a run: batches are loaded, computed and written concurrently, with progress messages."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from f5py.compute.alignment import AlignmentStage
from f5py.compute.diagnosis import cause_text
from f5py.compute.gpu.arena import parts_for
from f5py.core.batch import Cause, ReadBatch
from f5py.core.large_arrays import recycling
from f5py.errors import F5pyError
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.options.shared import AlignmentOptions
from f5py.threads.pipeline import run_pipeline
from f5py.threads.pool import FEW_THREADS, kept_memory

#: With more CPU threads than this two batches more are in flight where they compute alone, but for single sites, which
#: take more memory.
_SEVERAL_THREADS = 8


def process(
    options: AlignmentOptions,
    stage: AlignmentStage,
    batches: Generator[Any, None, None],
    stop_loading: Callable[[], None],
    inputs: ExitStack,
    write: Callable[[ReadBatch], None],
    who: str = "meth_main",
    left: str = "the output is incomplete",
) -> float:
    """Load, compute and write all batches; return the compute seconds.

    Raises `F5pyError`; outputs so far are valid and in order, and the message ends with `left`, their state. `batches`
    has not begun. The thread that uses `inputs` closes them: after an interrupt it may be reading for a while.
    """
    started = time.perf_counter()
    processing = console.Stopwatch()
    n_lanes = lanes_of(options, stage)
    tells_batches = options.verbose > 0 or not console.is_terminal()  # where the bar would be torn by the lines
    n_loaded = 0
    with progress("bases") as bar, kept_memory(), recycling():

        def part_of(batch: ReadBatch) -> int:
            return _n_bases(batch) // (stage.n_parts + 1)

        def note_loaded(batch: ReadBatch) -> None:
            nonlocal n_loaded
            if tells_batches:
                _note_batch(started, who, batch, "loaded")
            n_loaded += _n_bases(batch)
            if batch.share_of_input:
                bar.expect(int(n_loaded / batch.share_of_input))

        def load() -> Iterator[Any]:
            with inputs.pop_all(), closing(batches):
                for batch in batches:
                    stage.check_batch(batch)
                    note_loaded(batch)
                    is_last = batch.number == options.debug_break
                    yield batch
                    if is_last:
                        break
                    del batch  # it may be through while the next one is loaded
                bar.expect(n_loaded)

        def compute(batch: ReadBatch) -> None:
            with processing:
                stage.compute(batch)

        def count_batch(batch: ReadBatch) -> None:
            stage.count_batch(batch)
            if tells_batches:
                _note_batch(started, "pthread_processor", batch, "processed")
            if options.verbose:
                _note_failures(who, batch, options)

        def write_and_advance(batch: ReadBatch) -> None:
            begin = time.perf_counter()
            write(batch)
            stage.times.output += time.perf_counter() - begin
            bar.advance(_n_bases(batch) - stage.n_parts * part_of(batch))

        def stop() -> None:
            stop_loading()
            stage.stop()

        stage.tell_parts(lambda batch: bar.advance(part_of(batch)))
        try:
            run_pipeline(
                load(), compute, write_and_advance, settle=count_batch, stop=stop, n_lanes=n_lanes, waits=stage.waits
            )
        except F5pyError as problem:
            raise type(problem)(f"{problem}; {left}") from problem
    return processing.seconds


def lanes_of(options: AlignmentOptions, stage: AlignmentStage) -> int:
    """Return the number of batches that this process computes concurrently."""
    results = stage.stages.results
    if stage.n_gpus:
        return parts_for(results) * stage.n_gpus
    if options.threads <= FEW_THREADS:
        return 2
    return 3 if options.threads <= _SEVERAL_THREADS or results == "sites" else 5


def _n_bases(batch: ReadBatch) -> int:
    return int(batch.read_length.sum())


def _note_batch(started: float, who: str, batch: ReadBatch, what: str) -> None:
    n_bases = _n_bases(batch)
    wall = time.perf_counter() - started
    when = f"{wall:.3f}*{console.cpu_share():.2f}"
    console.note(f"{who}::{when}", f"{len(batch)} Entries ({n_bases / 1e6:.1f}M bases) {what}")


def _note_failures(who: str, batch: ReadBatch, options: AlignmentOptions) -> None:
    """List the batch's reads without a usable signal or with too many events."""
    for read in np.flatnonzero((batch.cause == Cause.NO_SIGNAL) | (batch.cause == Cause.MANY_EVENTS)).tolist():
        what = "over-segmented, " if batch.cause[read] == Cause.MANY_EVENTS else ""
        console.note(who, f"{batch.names[read]}: {what}{cause_text(batch, read, options)}")
