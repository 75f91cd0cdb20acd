"""Main program of a process that loads and computes batches of a run whose records another process cuts and sends."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from f5py.core.large_arrays import recycling
from f5py.errors import F5pyError
from f5py.io.shared_objects import Packer, Parcel
from f5py.io.signals.helper_process import send
from f5py.messages import console
from f5py.pipeline.batch_records import Cut
from f5py.pipeline.flow import lanes_of
from f5py.pipeline.runner import run_pipeline
from f5py.runs.opened import open_run, use_backends
from f5py.threads.pool import kept_memory

#: Whose plain notes are handed on: those of GPUs, of which each process has its own.
_NOTED = ("init_cuda",)


class Batch(NamedTuple):
    """A computed batch, with what has been found when it was loaded."""

    number: int
    parcel: Parcel


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

    First come the recipe and the options of the run, then, for each batch, a `Cut` and numbers of shared memory that
    may be used again; at the end None.
    """
    recipe, options = connection.recv()
    _Process(connection).work(recipe, options)
    os._exit(0)  # what is left is memory, also on the GPU, which the system takes back


class _Process:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._packer = Packer()

    def work(self, recipe: Any, options: Any) -> None:
        """Do what `serve` says."""
        console.hand_on(self._say)
        try:
            seconds = self._compute(recipe, options)
        except F5pyError as problem:
            self._send(Problem(problem))
        except (EOFError, OSError) as problem:  # the first process is gone, or the machine has a problem
            self._send(Problem(F5pyError(f"a process of this run failed: {problem}")))
        except Exception as problem:
            cause = " ".join(f"{type(problem).__name__}: {problem}".split())
            self._send(Problem(F5pyError(f"a process of this run failed: {cause}")))
        else:
            self._send(End(seconds))

    def _compute(self, recipe: Any, options: Any) -> dict[str, float]:
        with ExitStack() as workers, ExitStack() as inputs, kept_memory(), recycling():
            opened = open_run(recipe, options, True, workers, inputs)
            loader, stage, *_ = opened
            use_backends(recipe, options, opened, True)

            def load() -> Iterator[Any]:
                loader.before_loading()
                with closing(loader.loaded(self._cuts())) as loaded:
                    for item in loaded:
                        yield item
                        del item

            def compute(item: Any) -> None:
                stage.compute(item[0])

            def stop() -> None:
                loader.stop()
                stage.stop()

            run_pipeline(load(), compute, self._hand_over, stop=stop, n_lanes=lanes_of(options, stage))
            return {name: seconds * stage.times.n_threads for name, seconds in stage.times.seconds.items()}

    def _cuts(self) -> Iterator[Cut]:
        while (message := self._connection.recv()) is not None:
            cut, free = message
            with self._sending:
                self._packer.take_back(free)
            yield cut
            del cut, message

    def _hand_over(self, item: Any) -> None:
        batch, _ = item
        batch.packed = None  # of samples that nobody has asked for
        with self._sending:
            parcel = self._packer.pack(item)
            send(self._connection, Batch(batch.number, parcel))
            if parcel.is_new:
                reduction.send_handle(self._connection, self._packer.descriptor(parcel.memory), os.getppid())

    def _say(self, level: str, who: str, text: str, kind: str | None) -> None:
        if level in ("WARNING", "ERROR") or who in _NOTED:
            self._send(Said(level, who, text, kind))

    def _send(self, message: Any) -> None:
        with self._sending:
            send(self._connection, message)
