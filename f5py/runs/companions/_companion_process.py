"""Main program of a process that loads and computes batches of a run whose records another process cuts and sends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from f5py.core.batch import ReadBatch
from f5py.core.large_arrays import recycling
from f5py.errors import F5pyError
from f5py.io.shared_objects import ObjectChannel
from f5py.messages import console
from f5py.pipeline.batch_records import Cut, Found
from f5py.pipeline.flow import lanes_of
from f5py.pipeline.runner import THREAD_PREFIX, run_pipeline
from f5py.runs.opened import open_run, use_backends
from f5py.runs.recipe import Run
from f5py.threads.ahead import worked_ahead
from f5py.threads.pool import kept_memory

#: Whose plain notes are handed on: those of GPUs, of which each process has its own.
_NOTED = ("init_cuda",)
_POLL_SECONDS = 0.05


class Computed(NamedTuple):
    """A computed batch, and what has been found when it was loaded."""

    batch: ReadBatch
    found: Found


class Said(NamedTuple):
    """A message."""

    level: str  # "" for a plain note
    who: str
    text: str
    kind: str | None


class Problem(NamedTuple):
    """What has ended the process."""

    error: Exception


class End(NamedTuple):
    """The end, after all batches: seconds that the threads together have worked on each stage."""

    seconds: dict[str, float]


def serve(connection: Connection) -> None:
    """Load and compute the batches that a run's first process sends, until it says that there are no more.

    First come the recipe and the options of the run, then the `Cut` of each batch, at the end None.
    """
    process = _Process(ObjectChannel(connection))
    process.work(*process.channel.recv())
    os._exit(0)


class _Process:
    def __init__(self, channel: ObjectChannel) -> None:
        self.channel = channel
        self._is_ending = False
        self._make_rows: Callable[[ReadBatch], None] = lambda batch: None

    def work(self, recipe: Any, options: Any) -> None:
        """Do what `serve` says."""
        console.hand_on(self._say)
        try:
            self._compute(recipe, options)
        except F5pyError as problem:
            self.channel.send(Problem(problem))
        except (EOFError, OSError) as problem:  # the first process is gone, or the machine has a problem
            self.channel.send(Problem(F5pyError(f"a process of this run failed: {problem}")))
        except Exception as problem:
            cause = " ".join(f"{type(problem).__name__}: {problem}".split())
            self.channel.send(Problem(F5pyError(f"a process of this run failed: {cause}")))

    def _compute(self, recipe: Any, options: Any) -> None:
        with ExitStack() as workers, ExitStack() as inputs, kept_memory(), recycling():
            opened = open_run(recipe, options, True, workers, inputs)
            loader, stage, ahead, (_, writing_parts) = opened
            use_backends(recipe, options, opened, True)
            rows = recipe.rows_ahead(Run(options, loader, stage, threading.Event()))
            if rows is not None:
                workers.callback(rows.close)
                self._make_rows = rows.make if ahead is None else ahead.before(rows.make, *writing_parts)

            def load_one(cut: Cut) -> tuple[ReadBatch, Found]:
                try:
                    return loader.load(cut)
                except BaseException:
                    self._is_ending = True  # who waits for more records would be waited for
                    raise

            def load() -> Iterator[Any]:
                loader.before_loading()
                n_ahead = loader.settings.n_ahead
                with closing(worked_ahead(self._cuts(), load_one, n_ahead, f"{THREAD_PREFIX}load")) as loaded:
                    for item in loaded:
                        yield item
                        del item

            def compute(item: Any) -> None:
                stage.compute(item[0])

            def stop() -> None:
                self._is_ending = True
                loader.stop()
                stage.stop()

            run_pipeline(load(), compute, self._hand_over, stop=stop, n_lanes=lanes_of(options, stage))
            seconds = {name: seconds * stage.times.n_threads for name, seconds in stage.times.seconds.items()}
            self.channel.send(End(seconds))
            os._exit(0)  # what is open is memory, also of the GPU: the system takes it back sooner than we can give it

    def _cuts(self) -> Iterator[Cut]:
        """Yield what is sent; also end while nothing is, when no more is wanted."""
        while not self._is_ending:
            if not self.channel.poll(_POLL_SECONDS):
                continue
            if (cut := self.channel.recv()) is None:
                break
            yield cut
            del cut

    def _hand_over(self, item: Any) -> None:
        batch, found = item
        batch.packed = None  # of samples that nobody has asked for
        self._make_rows(batch)
        self.channel.send(Computed(batch, found))

    def _say(self, level: str, who: str, text: str, kind: str | None) -> None:
        if level in ("WARNING", "ERROR") or who in _NOTED:
            self.channel.send(Said(level, who, text, kind))
